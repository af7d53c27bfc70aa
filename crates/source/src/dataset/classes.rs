//! Which class of a model is which category of a data set.

use std::collections::{BTreeMap, HashMap};

use prony_types::ClassMatch;

use super::Category;
use crate::SourceError;

/// Names that a message gives of many.
const NAMED: usize = 5;

/// Categories by the class index of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassMap {
    categories: Vec<Option<u32>>,
    by_name: bool,
    /// How it was found and what is left over, in words.
    pub words: String,
}

impl ClassMap {
    /// Index of the category that a class of the model is; `None` where the data has no such category.
    pub fn category(&self, class: u32) -> Option<u32> {
        self.categories.get(class as usize).copied().flatten()
    }

    /// Whether some class of the model is this category.
    pub fn knows(&self, category: u32) -> bool {
        self.categories.contains(&Some(category))
    }

    /// The same in numbers, for so many objects of categories that the model knows.
    pub fn summary(&self, categories: &[Category], objects: u64) -> ClassMatch {
        let unknown = (0..).zip(categories).filter(|(index, _)| !self.knows(*index));
        let missing: Vec<String> = unknown.map(|(_, category)| category.name.clone()).collect();
        ClassMatch {
            by_name: self.by_name,
            matched: (categories.len() - missing.len()) as u32,
            categories: categories.len() as u32,
            missing,
            objects,
        }
    }
}

/// Finds a category for every class of a model, by name: case, and whether `_`, `-` or a blank stands between words, do
/// not matter. A model without names (or with `class0`, `class1`, … for names) is matched in the order of category ids,
/// if it has as many classes. `classes` says how many those are; where nobody knows that either, it is an error.
///
/// `categories` are in the order of their ids, as [`super::Dataset::categories`] is. No class in common is an error, and so is
/// a name that does not say which class or category is meant, because several have it.
pub fn map(model_names: &[String], classes: Option<usize>, categories: &[Category]) -> Result<ClassMap, SourceError> {
    let found = by_name(model_names, categories)?;
    let nothing = found.iter().all(Option::is_none);
    // True of no names as well.
    if nothing && model_names.iter().enumerate().all(|(index, name)| is_number(name, index)) {
        let known = classes.or(Some(model_names.len()).filter(|count| *count > 0));
        return by_index(known, categories);
    }
    if nothing {
        let reason = format!(
            "the model and the data have no class in common: the model has {}, the data {}; give the data that it was made for",
            some(model_names.iter().map(String::as_str)),
            some(categories.iter().map(|category| category.name.as_str())),
        );
        return Err(SourceError::Classes { reason });
    }
    let without = some_of(model_names.iter().zip(&found).filter(|(_, to)| to.is_none()).map(|(name, _)| name.as_str()));
    let missing = (0..).zip(categories).filter(|(index, _)| !found.contains(&Some(*index)));
    let unmatched = some_of(missing.map(|(_, category)| category.name.as_str()));
    let count = found.iter().flatten().count();
    let mut words = format!("{count} of {} classes by name", model_names.len());
    if let Some(names) = without {
        words += &format!("; not in the data: {names}");
    }
    if let Some(names) = unmatched {
        words += &format!("; not in the model: {names}");
    }
    Ok(ClassMap { categories: found, by_name: true, words })
}

fn by_name(model_names: &[String], categories: &[Category]) -> Result<Vec<Option<u32>>, SourceError> {
    let mut exact: HashMap<&str, Vec<u32>> = HashMap::new();
    let mut loose: HashMap<String, Vec<u32>> = HashMap::new();
    for (index, category) in (0..).zip(categories) {
        exact.entry(&category.name).or_default().push(index);
        loose.entry(normal(&category.name)).or_default().push(index);
    }
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (class, name) in model_names.iter().enumerate() {
        let alike = exact.get(name.as_str()).or_else(|| loose.get(&normal(name)));
        let category = match alike.map(Vec::as_slice) {
            None => None,
            Some([category]) => Some(*category),
            Some(several) => {
                let ids: Vec<String> = several.iter().map(|&i| categories[i as usize].id.to_string()).collect();
                let ids = ids.join(" and ");
                let reason = format!(
                    "the data has {} categories named {name} (ids {ids}), so nothing says which one the model means; rename \
                     or remove all but one",
                    several.len()
                );
                return Err(SourceError::Classes { reason });
            }
        };
        if let Some(other) = category.and_then(|category| taken.insert(category, class)) {
            let reason = format!(
                "the model has two classes for one category of the data: {} ({other}) and {name} ({class}), so nothing says \
                 whose boxes are right; give each class a name of its own",
                model_names[other]
            );
            return Err(SourceError::Classes { reason });
        }
        found.push(category);
    }
    Ok(found)
}

fn by_index(classes: Option<usize>, categories: &[Category]) -> Result<ClassMap, SourceError> {
    let have = categories.len();
    if classes != Some(have) {
        let names = some(categories.iter().map(|category| category.name.as_str()));
        let count = classes.map_or_else(|| "an unknown number of".to_owned(), |count| count.to_string());
        let reason = format!(
            "the model has {count} classes without names and the data {have} categories ({names}), so nothing says which is \
             which; put the names into the model"
        );
        return Err(SourceError::Classes { reason });
    }
    let words =
        format!("the model has no class names: its classes are the {have} categories in the order of their ids");
    Ok(ClassMap { categories: (0..have as u32).map(Some).collect(), by_name: false, words })
}

