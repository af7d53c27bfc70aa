//! Which images of a data set are used: a list, a limit, or all. The order of files on a disk decides nothing.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use prony_files::Kind;
use prony_types::DataSpec;

use super::Problems;
use crate::SourceError;
use crate::scenes::rng::Rng;

/// The stream of random numbers that draws images; painting scenes has others.
const PURPOSE: u64 = 0x51_1CE;
/// Wrong lines of a list that an error names.
const NAMED: usize = 5;

/// Indices of the images to use, by ascending id, and what an earlier step has against none of them. `images` are
/// all of a data set: id and file name. An id that occurs twice counts for its first image.
pub(super) fn choose(
    spec: &DataSpec,
    images: &[(i64, &str)],
    problems: &mut Problems,
) -> Result<Vec<usize>, SourceError> {
    let mut order: Vec<usize> = (0..images.len()).collect();
    // Stable, so that the first of two with one id stays the first.
    order.sort_by_key(|&index| images[index].0);
    order.dedup_by(|later, first| {
        let (id, name) = images[*later];
        let same = id == images[*first].0;
        if same {
            problems.add("ids that occur twice", format!("{name}: image id {id} is that of {}", images[*first].1));
        }
        same
    });
    if let Some(file) = &spec.ids {
        let wanted = listed(file, images)?;
        order.retain(|&index| wanted.contains(&images[index].0));
    }
    Ok(draw(order, spec.limit, spec.seed))
}

/// `limit` of them, drawn by `seed`, in the order they had.
fn draw(mut order: Vec<usize>, limit: Option<u32>, seed: u64) -> Vec<usize> {
    let Some(limit) = limit.map(|limit| limit as usize).filter(|limit| *limit < order.len()) else { return order };
    let mut places: Vec<usize> = (0..order.len()).collect();
    let mut rng = Rng::new(seed, 0, PURPOSE);
    for i in 0..limit {
        let other = i + rng.below((places.len() - i) as u64) as usize;
        places.swap(i, other);
    }
    places.truncate(limit);
    places.sort_unstable();
    order = places.into_iter().map(|place| order[place]).collect();
    order
}

/// Ids of the images that a file names, one id or file name a line.
fn listed(file: &Path, images: &[(i64, &str)]) -> Result<HashSet<i64>, SourceError> {
    let words = lines(file)?;
    let by_id: HashSet<i64> = images.iter().map(|image| image.0).collect();
    let by_name: HashMap<&str, i64> =
        images.iter().flat_map(|&(id, name)| [(name, id), (base(name), id), (stem(name), id)]).collect();
    let mut wanted = HashSet::new();
    let mut unknown = Vec::new();
    for word in &words {
        let id = word.parse().ok().filter(|id| by_id.contains(id)).or_else(|| by_name.get(word.as_str()).copied());
        match id {
            Some(id) => {
                wanted.insert(id);
            }
            None => unknown.push(word.as_str()),
        }
    }
    if !unknown.is_empty() {
        let more = unknown.len().saturating_sub(NAMED);
        let and = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = unknown[..unknown.len().min(NAMED)].join(", ");
        return Err(SourceError::data(file, format!("no such image in the data set: {named}{and}")));
    }
    if wanted.is_empty() {
        return Err(SourceError::data(file, "names no image; write one id or file name a line"));
    }
    Ok(wanted)
}

/// The lines of a list, without blanks and comments.
pub(super) fn lines(file: &Path) -> Result<Vec<String>, SourceError> {
    let text = prony_files::read_piped(file, Kind::List).map_err(SourceError::io(file, "read the list"))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

/// `500 of 5000 images, seed 7`.
pub(super) fn words(spec: &DataSpec, chosen: usize, total: usize) -> String {
    let mut words = match (chosen == total, total) {
        (true, 1) => "1 image".to_owned(),
        (true, _) => format!("{total} images"),
        (false, _) => format!("{chosen} of {total} images"),
    };
    if let Some(file) = &spec.ids {
        words += &format!(" of {}", file.file_name().unwrap_or_default().to_string_lossy());
    }
    if chosen < total && spec.limit.is_some() {
        words += &format!(", seed {}", spec.seed);
    }
    words
}

fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn stem(name: &str) -> &str {
    let base = base(name);
    base.rsplit_once('.').map_or(base, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn spec(limit: Option<u32>, seed: u64) -> DataSpec {
        DataSpec { source: prony_types::DataSource::Scenes, split: None, limit, seed, ids: None, images: None }
    }

    fn chosen(images: &[(i64, &str)], limit: u32, seed: u64) -> Vec<i64> {
        let indices = choose(&spec(Some(limit), seed), images, &mut Problems::default()).unwrap();
        indices.into_iter().map(|index| images[index].0).collect()
    }

    #[test]
    fn the_order_of_files_decides_nothing_and_the_seed_everything() {
        let forward: Vec<(i64, &str)> = (0..1000).map(|id| (id * 3, "x.jpg")).collect();
        let backward: Vec<(i64, &str)> = forward.iter().rev().copied().collect();
        let drawn = chosen(&forward, 50, 7);
        assert_eq!(drawn.len(), 50);
        assert!(drawn.is_sorted());
        assert_eq!(drawn, chosen(&backward, 50, 7));
        assert_ne!(drawn, chosen(&forward, 50, 8));
        // From everywhere, not from the front.
        assert!(drawn.iter().filter(|id| **id >= 1500).count() > 10);
        assert_eq!(chosen(&forward, 5000, 7).len(), 1000);
    }

    #[test]
    fn a_draw_is_pinned() {
        // Published slices depend on it.
        let all: Vec<(i64, &str)> = (0..20).map(|id| (id, "x.jpg")).collect();
        assert_eq!(chosen(&all, 5, 7), [0, 1, 13, 15, 16]);
    }

    #[test]
    fn an_id_that_occurs_twice_is_told() {
        let mut problems = Problems::default();
        let images = [(4, "b.jpg"), (4, "c.jpg"), (1, "a.jpg")];
        assert_eq!(choose(&spec(None, 0), &images, &mut problems).unwrap(), [2, 0]);
        assert_eq!(problems.named().collect::<Vec<_>>(), ["c.jpg: image id 4 is that of b.jpg"]);
    }

    #[test]
    fn a_list_names_ids_or_files_and_strangers_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ids.txt");
        let images = [(4, "val/b.jpg"), (5, "val/c.jpg"), (1, "val/a.jpg"), (9, "val/d.jpg")];
        fs::write(&file, "# mine\n5\n\n a.jpg \nval/b.jpg\nb\n").unwrap();
        let spec = DataSpec { ids: Some(file.clone()), ..spec(None, 0) };
        assert_eq!(choose(&spec, &images, &mut Problems::default()).unwrap(), [2, 0, 1]);
        fs::write(&file, "5\n77\nz.jpg\n").unwrap();
        let error = choose(&spec, &images, &mut Problems::default()).unwrap_err().to_string();
        assert!(error.ends_with("ids.txt: no such image in the data set: 77, z.jpg"), "{error}");
    }
}
