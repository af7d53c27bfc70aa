//! Files that a call leaves behind. What is wrong with them is said before the model runs.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use prony_backend::Session;
use prony_bench::tensors::{describe, npy_bytes, npz_bytes, output_spec};
use prony_source::{jpeg, png};
use prony_types::os_text::path_to_text;
use prony_types::{DType, TensorData, TensorInfo, TensorView};
use prony_vision::draw;
use serde::Serialize;

use super::boxes::{Boxes, NamedBox};
use super::input::{ModelInputs, ending, list, named};

/// A file that was asked for.
struct Target {
    path: PathBuf,
    what: What,
}

enum What {
    /// One output, by its index.
    Array(usize),
    /// All outputs.
    Arrays,
    Boxes,
    Picture,
}

/// All of them.
pub struct OutputFiles(Vec<Target>);

/// A file that is there now.
#[derive(Debug, Serialize)]
pub struct WrittenFile {
    /// Its path.
    pub file: String,
    /// In words.
    pub holds: String,
}

/// One output. Smallest, largest and mean are of what is finite, and absent where nothing is.
#[derive(Debug, PartialEq, Serialize)]
pub struct OutputSummary {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The smallest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// The mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// How many values are no number.
    pub nan: u64,
    /// How many values are infinite.
    pub infinite: u64,
}

impl OutputSummary {
    /// Looks at every value.
    pub fn new(view: &TensorView<'_>) -> OutputSummary {
        let spec = output_spec(view);
        let mut summary = OutputSummary {
            name: spec.name,
            dtype: spec.dtype,
            shape: spec.shape,
            min: None,
            max: None,
            mean: None,
            nan: 0,
            infinite: 0,
        };
        match view.data {
            TensorData::F32(data) => summary.look(data.iter().map(|&x| f64::from(x))),
            TensorData::I32(data) => summary.look(data.iter().map(|&x| f64::from(x))),
            TensorData::I64(data) => summary.look(data.iter().map(|&x| x as f64)),
        }
        summary
    }

    fn look(&mut self, values: impl Iterator<Item = f64>) {
        let (mut sum, mut count) = (0.0, 0u64);
        for x in values {
            self.nan += u64::from(x.is_nan());
            self.infinite += u64::from(x.is_infinite());
            if x.is_finite() {
                self.min = Some(self.min.map_or(x, |min| min.min(x)));
                self.max = Some(self.max.map_or(x, |max| max.max(x)));
                sum += x;
                count += 1;
            }
        }
        self.mean = (count > 0).then(|| sum / count as f64);
    }

    /// Whether every value is a number.
    pub fn is_finite(&self) -> bool {
        self.nan + self.infinite == 0
    }
}

/// What a `.json` holds.
#[derive(Serialize)]
struct BoxFile {
    image: String,
    width: u32,
    height: u32,
    head: String,
    detections: Vec<NamedBox>,
}

impl OutputFiles {
    /// Checks the files against what the model gives.
    pub fn find(given: &[String], outputs: &[TensorInfo], has_image: bool) -> anyhow::Result<OutputFiles> {
        let mut targets: Vec<Target> = Vec::new();
        for text in given {
            let (index, path) = named(text, outputs, "output")?;
            let path = path.as_path();
            let what = match (ending(path), index, outputs) {
                ("npy", Some(index), _) => What::Array(index),
                ("npy", None, [_]) => What::Array(0),
                ("npy", None, _) => {
                    bail!("--output {text}: say which, as NAME={text}, or give an .npz; it has {}", list(outputs))
                }
                ("npz", None, _) => What::Arrays,
                ("json", None, _) => What::Boxes,
                ("jpg" | "jpeg" | "png", None, _) => What::Picture,
                ("npz" | "json" | "jpg" | "jpeg" | "png", Some(_), _) => {
                    bail!("--output {text}: a single output goes into an .npy")
                }
                _ => bail!("--output {text}: give an .npy, .npz, .json, .jpg or .png"),
            };
            let boxes = matches!(what, What::Boxes | What::Picture);
            ensure!(has_image || !boxes, "--output {text}: boxes need an image as --input");
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            ensure!(folder.is_dir(), "--output {text}: there is no folder {}", folder.display());
            ensure!(!path.is_dir(), "--output {text}: {} is a folder", path.display());
            ensure!(targets.iter().all(|target| target.path != path), "--output {text}: the same file twice");
            targets.push(Target { path: path.to_owned(), what });
        }
        Ok(OutputFiles(targets))
    }

    /// Whether nothing makes sense without boxes.
    pub fn need_boxes(&self) -> bool {
        self.0.iter().any(|target| matches!(target.what, What::Boxes | What::Picture))
    }

    /// Writes them all.
    pub fn write(
        &self,
        session: &dyn Session,
        inputs: &ModelInputs,
        boxes: Option<&Boxes>,
        names: &[String],
    ) -> anyhow::Result<Vec<WrittenFile>> {
        let mut written = Vec::new();
        for Target { path, what } in &self.0 {
            let (bytes, holds) = match (what, boxes, inputs.picture()) {
                (What::Array(index), ..) => {
                    let view = session.output(0, *index);
                    (npy_bytes(&view), in_words(&view))
                }
                (What::Arrays, ..) => {
                    let views: Vec<TensorView<'_>> =
                        (0..session.output_count()).map(|i| session.output(0, i)).collect();
                    (npz_bytes(&views)?, views.iter().map(in_words).collect::<Vec<_>>().join(", "))
                }
                (What::Boxes, Some(boxes), Some(picture)) => {
                    let (width, height) = (picture.image.width(), picture.image.height());
                    let found = boxes.named(names);
                    let holds = counted(found.len());
                    let image = path_to_text(&picture.path);
                    let all = BoxFile { image, width, height, head: boxes.head(), detections: found };
                    (serde_json::to_vec_pretty(&all)?, holds)
                }
                (What::Picture, Some(boxes), Some(picture)) => {
                    let side = picture.image.width().max(picture.image.height());
                    let drawn = draw::detections(&picture.image, &boxes.found, names, side);
                    let bytes =
                        if ending(path) == "png" { png::encode_png(&drawn)? } else { jpeg::encode_jpeg(&drawn)? };
                    (bytes, format!("{} on {}x{}", counted(boxes.found.len()), drawn.width(), drawn.height()))
                }
                (What::Boxes | What::Picture, ..) => bail!("{}: there are no boxes", path.display()),
            };
            prony_store::write_atomic(path, &bytes)?;
            written.push(WrittenFile { file: path_to_text(path), holds });
        }
        Ok(written)
    }
}

fn in_words(view: &TensorView<'_>) -> String {
    format!("{} {}", view.name, describe(output_spec(view).dtype, view.shape))
}

/// `1 box`, `2 boxes`.
pub fn counted(boxes: usize) -> String {
    format!("{boxes} {}", if boxes == 1 { "box" } else { "boxes" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_is_counted_and_left_out() {
        let data = [1.0, f32::NAN, -3.0, f32::INFINITY, 5.0];
        let summary = OutputSummary::new(&TensorView { name: "y", shape: &[5], data: TensorData::F32(&data) });
        assert_eq!((summary.min, summary.max, summary.mean), (Some(-3.0), Some(5.0), Some(1.0)));
        assert_eq!((summary.nan, summary.infinite), (1, 1));
        assert!(!summary.is_finite());
        let empty = OutputSummary::new(&TensorView { name: "y", shape: &[0], data: TensorData::I64(&[]) });
        assert_eq!((empty.min, empty.mean), (None, None));
        assert!(empty.is_finite());
    }
}
