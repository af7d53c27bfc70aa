//! What goes into the model: which file feeds which input, in which shape, and the values themselves.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use prony_backend::Session;
use prony_bench::tensors::{ArrayFile, Values, describe, fill, fill_image, image_size};
use prony_source::folder;
use prony_types::os_text::path_from_text;
use prony_types::{DType, Dim, Image, ModelInfo, TensorInfo, TensorSpec};
use prony_vision::{Fit, Letterbox, Preprocessor};
use serde::Serialize;

use super::shape::InputShape;

/// Where one input comes from.
#[derive(Clone)]
enum Source {
    Image(PathBuf),
    Array { path: PathBuf, file: ArrayFile, name: String },
}

/// Where every input comes from, in the order of the model.
pub struct InputSources {
    inputs: Vec<Source>,
    notes: Vec<String>,
}

impl InputSources {
    /// Brings files and inputs together.
    pub fn find(model: &str, given: &[String], inputs: &[TensorInfo]) -> anyhow::Result<InputSources> {
        ensure!(!given.is_empty(), "{}", how_to_feed(model, inputs));
        let mut found: Vec<Option<Source>> = vec![None; inputs.len()];
        let mut notes = Vec::new();
        let mut archive = None;
        for text in given {
            let (name, path) = named(text, inputs, "input")?;
            let path = path.as_path();
            match (ending(path), name) {
                ("npy" | "npz", Some(index)) => {
                    let file = ArrayFile::open(path)?;
                    // In an archive that is given for one input, a single array is meant whatever its name.
                    let name = match file.names() {
                        Some([only]) => only.clone(),
                        _ => inputs[index].name.clone(),
                    };
                    place(&mut found, inputs, index, Source::Array { path: path.to_owned(), file, name })?;
                }
                ("npz", None) => {
                    let file = ArrayFile::open(path)?;
                    for array in file.names().unwrap_or_default() {
                        let Some(index) = inputs.iter().position(|input| input.name == *array) else {
                            notes.push(format!("{}: array `{array}` is no input of the model", path.display()));
                            continue;
                        };
                        let source = Source::Array { path: path.to_owned(), file: file.clone(), name: array.clone() };
                        place(&mut found, inputs, index, source)?;
                    }
                    archive = Some(file);
                }
                ("npy", None) => {
                    let file = ArrayFile::open(path)?;
                    let index = only_one(path, &found, inputs, |_| true)?;
                    let name = inputs[index].name.clone();
                    place(&mut found, inputs, index, Source::Array { path: path.to_owned(), file, name })?;
                }
                ("jpg" | "jpeg" | "png" | "bmp", name) => {
                    let again = found.iter().flatten().any(|source| matches!(source, Source::Image(_)));
                    ensure!(!again, "{}: only one image goes into a call", path.display());
                    let index = match name {
                        Some(index) => index,
                        None => only_one(path, &found, inputs, |input| input.dims.len() == 4)?,
                    };
                    place(&mut found, inputs, index, Source::Image(path.to_owned()))?;
                }
                _ => bail!("--input {text}: give an .npy, an .npz, or an image (.jpg, .png, .bmp)"),
            }
        }
        let mut all = Vec::new();
        for (input, source) in inputs.iter().zip(found) {
            match (source, &archive) {
                (Some(source), _) => all.push(source),
                // The archive knows best what it has instead.
                (None, Some(archive)) => bail!(
                    archive
                        .shape(&input.name)
                        .map_or_else(|error| error.to_string(), |_| format!("nothing feeds input {input}"))
                ),
                (None, None) => bail!("nothing feeds input {input}; give --input {}=x.npy", input.name),
            }
        }
        Ok(InputSources { inputs: all, notes })
    }

    /// Whether one of them is an image.
    pub fn has_image(&self) -> bool {
        self.inputs.iter().any(|source| matches!(source, Source::Image(_)))
    }

    /// The shape of every input: as asked, otherwise as the file has it where the model leaves it open.
    pub fn shapes(&self, asked: &[InputShape], info: &ModelInfo) -> anyhow::Result<Vec<(String, Vec<usize>)>> {
        for (i, shape) in asked.iter().enumerate() {
            let known = info.inputs.iter().any(|input| input.name == shape.input);
            ensure!(known, "--shape: the model has no input `{}`; it has {}", shape.input, list(&info.inputs));
            let again = asked[..i].iter().any(|other| other.input == shape.input);
            ensure!(!again, "--shape: two shapes for input `{}`", shape.input);
        }
        let decide = |(input, source): (&TensorInfo, &Source)| {
            let axes = match (asked.iter().find(|shape| shape.input == input.name), source) {
                (Some(shape), _) => shape.axes.clone(),
                (None, Source::Array { file, name, .. }) => of_array(&file.shape(name)?, input)?,
                (None, Source::Image(_)) => of_image(input, info.metadata.imgsz)?,
            };
            Ok((input.name.clone(), axes))
        };
        info.inputs.iter().zip(&self.inputs).map(decide).collect()
    }

