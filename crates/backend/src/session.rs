//! A loaded model: buffers made once, calls in flight by slot.

use std::path::PathBuf;

use half::{bf16, f16};
use prony_model::ModelFile;
use prony_types::{
    BackendRecord, DType, DeviceUse, Dim, Precision, ProviderSpec, RuntimeSpec, TensorInfo, TensorSpec, TensorView,
};

use crate::BackendError;

/// What a session is asked to be.
#[derive(Clone, Debug)]
pub struct SessionSpec<'a> {
    /// The model.
    pub model: &'a ModelFile,
    /// Arithmetic asked for.
    pub precision: Precision,
    /// Frames a call.
    pub batch: u32,
    /// Height and width for inputs whose size is free.
    pub imgsz: Option<[u32; 2]>,
    /// Index of the device.
    pub device: u32,
    /// CPU threads.
    pub threads: u32,
    /// Slots: how many calls may be in flight.
    pub slots: usize,
    /// The library to open; `None` for the embedded engine.
    pub runtime: Option<RuntimeSpec>,
    /// What the provider is told.
    pub provider: ProviderSpec,
    /// What really runs, where that is not the model's own file; see [`crate::open_artifact`].
    pub artifact: Option<ModelFile>,
    /// Shapes of inputs by name, where the caller decided them.
    pub shapes: Vec<(String, Vec<usize>)>,
    /// Where files may be written that are gone afterwards; the system's folder for such where there is none.
    pub scratch: Option<PathBuf>,
}

impl<'a> SessionSpec<'a> {
    /// One slot, batch 1, one thread, fp32 on the first device.
    pub fn new(model: &'a ModelFile) -> SessionSpec<'a> {
        SessionSpec {
            model,
            precision: Precision::Fp32,
            batch: 1,
            imgsz: None,
            device: 0,
            threads: 1,
            slots: 1,
            runtime: None,
            provider: ProviderSpec::default(),
            artifact: None,
            shapes: Vec::new(),
            scratch: None,
        }
    }
}

/// Device-side durations of one call. A stage that does not exist is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Host to device.
    pub h2d_ns: Option<u64>,
    /// The model.
    pub inference_ns: u64,
    /// Device to host.
    pub d2h_ns: Option<u64>,
}

