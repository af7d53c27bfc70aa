//! What can be asked for, and what a checkpoint may say of itself, before anything is read.

use prony_model::pt::Checkpoint;

use super::place::Place;
use super::{DEFAULT_IMGSZ, ExportOptions, OPSETS};
use crate::ForgeError;

/// Most images a call.
const BATCH: u32 = 4096;
/// Longest side of an image.
const SIDE: u32 = 8192;
/// What fits into a file of protocol buffers.
const LARGEST: u64 = (1 << 31) - (1 << 20);

/// Refuses what cannot be written.
pub(super) fn check(options: &ExportOptions) -> Result<(), ForgeError> {
    let wrong = |reason: String| Err(ForgeError::Model(reason));
    if !OPSETS.contains(&options.opset) {
        return wrong(format!(
            "operator set {} is not supported; {} to {} are",
            options.opset,
            OPSETS.start(),
            OPSETS.end()
        ));
    }
    if !(1..=BATCH).contains(&options.batch) {
        return wrong(format!("a batch of {} is not supported; 1 to {BATCH} are", options.batch));
    }
    Ok(())
}

/// Refuses weights that say they are more than the file can hold: many tensors over one storage, or compressed nothing.
pub(super) fn bounded(checkpoint: &Checkpoint) -> Result<(), ForgeError> {
    let mut elements = 0u64;
    if let Some(model) = &checkpoint.model {
        model.visit(&mut |module| {
            let tensors = module.parameters.iter().chain(&module.buffers).filter_map(|(_, tensor)| tensor.as_ref());
            elements += tensors.map(|tensor| tensor.elements() as u64).sum::<u64>();
        });
    }
    // Half floats, which are the smallest that weights are saved as.
    let file = checkpoint.archive.len() as u64;
    if elements.saturating_mul(2) > file.saturating_mul(4) {
        return Err(ForgeError::Model(format!(
            "its weights are said to have {elements} elements, which a file of {file} bytes does not hold"
        )));
    }
    match elements.saturating_mul(4) > LARGEST {
        true => {
            Err(ForgeError::Unsupported(format!("it has {elements} weights, and an ONNX file holds 2 GiB at most")))
        }
        false => Ok(()),
    }
}

/// The size that was asked for, or the one that the model was trained with. Every level must divide it.
pub(super) fn image_size(checkpoint: &Checkpoint, asked: Option<[u32; 2]>) -> Result<[u32; 2], ForgeError> {
    let trained = checkpoint.imgsz.and_then(|[height, width]| {
        let side = |side: i64| u32::try_from(side).ok().filter(|side| (1..=SIDE).contains(side));
        Some([side(height)?, side(width)?])
    });
    let size = asked.or(trained).unwrap_or(DEFAULT_IMGSZ);
    let largest = checkpoint.strides.iter().copied().fold(0.0, f32::max);
    let whole = (1.0..=1024.0).contains(&largest) && largest.fract() == 0.0;
    if !whole {
        return Err(ForgeError::Model(format!(
            "its strides are {:?}, and whole numbers were expected",
            checkpoint.strides
        )));
    }
    let stride = largest as u32;
    if size.iter().all(|side| (1..=SIDE).contains(side) && side % stride == 0) {
        return Ok(size);
    }
    let fitting = size.map(|side| side.clamp(1, SIDE).next_multiple_of(stride).min(SIDE / stride * stride));
    let text = |[height, width]: [u32; 2]| format!("{height}x{width}");
    Err(ForgeError::Model(format!(
        "an image of {} does not fit its largest stride of {stride}; --imgsz {} does",
        text(size),
        text(fitting)
    )))
}

/// Channels of the image: what the first convolution takes.
pub(super) fn channels(checkpoint: &Checkpoint, layers: &Place<'_>) -> Result<usize, ForgeError> {
    let mut first = None;
    layers.module.visit(&mut |module| {
        if first.is_none() && module.class.name == "Conv2d" {
            first = module.attribute("in_channels").and_then(|id| checkpoint.pickle.int(id));
        }
    });
    let channels = first.and_then(|channels| usize::try_from(channels).ok()).filter(|n| (1..=1024).contains(n));
    channels.ok_or_else(|| layers.fault("it has no convolution that says how many channels an image has"))
}
