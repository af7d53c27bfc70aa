//! Tensors of a request: inputs that are filled in place, outputs that are read where OpenVINO left them.

use ::openvino::{CompiledModel, ElementType, InferRequest, InferenceError, Shape, Tensor};
use half::{bf16, f16};
use prony_types::{DType, TensorData, TensorSpec};

use super::words;
use crate::SlotInput;

/// A tensor of zeros for an input; `None` for a type that OpenVINO does not have.
pub(super) fn input(spec: &TensorSpec) -> Result<Option<Tensor>, InferenceError> {
    let Some(element) = element_type(spec.dtype) else { return Ok(None) };
    let dims: Vec<i64> = spec.shape.iter().map(|&n| n as i64).collect();
    Tensor::new(element, &Shape::new(&dims)?).map(Some)
}

fn element_type(dtype: DType) -> Option<ElementType> {
    match dtype {
        DType::F32 => Some(ElementType::F32),
        DType::F16 => Some(ElementType::F16),
        DType::Bf16 => Some(ElementType::Bf16),
        DType::F64 => Some(ElementType::F64),
        DType::I8 => Some(ElementType::I8),
        DType::U8 => Some(ElementType::U8),
        DType::I32 => Some(ElementType::I32),
        DType::I64 => Some(ElementType::I64),
        DType::Bool => Some(ElementType::Boolean),
        DType::Other => None,
    }
}

/// An input's memory.
pub(super) fn slot_input(tensor: &mut Tensor, dtype: DType) -> SlotInput<'_> {
    match dtype {
        DType::F16 => SlotInput::F16(values_mut(tensor)),
        DType::Bf16 => SlotInput::Bf16(values_mut(tensor)),
        DType::F64 => SlotInput::F64(values_mut(tensor)),
        DType::I8 => SlotInput::I8(values_mut(tensor)),
        DType::U8 | DType::Bool => SlotInput::U8(values_mut(tensor)),
        DType::I32 => SlotInput::I32(values_mut(tensor)),
        DType::I64 => SlotInput::I64(values_mut(tensor)),
        // `input` makes no tensor of another type.
        DType::F32 | DType::Other => SlotInput::F32(values_mut(tensor)),
    }
}

fn values_mut<T>(tensor: &mut Tensor) -> &mut [T] {
    if is_empty(tensor) { &mut [] } else { tensor.get_data_mut().unwrap_or_default() }
}

fn values<T>(tensor: &Tensor) -> &[T] {
    if is_empty(tensor) { &[] } else { tensor.get_data().unwrap_or_default() }
}

/// An empty tensor has no address, which the bindings would make a slice of.
fn is_empty(tensor: &Tensor) -> bool {
    tensor.get_byte_size().unwrap_or(0) == 0
}

/// An output of a slot.
pub(super) struct Output {
    index: usize,
    tensor: Tensor,
    element: ElementType,
    /// Whether the shape depends on the values, so that tensor and shape are asked for again after every call.
    varies: bool,
    shape: Vec<usize>,
    kept: Kept,
}

/// Where the values are that a reader gets.
enum Kept {
    /// In OpenVINO's memory, as they are.
    InPlace,
    /// Widened, in a buffer made once.
    Floats(Vec<f32>),
    Ints(Vec<i32>),
}

impl Output {
    pub(super) fn new(compiled: &CompiledModel, request: &InferRequest, index: usize) -> Result<Output, String> {
        let said = |e: InferenceError| words(&e);
        let port = compiled.get_output_by_index(index).map_err(said)?;
        let element = port.get_element_type().map_err(said)?;
        let varies = port.get_partial_shape().map_err(said)?.is_dynamic();
        let kept = match element {
            ElementType::F32 | ElementType::I32 | ElementType::I64 => Kept::InPlace,
            ElementType::F16 | ElementType::Bf16 | ElementType::F64 => Kept::Floats(Vec::new()),
            ElementType::I8 | ElementType::U8 | ElementType::Boolean => Kept::Ints(Vec::new()),
            other => return Err(format!("output {index} is of type {other}, which cannot be read")),
        };
        let tensor = request.get_output_tensor_by_index(index).map_err(said)?;
        let mut output = Output { index, tensor, element, varies, shape: Vec::new(), kept };
        if !varies {
            output.measure()?;
            // Once now, so that the buffers have their size before anything is timed.
            output.widen();
        }
        Ok(output)
    }

    /// Takes over what a call left.
    pub(super) fn refresh(&mut self, request: &InferRequest) -> Result<(), String> {
        if self.varies {
            self.tensor = request.get_output_tensor_by_index(self.index).map_err(|e| words(&e))?;
            self.measure()?;
        }
        self.widen();
        Ok(())
    }

    fn measure(&mut self) -> Result<(), String> {
        let shape = self.tensor.get_shape().map_err(|e| words(&e))?;
        self.shape.clear();
        self.shape.extend(shape.get_dimensions().iter().map(|&n| usize::try_from(n).unwrap_or(0)));
        Ok(())
    }

    fn widen(&mut self) {
        match (&mut self.kept, self.element) {
            (Kept::Floats(to), ElementType::F16) => convert(&self.tensor, to, |x: f16| x.to_f32()),
            (Kept::Floats(to), ElementType::Bf16) => convert(&self.tensor, to, |x: bf16| x.to_f32()),
            (Kept::Floats(to), _) => convert(&self.tensor, to, |x: f64| x as f32),
            (Kept::Ints(to), ElementType::I8) => convert(&self.tensor, to, |x: i8| i32::from(x)),
            (Kept::Ints(to), _) => convert(&self.tensor, to, |x: u8| i32::from(x)),
            (Kept::InPlace, _) => {}
        }
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(super) fn data(&self) -> TensorData<'_> {
        match (&self.kept, self.element) {
            (Kept::Floats(data), _) => TensorData::F32(data),
            (Kept::Ints(data), _) => TensorData::I32(data),
            (Kept::InPlace, ElementType::I32) => TensorData::I32(values(&self.tensor)),
            (Kept::InPlace, ElementType::I64) => TensorData::I64(values(&self.tensor)),
            (Kept::InPlace, _) => TensorData::F32(values(&self.tensor)),
        }
    }
}

fn convert<From: Copy, To>(tensor: &Tensor, to: &mut Vec<To>, one: impl Fn(From) -> To) {
    to.clear();
    to.extend(values::<From>(tensor).iter().map(|&x| one(x)));
}