    /// Reads everything for the inputs as they really are.
    pub fn read(&self, inputs: &[TensorSpec]) -> anyhow::Result<ModelInputs> {
        let mut read = ModelInputs { items: Vec::new(), notes: self.notes.clone() };
        for (input, source) in inputs.iter().zip(&self.inputs) {
            read.items.push(match source {
                Source::Array { path, file, name } => {
                    let array = file.read(name, input)?;
                    read.notes.extend(array.note);
                    Item::Values { path: path.clone(), values: array.values }
                }
                Source::Image(path) => Item::Picture(Box::new(Picture::read(path, input, &mut read.notes)?)),
            });
        }
        Ok(read)
    }
}

fn place(found: &mut [Option<Source>], inputs: &[TensorInfo], index: usize, source: Source) -> anyhow::Result<()> {
    ensure!(found[index].is_none(), "input `{}` is fed twice", inputs[index].name);
    found[index] = Some(source);
    Ok(())
}

/// The one input that is not fed yet and that a file without a name can be for.
fn only_one(
    path: &Path,
    found: &[Option<Source>],
    inputs: &[TensorInfo],
    fits: impl Fn(&TensorInfo) -> bool,
) -> anyhow::Result<usize> {
    let open: Vec<usize> = (0..inputs.len()).filter(|&i| found[i].is_none() && fits(&inputs[i])).collect();
    match open[..] {
        [index] => Ok(index),
        [] => bail!("{}: no input is left that it could be for; the model has {}", path.display(), list(inputs)),
        _ => bail!("{0}: say which input it is for, as NAME={0}; the model has {1}", path.display(), list(inputs)),
    }
}

/// A tensor's index and the rest of `NAME=FILE`; the index is absent where only a file was given.
pub(super) fn named(text: &str, tensors: &[TensorInfo], what: &str) -> anyhow::Result<(Option<usize>, PathBuf)> {
    let rest_after = |tensor: &TensorInfo| text.strip_prefix(tensor.name.as_str())?.strip_prefix('=');
    if let Some((index, rest)) = tensors.iter().enumerate().find_map(|(i, tensor)| Some((i, rest_after(tensor)?))) {
        return Ok((Some(index), path_from_text(rest)));
    }
    // A path may hold the sign too, but then usually not before its first slash.
    if let Some((name, _)) = text.split_once('=').filter(|(name, _)| !name.contains('/')) {
        bail!("--{what} {text}: the model has no {what} `{name}`; it has {}", list(tensors));
    }
    Ok((None, path_from_text(text)))
}

/// In lower case.
pub(super) fn ending(path: &Path) -> &'static str {
    const KNOWN: [&str; 7] = ["npy", "npz", "json", "jpg", "jpeg", "png", "bmp"];
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    KNOWN.into_iter().find(|known| known.eq_ignore_ascii_case(ending)).unwrap_or_default()
}

