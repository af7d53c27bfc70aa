//! The few calls of ONNX Runtime's C interface that the timed path needs as they are: a call without an allocation of
//! ours, on values made once, from several threads. Everything else goes through the `ort` crate.
#![expect(unsafe_code, reason = "calls of a C interface; each block says why it holds")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::PathBuf;
use std::ptr::{NonNull, null_mut};

use half::{bf16, f16};
use ort::AsPointer as _;
use ort::memory::MemoryInfo;
use ort::session::{NoSelectedOutputs, RunOptions, Session};
use ort::sys::{
    ONNXTensorElementDataType as Element, OrtIoBinding, OrtSession, OrtStatusPtr, OrtTensorTypeAndShapeInfo, OrtValue,
};
use prony_types::{DType, TensorSpec};

use crate::buffer::{Raw, element_bytes};

/// The library's words where a call failed.
fn check(status: OrtStatusPtr) -> Result<(), String> {
    let Some(status) = NonNull::new(status.0) else { return Ok(()) };
    let api = ort::api();
    // SAFETY: a status that is not null is valid until it is released, which happens once, after its text was copied.
    unsafe {
        let text = CStr::from_ptr((api.GetErrorMessage)(status.as_ptr())).to_string_lossy().into_owned();
        (api.ReleaseStatus)(status.as_ptr());
        Err(text)
    }
}

fn element(dtype: DType) -> Option<Element> {
    Some(match dtype {
        DType::F32 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
        DType::F16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
        DType::Bf16 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
        DType::F64 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
        DType::I8 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
        DType::U8 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
        DType::I32 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
        DType::I64 => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
        DType::Bool => Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
        DType::Other => return None,
    })
}

fn dtype_of(element: Element) -> DType {
    let known =
        [DType::F32, DType::F16, DType::Bf16, DType::F64, DType::I8, DType::U8, DType::I32, DType::I64, DType::Bool];
    known.into_iter().find(|&dtype| self::element(dtype) == Some(element)).unwrap_or(DType::Other)
}

/// A tensor of the library.
#[derive(Debug)]
pub(super) struct Value(NonNull<OrtValue>);

// SAFETY: a value may be used from any thread, one at a time, which `&mut` and moving it ensure.
unsafe impl Send for Value {}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: the pointer came from the library and is released once.
        unsafe { (ort::api().ReleaseValue)(self.0.as_ptr()) }
    }
}

impl Value {
    /// A tensor over memory that somebody else owns.
    ///
    /// # Safety
    /// `data` must be memory of the kind `info` names, large enough for `spec`, and outlive the value.
    pub(super) unsafe fn over(info: &MemoryInfo<'_>, data: *mut c_void, spec: &TensorSpec) -> Result<Value, String> {
        let unknown = || format!("{} has a type that cannot be fed", spec.name);
        let (element, size) = element(spec.dtype).zip(element_bytes(spec.dtype)).ok_or_else(unknown)?;
        let shape: Vec<i64> = spec.shape.iter().map(|&n| n as i64).collect();
        let mut value = null_mut();
        // SAFETY: by the caller's word about `data`; the library copies the shape.
        check(unsafe {
            (ort::api().CreateTensorWithDataAsOrtValue)(
                info.ptr(),
                data,
                spec.len() * size,
                shape.as_ptr(),
                shape.len(),
                element,
                &mut value,
            )
        })?;
        NonNull::new(value).map(Value).ok_or_else(|| "no tensor was made".to_owned())
    }

    pub(super) fn ptr(&self) -> *const OrtValue {
        self.0.as_ptr()
    }