/// An input buffer of a slot, to be filled before `submit`.
#[derive(Debug)]
pub enum SlotInput<'a> {
    /// 32-bit floats.
    F32(&'a mut [f32]),
    /// 16-bit floats.
    F16(&'a mut [f16]),
    /// bfloat16.
    Bf16(&'a mut [bf16]),
    /// 64-bit floats.
    F64(&'a mut [f64]),
    /// Signed bytes.
    I8(&'a mut [i8]),
    /// Unsigned bytes; truth values as 0 and 1.
    U8(&'a mut [u8]),
    /// 32-bit integers.
    I32(&'a mut [i32]),
    /// 64-bit integers.
    I64(&'a mut [i64]),
}

impl SlotInput<'_> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            SlotInput::F32(data) => data.len(),
            SlotInput::F16(data) => data.len(),
            SlotInput::Bf16(data) => data.len(),
            SlotInput::F64(data) => data.len(),
            SlotInput::I8(data) => data.len(),
            SlotInput::U8(data) => data.len(),
            SlotInput::I32(data) => data.len(),
            SlotInput::I64(data) => data.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A loaded model. Inputs and outputs belong to a slot; a slot's outputs stay until its next `submit`.
pub trait Session {
    /// What executes, for the record.
    fn record(&self) -> BackendRecord;

    /// The arithmetic that is really executed.
    fn executed(&self) -> String;

    /// The inputs, every axis decided.
    fn inputs(&self) -> &[TensorSpec];

    /// Number of slots.
    fn slots(&self) -> usize;

    /// The buffer of an input. What was written stays there over any number of calls.
    fn input(&mut self, slot: usize, index: usize) -> SlotInput<'_>;

    /// Starts a call.
    fn submit(&mut self, slot: usize) -> Result<(), BackendError>;

    /// Waits for a call to end.
    fn collect(&mut self, slot: usize) -> Result<Timing, BackendError>;

    /// One call with nothing else in flight: latency mode. Backends that can do it without a hand-over override it.
    fn run(&mut self, slot: usize) -> Result<Timing, BackendError> {
        self.submit(slot)?;
        self.collect(slot)
    }

    /// Number of outputs.
    fn output_count(&self) -> usize;

    /// Memory of the device that this process has taken, where there is one.
    fn device_use(&self) -> Option<DeviceUse> {
        None
    }

    /// An output of the last collected call.
    fn output(&self, slot: usize, index: usize) -> TensorView<'_>;
}

/// Every input of a model with every axis decided.
pub(crate) fn decide_inputs(spec: &SessionSpec<'_>) -> Result<Vec<TensorSpec>, BackendError> {
    let decide = |tensor: &TensorInfo| match spec.shapes.iter().find(|(name, _)| *name == tensor.name) {
        Some((_, shape)) => given_shape(tensor, shape),
        None => decide_shape(tensor, spec.batch, spec.imgsz),
    };
    spec.model.info.inputs.iter().map(decide).collect()
}

/// A shape that the caller decided, held against the declared one.
pub(crate) fn given_shape(tensor: &TensorInfo, shape: &[usize]) -> Result<TensorSpec, BackendError> {
    let refuse = |what: String| Err(BackendError::Shape { tensor: tensor.clone(), what });
    if shape.len() != tensor.dims.len() {
        return refuse(format!("{shape:?}, which has {} axes instead of {}", shape.len(), tensor.dims.len()));
    }
    for (axis, (dim, &asked)) in tensor.dims.iter().zip(shape).enumerate() {
        if let Dim::Fixed(n) = dim
            && *n != asked as u64
        {
            return refuse(format!("{asked} at axis {axis}; it is fixed at {n}"));
        }
    }
    Ok(TensorSpec { name: tensor.name.clone(), dtype: tensor.dtype, shape: shape.to_vec() })
}

/// Decides every axis of an input: the first free one is the batch, two free ones at the end are height and width.
pub(crate) fn decide_shape(
    tensor: &TensorInfo,
    batch: u32,
    imgsz: Option<[u32; 2]>,
) -> Result<TensorSpec, BackendError> {
    let refuse = |what: String| BackendError::Shape { tensor: tensor.clone(), what };
    let is_image = tensor.dims.len() == 4;
    let mut shape = Vec::with_capacity(tensor.dims.len());
    for (axis, dim) in tensor.dims.iter().enumerate() {
        let wanted = match (axis, imgsz) {
            // The first axis of a tensor that is no image need not be a batch.
            (0, _) if !is_image && batch == 1 && matches!(dim, Dim::Fixed(_)) => None,
            (0, _) => Some(batch),
            (2, Some([height, _])) if is_image => Some(height),
            (3, Some([_, width])) if is_image => Some(width),
            _ => None,
        };
        let decided = match (dim, wanted) {
            (Dim::Fixed(n), Some(w)) if *n != u64::from(w) => {
                let (what, flag) = if axis == 0 { ("batch", "--batch") } else { ("size", "--imgsz") };
                return Err(refuse(format!("{what} {w} at axis {axis}; it is fixed at {n} (use {flag} {n})")));
            }
            (Dim::Fixed(n), _) => *n,
            (Dim::Named(_), Some(w)) => u64::from(w),
            (Dim::Named(name), None) => {
                let name = if name.is_empty() { String::new() } else { format!(" (`{name}`)") };
                return Err(refuse(format!("a free axis {axis}{name} without a size; give --imgsz")));
            }
        };
        let decided = usize::try_from(decided).ok().filter(|&n| n > 0);
        shape.push(decided.ok_or_else(|| refuse(format!("an empty axis {axis}")))?);
    }
    let elements = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).filter(|&n| n <= MAX_ELEMENTS);
    if elements.is_none() {
        return Err(refuse(format!("{shape:?}, more than {MAX_ELEMENTS} elements")));
    }
    if tensor.dtype == DType::Other {
        return Err(BackendError::InputType { name: tensor.name.clone(), dtype: tensor.dtype });
    }
    Ok(TensorSpec { name: tensor.name.clone(), dtype: tensor.dtype, shape })
}

/// Input tensors above this are a mistake, not a model: 2^31 elements.
const MAX_ELEMENTS: usize = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    fn image(dims: Vec<Dim>) -> TensorInfo {
        TensorInfo { name: "images".into(), dtype: DType::F32, dims }
    }

    #[test]
    fn free_axes_take_batch_and_size() {
        let free = || Dim::Named(String::new());
        let spec = decide_shape(&image(vec![free(), Dim::Fixed(3), free(), free()]), 2, Some([320, 640])).unwrap();
        assert_eq!(spec.shape, [2, 3, 320, 640]);
    }

    #[test]
    fn a_fixed_axis_is_not_overruled() {
        let fixed = image([1, 3, 320, 320].map(Dim::Fixed).to_vec());
        assert!(decide_shape(&fixed, 1, Some([320, 320])).is_ok());
        let error = decide_shape(&fixed, 4, None).unwrap_err().to_string();
        assert!(error.ends_with("does not take batch 4 at axis 0; it is fixed at 1 (use --batch 1)"), "{error}");
        let error = decide_shape(&fixed, 1, Some([640, 640])).unwrap_err().to_string();
        assert!(error.contains("size 640 at axis 2; it is fixed at 320"), "{error}");
    }

    #[test]
    fn a_first_axis_that_is_no_batch_is_left_alone() {
        let table = TensorInfo { name: "t".into(), dtype: DType::F32, dims: [100, 5].map(Dim::Fixed).to_vec() };
        assert_eq!(decide_shape(&table, 1, None).unwrap().shape, [100, 5]);
        assert!(decide_shape(&table, 2, None).is_err());
    }

    #[test]
    fn an_axis_nobody_decided_is_an_error() {
        let tokens =
            TensorInfo { name: "ids".into(), dtype: DType::I64, dims: vec![Dim::Fixed(1), Dim::Named("n".into())] };
        let error = decide_shape(&tokens, 1, None).unwrap_err().to_string();
        assert!(error.contains("free axis 1 (`n`)"), "{error}");
    }
}