/// Names that only repeat the index.
fn is_number(name: &str, index: usize) -> bool {
    let name = normal(name);
    name.strip_prefix("class").unwrap_or(&name).trim() == index.to_string()
}

fn normal(name: &str) -> String {
    let words: Vec<&str> =
        name.split(|c: char| c == '_' || c == '-' || c.is_whitespace()).filter(|word| !word.is_empty()).collect();
    words.join(" ").to_lowercase()
}

fn some<'a>(names: impl Iterator<Item = &'a str>) -> String {
    some_of(names).unwrap_or_else(|| "none".to_owned())
}

fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    let more = names.len().saturating_sub(NAMED);
    let and = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("{}{and}", names[..names.len().min(NAMED)].join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn categories(names: &[&str]) -> Vec<Category> {
        (1..).zip(names).map(|(id, name)| Category { id, name: (*name).to_owned() }).collect()
    }

    #[test]
    fn names_are_found_whatever_stands_between_their_words() {
        let map = map(
            &names(&["Traffic\u{a0}Light", " person ", "zebra", "fire-hydrant"]),
            Some(4),
            &categories(&["person", "bicycle", "traffic light", "fire hydrant"]),
        )
        .unwrap();
        assert_eq!([0, 1, 2, 3, 4].map(|class| map.category(class)), [Some(2), Some(0), None, Some(3), None]);
        assert_eq!(map.words, "3 of 4 classes by name; not in the data: zebra; not in the model: bicycle");
    }

    #[test]
    fn an_exact_name_goes_before_a_similar_one() {
        let map = map(&names(&["Car", "car"]), None, &categories(&["car", "Car"])).unwrap();
        assert_eq!([0, 1].map(|class| map.category(class)), [Some(1), Some(0)]);
    }

    #[test]
    fn eighty_nameless_classes_are_the_ids_up_to_ninety_in_their_order() {
        // COCO's holes.
        let holes = [12, 26, 29, 30, 45, 66, 68, 69, 71, 83];
        let ids = (1..=90).filter(|id| !holes.contains(id));
        let coco: Vec<Category> = ids.map(|id| Category { id, name: format!("thing {id}") }).collect();
        assert_eq!(coco.len(), 80);
        let placeholders: Vec<String> = (0..80).map(|index| format!("class_{index}")).collect();
        for map in [map(&[], Some(80), &coco), map(&placeholders, None, &coco)] {
            let map = map.unwrap();
            let id = |class| coco[map.category(class).unwrap() as usize].id;
            assert_eq!([id(0), id(11), id(12), id(79)], [1, 13, 14, 90]);
            assert_eq!(map.category(80), None);
            assert!(map.words.contains("no class names"), "{}", map.words);
        }
        let error = map(&[], Some(79), &coco).unwrap_err().to_string();
        assert!(error.contains("79 classes without names and the data 80 categories"), "{error}");
        let error = map(&[], None, &coco).unwrap_err().to_string();
        assert!(error.contains("an unknown number of classes without names and the data 80 categories"), "{error}");
    }

    #[test]
    fn nothing_in_common_names_some_of_both() {
        let many: Vec<String> = (0..9).map(|i| format!("bird{i}")).collect();
        let error = map(&many, None, &categories(&["crate", "cone"])).unwrap_err().to_string();
        assert!(error.contains("bird0, bird1, bird2, bird3, bird4 and 4 more"), "{error}");
        assert!(error.contains("the data crate, cone"), "{error}");
    }

    #[test]
    fn two_equal_names_were_matched_in_silence() {
        let refused =
            |model: &[&str], data: &[&str]| map(&names(model), None, &categories(data)).unwrap_err().to_string();
        let error = refused(&["car", "bus", "car"], &["car", "bus"]);
        assert!(error.contains("two classes for one category of the data: car (0) and car (2)"), "{error}");
        let error = refused(&["Car", "car"], &["car"]);
        assert!(error.contains("Car (0) and car (1)"), "{error}");
        let error = refused(&["bus", "car"], &["car", "bus", "car"]);
        assert!(error.contains("the data has 2 categories named car (ids 1 and 3)"), "{error}");
        let error = refused(&["CAR"], &["car", "Car"]);
        assert!(error.contains("2 categories named CAR (ids 1 and 2)"), "{error}");
        // What nobody asks for harms nobody.
        assert!(map(&names(&["bus", "x", "x"]), None, &categories(&["y", "bus", "y"])).is_ok());
    }

    #[test]
    fn what_the_model_does_not_know_is_counted() {
        let data = categories(&["a", "b", "c"]);
        let some = map(&names(&["c", "a", "z"]), None, &data).unwrap().summary(&data, 7);
        let caution = "2 of 3 classes of the data are known to the model; missing: b, whose objects count as not found";
        assert_eq!((some.by_name, some.caution().as_deref()), (true, Some(caution)));
        let all = map(&names(&["c", "a", "z", "b"]), None, &data).unwrap().summary(&data, 7);
        assert_eq!((all.matched, all.objects, all.caution()), (3, 7, None));
        let by_position = map(&[], Some(3), &data).unwrap().summary(&data, 7);
        assert!(by_position.caution().unwrap().contains("3 classes were matched by position"));
    }
}
