//! Ultralytics' `data.yaml`: folders or lists of images, with a label file beside each.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use prony_files::Kind;
use prony_types::DataSpec;
use prony_types::os_text::to_text;
use rayon::prelude::*;

use super::assembly::{Assembly, Candidate};
use super::labels::{self, Label, Labels};
use super::locate::{DEFAULT_SPLIT, ending};
use super::yaml::{self, Yaml};
use super::{Category, Dataset, LabeledBox, Origin, Problems, header, names, slice};
use crate::SourceError;
use crate::ending::is_image_name;

/// Endings that Ultralytics takes for images and nobody here decodes.
const FOREIGN: [&str; 9] = ["dng", "mpo", "tif", "tiff", "webp", "pfm", "heic", "heif", "avif"];
/// Folders below folders; more is a link that leads back.
const MAX_DEPTH: usize = 16;

pub(super) fn open(spec: &DataSpec, file: &Path) -> Result<Dataset, SourceError> {
    let text = prony_files::read_text(file, Kind::Labels).map_err(SourceError::io(file, "read the file"))?;
    let yaml = yaml::parse(&text).map_err(|why| SourceError::data(file, why))?;
    let names = names::read(&yaml).map_err(|why| SourceError::data(file, why.to_string()))?;
    let classes = names.len();
    let categories = (0..).zip(names).map(|(id, name)| Category { id, name }).collect();
    let mut assembly = Assembly::new(categories);

    let split = spec.split.as_deref().unwrap_or(DEFAULT_SPLIT);
    let places = split_places(&yaml, file, split, &mut assembly.problems)?;
    let files = list(&places, &mut assembly.problems)?;
    let ids = ids(&files);
    let names: Vec<String> = files.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let images: Vec<(i64, &str)> = ids.iter().copied().zip(names.iter().map(String::as_str)).collect();
    let chosen = slice::choose(spec, &images, &mut assembly.problems)?;

    let seen: Vec<Seen> = chosen.par_iter().map(|&index| look(&files[index], classes)).collect();
    for (&index, seen) in chosen.iter().zip(seen) {
        add(&mut assembly, ids[index], &files[index], seen);
    }
    let what = file.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("ultralytics: {what} ({split}), {}", slice::words(spec, chosen.len(), files.len()));
    assembly.finish(name, file, None)
}

/// The folders and lists of a part.
fn split_places(yaml: &Yaml, file: &Path, split: &str, problems: &mut Problems) -> Result<Vec<PathBuf>, SourceError> {
    let value = yaml.get(split).or_else(|| yaml.get("validation").filter(|_| split == DEFAULT_SPLIT));
    let words: Vec<&str> = match value {
        Some(Yaml::Text(word)) => vec![word],
        Some(Yaml::List(items)) => items.iter().filter_map(Yaml::text).collect(),
        _ => Vec::new(),
    };
    if words.is_empty() {
        let there: Vec<&str> = ["train", "val", "test"].into_iter().filter(|name| yaml.get(name).is_some()).collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        return Err(SourceError::data(file, format!("no images for {split}; it has {there}; choose with --split")));
    }
    let root = root(yaml, file, problems);
    Ok(words.into_iter().map(|word| place(&root, word)).collect())
}

/// What paths are relative to. Without `path`, and where that has moved, the folder of the file.
fn root(yaml: &Yaml, file: &Path, problems: &mut Problems) -> PathBuf {
    let own = file.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf();
    let Some(path) = yaml.get("path").and_then(Yaml::text) else { return own };
    let candidates = [own.join(path), PathBuf::from(path)];
    candidates.into_iter().find(|path| path.is_dir()).unwrap_or_else(|| {
        problems.add("paths that are not there", format!("path: {path}: no such folder; that of the file is used"));
        own
    })
}

fn place(root: &Path, word: &str) -> PathBuf {
    let whole = root.join(word);
    // Roboflow writes `../valid/images` and means `valid/images`; Ultralytics forgives it.
    match word.strip_prefix("../") {
        Some(rest) if !whole.exists() => root.join(rest),
        _ => whole,
    }
}