pub(super) fn list(tensors: &[TensorInfo]) -> String {
    tensors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn how_to_feed(model: &str, inputs: &[TensorInfo]) -> String {
    let way = match inputs {
        [one] if one.dims.len() == 4 => format!("give --input photo.jpg, or --input {}=x.npy", one.name),
        [one] => format!("give --input {}=x.npy", one.name),
        several => {
            let each: Vec<String> = several.iter().map(|input| format!("--input {}=x.npy", input.name)).collect();
            format!("give {}, or one --input x.npz with arrays of these names", each.join(" "))
        }
    };
    format!("{model} takes {}; {way}", list(inputs))
}

fn of_array(shape: &[usize], input: &TensorInfo) -> anyhow::Result<Vec<usize>> {
    ensure!(
        shape.len() == input.dims.len(),
        "array `{}` is {}, the model takes {input}: it has {} axes instead of {}",
        input.name,
        describe("", shape),
        shape.len(),
        input.dims.len()
    );
    let axes = input.dims.iter().zip(shape).enumerate().map(|(axis, (dim, &there))| match dim {
        Dim::Fixed(n) => Ok(usize::try_from(*n)?),
        Dim::Named(_) if there == 0 => bail!("array `{}` is empty: axis {axis} is 0", input.name),
        Dim::Named(_) => Ok(there),
    });
    axes.collect()
}

fn of_image(input: &TensorInfo, imgsz: Option<[u32; 2]>) -> anyhow::Result<Vec<usize>> {
    let [_, _, _, _] = input.dims[..] else { bail!("input {input} takes no image; give --input {}=x.npy", input.name) };
    let sides = imgsz.map(|[height, width]| [height as usize, width as usize]);
    let axes = input.dims.iter().enumerate().map(|(axis, dim)| match (dim, axis, sides) {
        (Dim::Fixed(n), _, _) => Ok(usize::try_from(*n)?),
        (Dim::Named(_), 0, _) => Ok(1),
        (Dim::Named(_), 1, _) => Ok(3),
        (Dim::Named(_), side, Some(sides)) => Ok(sides[side - 2]),
        (Dim::Named(_), ..) => {
            bail!("input {input} leaves its size open; give --shape {}=1x3x640x640", input.name)
        }
    });
    axes.collect()
}

/// One input, for a reader.
#[derive(Debug, Serialize)]
pub struct InputSummary {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<usize>,
    /// In words.
    pub from: String,
}

/// Everything that goes in, read.
pub struct ModelInputs {
    items: Vec<Item>,
    /// What to know about them.
    pub notes: Vec<String>,
}

enum Item {
    Values { path: PathBuf, values: Values },
    Picture(Box<Picture>),
}

/// An image on its way into an input.
pub(super) struct Picture {
    pub(super) path: PathBuf,
    pub(super) image: Image,
    /// Height and width of the input.
    pub(super) size: [u32; 2],
    pub(super) letterbox: Letterbox,
    fit: Fit,
    batch: usize,
}

impl Picture {
    fn read(path: &Path, input: &TensorSpec, notes: &mut Vec<String>) -> anyhow::Result<Picture> {
        let Some(size) = image_size(input) else {
            let is = describe(input.dtype, &input.shape);
            bail!(
                "input `{0}` is {is}, which no image fits (f32 or f16, [N,3,H,W]); give --input {0}=x.npy",
                input.name
            )
        };
        let image = folder::load(path)?;
        let batch = input.shape[0];
        if batch > 1 {
            notes.push(format!("{} fills all {batch} items of the batch", path.display()));
        }
        let [height, width] = size;
        let letterbox = Letterbox::new(image.width(), image.height(), width, height);
        Ok(Picture { path: path.to_owned(), image, size, letterbox, fit: Fit::Letterbox, batch })
    }
}

impl ModelInputs {
    /// The image, if there is one.
    pub(super) fn picture(&self) -> Option<&Picture> {
        self.items.iter().find_map(|item| match item {
            Item::Picture(picture) => Some(&**picture),
            Item::Values { .. } => None,
        })
    }

    /// Height and width of the input that the image goes to.
    pub fn image_size(&self) -> Option<[u32; 2]> {
        self.picture().map(|picture| picture.size)
    }

    /// Changes how the image is brought to size; whether that is a change.
    pub fn refit(&mut self, fit: Fit) -> bool {
        let mut changed = false;
        for item in &mut self.items {
            if let Item::Picture(picture) = item {
                changed = picture.fit != fit;
                picture.fit = fit;
            }
        }
        changed
    }

    /// Fills the inputs of the session.
    pub fn fill(&mut self, session: &mut dyn Session) {
        for (index, item) in self.items.iter_mut().enumerate() {
            match item {
                Item::Values { values, .. } => fill(values, session.input(0, index)),
                Item::Picture(picture) => {
                    let [height, width] = picture.size;
                    let mut preprocessor = Preprocessor::with_fit(width, height, picture.fit);
                    let mut scratch = Vec::new();
                    for nth in 0..picture.batch {
                        let (input, place) = (session.input(0, index), [nth, picture.batch]);
                        let placed = fill_image(&mut preprocessor, &picture.image, input, place, None, &mut scratch);
                        picture.letterbox = placed.unwrap_or(picture.letterbox);
                    }
                }
            }
        }
    }

    /// For the summary.
    pub fn summaries(&self, inputs: &[TensorSpec]) -> Vec<InputSummary> {
        let summary = |(input, item): (&TensorSpec, &Item)| {
            let from = match item {
                Item::Values { path, .. } => path.display().to_string(),
                Item::Picture(picture) => {
                    let (path, image) = (picture.path.display(), &picture.image);
                    let how = if picture.fit == Fit::Stretch { "stretched" } else { "letterboxed" };
                    format!("{path}, {}x{}, {how}", image.width(), image.height())
                }
            };
            InputSummary { name: input.name.clone(), dtype: input.dtype, shape: input.shape.clone(), from }
        };
        inputs.iter().zip(&self.items).map(summary).collect()
    }
}
