//! Class names of a `data.yaml`.

use super::yaml::{self, Yaml};

/// Classes that a number alone may stand for: each gets a name.
const MOST_CLASSES: usize = 100_000;

/// Why a `data.yaml` gives no class names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassNamesError {
    /// It is no YAML that is read here; the text has the line.
    #[error("{0}")]
    Yaml(String),
    /// The number of classes is none.
    #[error("nc is not a number")]
    CountNotNumber,
    /// A list or a map where a name belongs.
    #[error("a class name is not a word")]
    NotAWord,
    /// A key that is no number.
    #[error("names: {0} is not a class number")]
    NotAClassNumber(String),
    /// Numbers are left out.
    #[error("names: the numbers of classes go from 0 up without holes")]
    Holes,
    /// Something else than names by number.
    #[error("names is neither a list nor a map")]
    NeitherListNorMap,
    /// More classes than anybody has.
    #[error("nc is {0}; at most {MOST_CLASSES} classes")]
    TooMany(usize),
    /// There are none.
    #[error("has neither names nor nc; is it a data set of Ultralytics?")]
    Missing,
    /// The file contradicts itself.
    #[error("nc is {count}, but there are {names} names")]
    CountDiffers {
        /// As it says.
        count: usize,
        /// As it has.
        names: usize,
    },
    /// A list of none.
    #[error("names no class")]
    Empty,
}

/// The class names, by index, that the text of a `data.yaml` gives; or what is wrong with it.
pub fn class_names(text: &str) -> Result<Vec<String>, ClassNamesError> {
    read(&yaml::parse(text).map_err(ClassNamesError::Yaml)?)
}

/// Class names by index.
pub(super) fn read(yaml: &Yaml) -> Result<Vec<String>, ClassNamesError> {
    let number = |nc: &Yaml| nc.text().and_then(|nc| nc.parse::<usize>().ok()).ok_or(ClassNamesError::CountNotNumber);
    let count = yaml.get("nc").map(number).transpose()?;
    let word = |value: &Yaml| value.text().map(str::to_owned).ok_or(ClassNamesError::NotAWord);
    let names: Vec<String> = match (yaml.get("names"), count) {
        (Some(Yaml::List(names)), _) => names.iter().map(word).collect::<Result<_, _>>()?,
        (Some(Yaml::Map(pairs)), _) => {
            let mut numbered = Vec::new();
            for (number, name) in pairs {
                let number: usize = number.parse().map_err(|_| ClassNamesError::NotAClassNumber(number.to_owned()))?;
                numbered.push((number, word(name)?));
            }
            numbered.sort_unstable();
            if (0..).zip(&numbered).any(|(index, (number, _))| index != *number) {
                return Err(ClassNamesError::Holes);
            }
            numbered.into_iter().map(|(_, name)| name).collect()
        }
        (Some(_), _) => return Err(ClassNamesError::NeitherListNorMap),
        (None, Some(count)) if count > MOST_CLASSES => return Err(ClassNamesError::TooMany(count)),
        (None, Some(count)) => (0..count).map(|index| format!("class_{index}")).collect(),
        (None, None) => return Err(ClassNamesError::Missing),
    };
    match count {
        Some(count) if count != names.len() => Err(ClassNamesError::CountDiffers { count, names: names.len() }),
        _ if names.is_empty() => Err(ClassNamesError::Empty),
        _ => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_class_names_is_told_apart() {
        let wrong = |text: &str| class_names(text).unwrap_err();
        assert_eq!(class_names("nc: 2\n").unwrap(), ["class_0", "class_1"]);
        assert_eq!(wrong("nc: two\n"), ClassNamesError::CountNotNumber);
        assert_eq!(wrong("names: {0: a, 2: c}\n"), ClassNamesError::Holes);
        assert_eq!(wrong("names: {a: 0}\n").to_string(), "names: a is not a class number");
        assert_eq!(wrong("names: cat\n"), ClassNamesError::NeitherListNorMap);
        assert_eq!(wrong("nc: 100001\n").to_string(), "nc is 100001; at most 100000 classes");
        assert_eq!(wrong("nc: 3\nnames: [a, b]\n").to_string(), "nc is 3, but there are 2 names");
        assert_eq!(wrong("train: images\n"), ClassNamesError::Missing);
        assert_eq!(wrong("\tnames: [a]\n").to_string(), "line 1: is indented by a tab; use spaces");
    }
}
