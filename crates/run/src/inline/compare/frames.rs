//! What both models are fed: images where they take one, random values otherwise.

use anyhow::{bail, ensure};
use prony_bench::tensors::image_size;
use prony_source::{folder, scenes};
use prony_types::{Image, ModelSource, TensorSpec};

use super::Comparison;
use prony_plan::images::meant;
use prony_plan::named::Opened;

/// Frames, decoded and in memory.
pub(super) struct SharedFrames {
    frames: Frames,
    /// In words.
    pub(super) source: String,
    pub(super) notes: Vec<String>,
}

enum Frames {
    Images(Vec<Image>),
    /// One entry a frame, each with one vector an input.
    Values(Vec<Vec<Vec<f32>>>),
}

/// One of them.
pub(super) enum Frame<'a> {
    Image(&'a Image),
    Values(&'a [Vec<f32>]),
}

impl SharedFrames {
    /// Built-in scenes are of the kind that the first model knows; an engine may not say, then the second decides.
    pub(super) fn new(
        spec: &Comparison<'_>,
        models: [&Opened; 2],
        inputs: &[TensorSpec],
    ) -> anyhow::Result<SharedFrames> {
        let takes_images = matches!(inputs, [input] if image_size(input).is_some());
        match spec.source {
            Some(dir) if dir.as_os_str() != "scenes" => {
                ensure!(takes_images, "{} takes no image [N,3,H,W], so --source is of no use", spec.names[0]);
                let (dir, note) = meant("--source", dir)?;
                let mut notes: Vec<String> = note.into_iter().collect();
                let mut images = Vec::new();
                for path in folder::images(&dir)? {
                    if images.len() >= spec.frames as usize {
                        break;
                    }
                    match folder::load(&path) {
                        Ok(image) => images.push(image),
                        Err(error) => notes.push(format!("skipped: {error}")),
                    }
                }
                if images.is_empty() {
                    bail!("none of the images in {} can be read: {}", dir.display(), notes.join("; "));
                }
                let source = format!("{} images of {}", images.len(), dir.display());
                Ok(SharedFrames { frames: Frames::Images(images), source, notes })
            }
            _ if takes_images => {
                let says = |model: &&Opened| {
                    matches!(model.spec.source, ModelSource::Builtin(_)) || !model.file.info.metadata.names.is_empty()
                };
                let [first, _] = models;
                let model = models.into_iter().find(says).unwrap_or(first);
                let kind = scenes::kind_for(&model.spec.source, &model.file.info.metadata.names);
                let images = (0..spec.frames).map(|i| scenes::scene(kind, spec.seed, i).image).collect();
                let source = format!("built-in {kind} scenes, seed {}", spec.seed);
                Ok(SharedFrames { frames: Frames::Images(images), source, notes: Vec::new() })
            }
            _ => {
                let source = format!("random values from 0 to 1, seed {}", spec.seed);
                Ok(SharedFrames { frames: Frames::Values(random(spec, inputs)), source, notes: Vec::new() })
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match &self.frames {
            Frames::Images(images) => images.len(),
            Frames::Values(values) => values.len(),
        }
    }

    pub(super) fn is_images(&self) -> bool {
        matches!(self.frames, Frames::Images(_))
    }

    pub(super) fn frame(&self, index: usize) -> Frame<'_> {
        match &self.frames {
            Frames::Images(images) => Frame::Image(&images[index]),
            Frames::Values(values) => Frame::Values(&values[index]),
        }
    }
}

fn random(spec: &Comparison<'_>, inputs: &[TensorSpec]) -> Vec<Vec<Vec<f32>>> {
    let mut state = spec.seed ^ 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        // An LCG with Knuth's multiplier; the upper bits are good enough to be "some input".
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    let mut frame = || inputs.iter().map(|input| (0..input.len()).map(|_| next()).collect()).collect();
    (0..spec.frames).map(|_| frame()).collect()
}