/// All images of the places, sorted by name, each once.
fn list(places: &[PathBuf], problems: &mut Problems) -> Result<Vec<PathBuf>, SourceError> {
    let mut files = Vec::new();
    for place in places {
        match fs::metadata(place) {
            Ok(meta) if meta.is_dir() => walk(place, MAX_DEPTH, &mut files)?,
            Ok(_) if ending(place) == "txt" => files.extend(listed(place)?),
            Ok(_) => return Err(SourceError::data(place, "neither a folder of images nor a .txt list of them")),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(SourceError::data(place, "no such folder or list; check `path` in the data.yaml"));
            }
            Err(e) => return Err(SourceError::io(place, "open the folder")(e)),
        }
    }
    files.sort_unstable();
    files.dedup();
    files.retain(|path| {
        let foreign = FOREIGN.contains(&ending(path).as_str());
        if foreign {
            let what = format!("{}: only JPEG, PNG and BMP are decoded", path.display());
            problems.add("images of another format", what);
        }
        !foreign && is_image_name(path)
    });
    Ok(files)
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), SourceError> {
    if depth == 0 {
        return Err(SourceError::data(folder, "folders below folders without end; does a link lead back?"));
    }
    for entry in fs::read_dir(folder).map_err(SourceError::io(folder, "list the folder"))? {
        let path = entry.map_err(SourceError::io(folder, "list the folder"))?.path();
        if path.is_dir() {
            walk(&path, depth - 1, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Images that a list names, relative to its folder.
fn listed(list: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let folder = list.parent().unwrap_or(Path::new(""));
    Ok(slice::lines(list)?.iter().map(|line| folder.join(line.strip_prefix("./").unwrap_or(line))).collect())
}

/// Numbers as Ultralytics writes them into results: the file's name where that is one. Where not every name is a number
/// of its own, the place in the sorted list instead, for all.
fn ids(files: &[PathBuf]) -> Vec<i64> {
    let number = |path: &PathBuf| {
        let stem = path.file_stem()?.to_str()?;
        stem.bytes().all(|b| b.is_ascii_digit()).then(|| stem.parse::<i64>().ok())?
    };
    let numbers: Option<Vec<i64>> = files.iter().map(number).collect();
    let unique = |numbers: &Vec<i64>| numbers.iter().collect::<HashSet<_>>().len() == files.len();
    numbers.filter(unique).unwrap_or_else(|| (0..).take(files.len()).collect())
}

/// What was found out about an image.
type Seen = Result<((u32, u32), Labels, bool), (&'static str, String)>;

/// Its size, its labels and whether it has a label file.
fn look(image: &Path, classes: usize) -> Seen {
    let size = header::size(image).map_err(|why| ("images that cannot be read", why))?;
    let file = label_file(image);
    match prony_files::read_text(&file, Kind::Labels) {
        Ok(text) => {
            let spoiled = |why| ("spoiled label files", format!("{}, {why}", file.display()));
            Ok((size, labels::parse(&text, classes).map_err(spoiled)?, true))
        }
        // An image without objects needs no file.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok((size, Labels::default(), false)),
        Err(e) => Err(("spoiled label files", format!("{}: {e}", file.display()))),
    }
}

fn add(assembly: &mut Assembly, id: i64, path: &Path, seen: Seen) {
    let (size, labels, labelled) = match seen {
        Ok(seen) => seen,
        Err((kind, why)) => return assembly.miss(id, &[], kind, format!("{}: {why}", path.display())),
    };
    let problems = &mut assembly.problems;
    if !labelled {
        problems.add("images without a label file", format!("{}: no label file; taken as empty", path.display()));
    }
    if labels.duplicates > 0 {
        let what = format!("{}: {} labels are there twice and count once", path.display(), labels.duplicates);
        problems.add("images with labels twice", what);
    }
    if labels.corners > 0 {
        let what = format!("{}: {} boxes beside polygons, read as two corners", path.display(), labels.corners);
        problems.add("images with boxes beside polygons", what);
    }
    let mut truths: Vec<LabeledBox> = labels.labels.iter().map(|label| truth(label, size)).collect();
    assembly.number(&mut truths);
    let name = to_text(path.file_name().unwrap_or_default());
    let candidate = Candidate { id, name, origin: Origin::File(path.to_path_buf()), size: Some(size) };
    assembly.add(candidate, &truths);
}

/// In pixels, cut off at the edge of the image; without a number yet.
fn truth(label: &Label, (width, height): (u32, u32)) -> LabeledBox {
    let [cx, cy, w, h] = label.shares.map(f64::from);
    let span = |centre: f64, share: f64, side: u32| {
        let side = f64::from(side);
        let low = ((centre - share / 2.0) * side).clamp(0.0, side);
        let high = ((centre + share / 2.0) * side).clamp(0.0, side);
        (low, high - low)
    };
    let ((x, w), (y, h)) = (span(cx, w, width), span(cy, h, height));
    LabeledBox { id: 0, category: label.class, x, y, w, h, area: w * h, crowd: false }
}

/// `labels` for the last `images` among the folders, `.txt` for the ending.
fn label_file(image: &Path) -> PathBuf {
    let parts: Vec<_> = image.components().collect();
    let folders = parts.len().saturating_sub(1);
    let last = parts[..folders].iter().rposition(|part| part.as_os_str() == "images");
    let swapped: PathBuf = parts
        .iter()
        .enumerate()
        .map(|(index, part)| if Some(index) == last { "labels".as_ref() } else { part.as_os_str() })
        .collect();
    swapped.with_extension("txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_lie_where_the_last_images_was() {
        let cases = [
            ("/d/images/train/1.jpg", "/d/labels/train/1.txt"),
            ("images/images/a.b.png", "images/labels/a.b.txt"),
            ("/d/pics/1.jpg", "/d/pics/1.txt"),
            ("/d/images.jpg", "/d/images.txt"),
        ];
        for (image, expected) in cases {
            assert_eq!(label_file(Path::new(image)), Path::new(expected));
        }
    }

    #[test]
    fn ids_are_the_names_where_all_are_numbers_of_their_own() {
        let of = |names: &[&str]| ids(&names.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["a/000000000139.jpg", "a/42.png"]), [139, 42]);
        assert_eq!(of(&["a/7.jpg", "a/x.png"]), [0, 1]);
        assert_eq!(of(&["a/7.jpg", "b/007.jpg"]), [0, 1]);
    }

    #[test]
    fn a_box_over_the_edge_is_cut_off() {
        let label = Label { class: 3, shares: [0.0, 0.5, 0.5, 1.0] };
        let expected = LabeledBox { id: 0, category: 3, x: 0.0, y: 0.0, w: 25.0, h: 40.0, area: 1000.0, crowd: false };
        assert_eq!(truth(&label, (100, 40)), expected);
    }
}