    /// Its shape goes into `shape`, its type comes back.
    pub(super) fn describe(&self, shape: &mut Vec<usize>) -> Result<DType, String> {
        let api = ort::api();
        let mut info: *mut OrtTensorTypeAndShapeInfo = null_mut();
        let (mut axes, mut element) = (0, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
        // SAFETY: the value is alive; `info` is asked only after the call that made it succeeded, and released once.
        unsafe {
            check((api.GetTensorTypeAndShape)(self.ptr(), &mut info))?;
            let described = check((api.GetTensorElementType)(info, &mut element))
                .and_then(|()| check((api.GetDimensionsCount)(info, &mut axes)))
                .and_then(|()| {
                    let mut dims = vec![0i64; axes];
                    check((api.GetDimensions)(info, dims.as_mut_ptr(), axes))?;
                    shape.clear();
                    shape.extend(dims.iter().map(|&n| usize::try_from(n).unwrap_or(0)));
                    Ok(())
                });
            (api.ReleaseTensorTypeAndShapeInfo)(info);
            described?;
        }
        Ok(dtype_of(element))
    }

    /// Where its elements are.
    pub(super) fn data(&self) -> Result<*mut c_void, String> {
        let mut data = null_mut();
        // SAFETY: the value is alive and a tensor; the call only reads the pointer out of it.
        check(unsafe { (ort::api().GetTensorMutableData)(self.0.as_ptr(), &mut data) })?;
        Ok(data)
    }
}

/// Reads `len` elements at `data`.
///
/// # Safety
/// `data` must be host memory with `len` initialised elements of `dtype` that nobody writes to during `'a`.
pub(super) unsafe fn elements<'a>(dtype: DType, data: *const c_void, len: usize) -> Option<Raw<'a>> {
    // An empty tensor may have no memory at all.
    if len == 0 || data.is_null() {
        return Raw::empty(dtype);
    }
    // SAFETY: by the caller's word; the library aligns its tensors to more than any element needs.
    unsafe {
        Some(match dtype {
            DType::F32 => Raw::F32(std::slice::from_raw_parts(data.cast(), len)),
            DType::F16 => Raw::F16(std::slice::from_raw_parts(data.cast::<f16>(), len)),
            DType::Bf16 => Raw::Bf16(std::slice::from_raw_parts(data.cast::<bf16>(), len)),
            DType::F64 => Raw::F64(std::slice::from_raw_parts(data.cast(), len)),
            DType::I8 => Raw::I8(std::slice::from_raw_parts(data.cast(), len)),
            DType::U8 | DType::Bool => Raw::U8(std::slice::from_raw_parts(data.cast(), len)),
            DType::I32 => Raw::I32(std::slice::from_raw_parts(data.cast(), len)),
            DType::I64 => Raw::I64(std::slice::from_raw_parts(data.cast(), len)),
            DType::Other => return None,
        })
    }
}

/// A loaded model that can be called.
pub(super) struct Model {
    /// Owns what `ptr` points at.
    _session: Session,
    ptr: *mut OrtSession,
    options: RunOptions<NoSelectedOutputs>,
    /// Owns what the pointers below point at.
    names: Vec<CString>,
    inputs: Vec<*const c_char>,
    outputs: Vec<*const c_char>,
}

// SAFETY: `Run` of one session may be called from several threads at once, as the library documents; the rest is only
// read.
unsafe impl Send for Model {}
// SAFETY: as above.
unsafe impl Sync for Model {}

impl Model {
    /// Takes a session; names in the order in which values will be handed over.
    pub(super) fn new(
        session: Session,
        options: RunOptions<NoSelectedOutputs>,
        inputs: &[&str],
        outputs: &[&str],
    ) -> Result<Model, String> {
        let names = inputs.iter().chain(outputs).map(|&name| CString::new(name)).collect::<Result<Vec<_>, _>>();
        let names = names.map_err(|_| "a tensor's name holds a zero byte".to_owned())?;
        let pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let (inputs, outputs) = pointers.split_at(inputs.len());
        let (inputs, outputs) = (inputs.to_vec(), outputs.to_vec());
        Ok(Model { ptr: session.ptr().cast_mut(), _session: session, options, names, inputs, outputs })
    }

    /// Ends the profile of a session that was made with one; the file it is in.
    pub(super) fn end_profile(&self) -> Result<PathBuf, String> {
        let api = ort::api();
        let (mut allocator, mut name) = (null_mut(), null_mut());
        // SAFETY: the session is alive. The name is copied and then freed with the allocator that made it.
        unsafe {
            check((api.GetAllocatorWithDefaultOptions)(&mut allocator))?;
            check((api.SessionEndProfiling)(self.ptr, allocator, &mut name))?;
            let file = CStr::from_ptr(name).to_string_lossy().into_owned();
            check((api.AllocatorFree)(allocator, name.cast()))?;
            Ok(PathBuf::from(file))
        }
    }

    /// One call. An output that is null is made by the library and belongs to the caller afterwards.
    pub(super) fn run(&self, inputs: &[*const OrtValue], outputs: &mut [*mut OrtValue]) -> Result<(), String> {
        debug_assert_eq!((inputs.len(), outputs.len()), (self.inputs.len(), self.outputs.len()));
        // SAFETY: names and values are alive and as many as is said; the session lives as long as `self`.
        check(unsafe {
            (ort::api().Run)(
                self.ptr,
                self.options.ptr(),
                self.inputs.as_ptr(),
                inputs.as_ptr(),
                inputs.len(),
                self.outputs.as_ptr(),
                self.outputs.len(),
                outputs.as_mut_ptr(),
            )
        })
    }
}

/// Takes over a value that [`Model::run`] made.
///
/// # Safety
/// The pointer must come from the library and be owned by nobody else.
pub(super) unsafe fn adopt(value: *mut OrtValue) -> Option<Value> {
    NonNull::new(value).map(Value)
}

/// Inputs and outputs bound to memory once, on a device or not.
pub(super) struct Binding(NonNull<OrtIoBinding>);

impl Drop for Binding {
    fn drop(&mut self) {
        // SAFETY: made by the library, released once.
        unsafe { (ort::api().ReleaseIoBinding)(self.0.as_ptr()) }
    }
}

impl Binding {
    pub(super) fn new(model: &Model) -> Result<Binding, String> {
        let mut binding = null_mut();
        // SAFETY: the session is alive.
        check(unsafe { (ort::api().CreateIoBinding)(model.ptr, &mut binding) })?;
        NonNull::new(binding).map(Binding).ok_or_else(|| "no binding was made".to_owned())
    }

    pub(super) fn input(&mut self, model: &Model, index: usize, value: &Value) -> Result<(), String> {
        // SAFETY: all three are alive; the binding keeps its own reference to the value.
        check(unsafe { (ort::api().BindInput)(self.0.as_ptr(), model.inputs[index], value.ptr()) })
    }

    pub(super) fn output(&mut self, model: &Model, index: usize, value: &Value) -> Result<(), String> {
        // SAFETY: as above.
        check(unsafe { (ort::api().BindOutput)(self.0.as_ptr(), model.outputs[index], value.ptr()) })
    }

    /// The library makes this output anew in each call, in the memory that `info` names.
    pub(super) fn output_in(&mut self, model: &Model, index: usize, info: &MemoryInfo<'_>) -> Result<(), String> {
        // SAFETY: all three are alive.
        check(unsafe { (ort::api().BindOutputToDevice)(self.0.as_ptr(), model.outputs[index], info.ptr()) })
    }

    pub(super) fn run(&self, model: &Model) -> Result<(), String> {
        // SAFETY: the session is alive, and so is everything that is bound.
        check(unsafe { (ort::api().RunWithBinding)(model.ptr, model.options.ptr(), self.0.as_ptr()) })
    }

    /// The outputs of the last call, in the order in which they were bound.
    pub(super) fn outputs(&self) -> Result<Vec<Value>, String> {
        let api = ort::api();
        let (mut allocator, mut values, mut count) = (null_mut(), null_mut(), 0);
        // SAFETY: the default allocator lives as long as the library. The array is copied and then freed with the
        // allocator that made it; the values in it are the caller's.
        unsafe {
            check((api.GetAllocatorWithDefaultOptions)(&mut allocator))?;
            check((api.GetBoundOutputValues)(self.0.as_ptr(), allocator, &mut values, &mut count))?;
            let owned = (0..count).filter_map(|i| adopt(*values.add(i))).collect();
            check((api.AllocatorFree)(allocator, values.cast()))?;
            Ok(owned)
        }
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("names", &self.names).finish_non_exhaustive()
    }
}
