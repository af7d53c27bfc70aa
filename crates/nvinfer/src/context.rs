//! An execution context: shapes, addresses, enqueue.
//!
//! Before 8.5 tensors are numbered and all addresses are handed over with each inference; what is set by name is kept
//! here until then. The caller does not notice.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use crate::object::{Held, c_text, call, try_call};
use crate::pointer::{Ptr, Str};
use crate::shape::Dims;
use crate::tables::context;
use crate::{Error, Family, IoTensor, OutputAllocator, Profiler};

/// Executes an engine, one inference at a time.
#[derive(Debug)]
pub struct Context {
    pub(crate) object: Held,
    tensors: Vec<Tensor>,
    bindings: Option<Bindings>,
}

// SAFETY: a context may be used from any thread, one at a time; the addresses are numbers to us.
unsafe impl Send for Context {}

#[derive(Debug)]
struct Tensor {
    name: String,
    /// Made once: addresses are set between inferences that are timed.
    c_name: CString,
    is_input: bool,
}

/// Before 8.5: what tensors were set to.
#[derive(Debug)]
struct Bindings {
    /// Of every profile, in order; only those of the current one are used.
    addresses: Vec<Ptr>,
    /// The number of the current profile's first tensor.
    first: usize,
}

impl Context {
    /// `numbered` is the number of profiles where tensors have numbers and not names.
    pub(crate) fn new(object: Held, io: &[IoTensor], numbered: Option<i32>) -> Result<Context, Error> {
        let tensor = |tensor: &IoTensor| {
            let c_name = c_text("tensor name", tensor.name.as_str())?;
            Ok(Tensor { name: tensor.name.clone(), c_name, is_input: tensor.is_input })
        };
        let tensors = io.iter().map(tensor).collect::<Result<Vec<_>, Error>>()?;
        let bindings = numbered.map(|profiles| {
            let profiles = usize::try_from(profiles).unwrap_or(0).max(1);
            Bindings { addresses: vec![null_mut(); tensors.len() * profiles], first: 0 }
        });
        Ok(Context { object, tensors, bindings })
    }

    fn position(&self, name: &str) -> Result<usize, Error> {
        self.tensors.iter().position(|tensor| tensor.name == name).ok_or_else(|| Error::unknown_tensor(name))
    }

    /// The number of a tensor in the current profile.
    fn binding(&self, position: usize) -> i32 {
        let first = self.bindings.as_ref().map_or(0, |bindings| bindings.first);
        i32::try_from(first + position).unwrap_or(i32::MAX)
    }

    /// Sets the shape of an input.
    pub fn set_input_shape(&mut self, name: &str, shape: &[i64]) -> Result<(), Error> {
        let position = self.position(name)?;
        let object = &self.object;
        let dims = Dims::new(object.family(), name, shape)?;
        let since = object.now();
        // SAFETY: name and shape outlive the call, and the number is one of the engine's.
        let done = unsafe {
            match (&self.bindings, &dims) {
                (Some(_), Dims::Narrow(dims)) => {
                    try_call!(object, context::SET_BINDING_DIMENSIONS, self.binding(position), *dims)
                }
                _ => {
                    let name = self.tensors[position].c_name.as_ptr();
                    try_call!(object, context::SET_INPUT_SHAPE, name, dims.address())
                }
            }
        };
        object.accepted(done, || format!("shape {shape:?} of input '{name}'"), since)
    }

    /// The shape that a tensor has now; -1 where an input's shape or the data are still missing for that.
    pub fn shape(&self, name: &str) -> Result<Vec<i64>, Error> {
        self.shape_at(self.position(name)?)
    }

    fn shape_at(&self, position: usize) -> Result<Vec<i64>, Error> {
        let (object, tensor) = (&self.object, &self.tensors[position]);
        let since = object.now();
        // SAFETY: the name outlives the call, and the number is one of the engine's.
        let dims: Dims = unsafe {
            match (&self.bindings, object.family()) {
                (Some(_), _) => try_call!(object, context::GET_BINDING_DIMENSIONS, self.binding(position)).into(),
                (None, Family::V8) => try_call!(object, context::GET_TENSOR_SHAPE_8, tensor.c_name.as_ptr()).into(),
                _ => try_call!(object, context::GET_TENSOR_SHAPE, tensor.c_name.as_ptr()).into(),
            }
        };
        dims.shape().ok_or_else(|| object.refused(format!("the shape of '{}'", tensor.name), since))
    }

    /// Computes the shapes of the outputs. Where inputs are not known well enough, they are named.
    pub fn infer_shapes(&mut self) -> Result<(), Error> {
        let since = self.object.now();
        let missing = match &self.bindings {
            Some(_) => self.missing_numbered()?,
            None => self.missing_named(since)?,
        };
        if missing.is_empty() {
            return Ok(());
        }
        Err(self.object.refused(format!("to infer shapes: input {} has no full shape yet", missing.join(", ")), since))
    }

    fn missing_named(&self, since: crate::object::Moment) -> Result<Vec<String>, Error> {
        let most = i32::try_from(self.tensors.len()).unwrap_or(i32::MAX);
        let mut names: Vec<Str> = vec![std::ptr::null(); self.tensors.len()];
        // SAFETY: room for as many names as is said; what is written there lives as long as the engine.
        unsafe {
            let count = try_call!(self.object, context::INFER_SHAPES, most, names.as_mut_ptr().cast());
            let Ok(count) = usize::try_from(count) else {
                return Err(self.object.refused("to infer shapes", since));
            };
            let text =
                |name: &Str| Ok(format!("'{}'", crate::object::copied("tensor name", *name)?.unwrap_or_default()));
            names.iter().take(count).map(text).collect()
        }
    }

    fn missing_numbered(&self) -> Result<Vec<String>, Error> {
        // SAFETY: no arguments.
        let (dimensions, values) = unsafe {
            let dimensions = call!(self.object, context::ALL_INPUT_DIMENSIONS_SPECIFIED);
            (dimensions, try_call!(self.object, context::ALL_INPUT_SHAPES_SPECIFIED))
        };
        if dimensions && values {
            return Ok(Vec::new());
        }
        let mut missing = Vec::new();
        for (position, tensor) in self.tensors.iter().enumerate().filter(|(_, tensor)| tensor.is_input) {
            if !dimensions && self.shape_at(position)?.iter().any(|&size| size < 0) {
                missing.push(format!("'{}'", tensor.name));
            }
        }
        if missing.is_empty() {
            missing.push("that is itself a shape".to_owned());
        }
        Ok(missing)
    }

    /// Bytes that an output can need at most with the shapes set; none where that is not known (and before 8.5).
    pub fn max_output_bytes(&self, name: &str) -> Option<u64> {
        let tensor = &self.tensors[self.position(name).ok()?];
        // SAFETY: the name outlives the call.
        let bytes = unsafe {
            let (function, this) = self.object.method(&context::GET_MAX_OUTPUT_SIZE).ok()?;
            function(this, tensor.c_name.as_ptr())
        };
        u64::try_from(bytes).ok()
    }

    /// Where a tensor's memory is.
    ///
    /// # Safety
    /// The memory must be on the device (on the host where the tensor is), large enough for the tensor's shape, and stay
    /// until every inference enqueued with it is done or another address is set.
    pub unsafe fn set_address(&mut self, name: &str, address: *mut c_void) -> Result<(), Error> {
        let position = self.position(name)?;
        if let Some(bindings) = &mut self.bindings {
            bindings.addresses[bindings.first + position] = address;
            return Ok(());
        }
        let since = self.object.glance();
        // SAFETY: the name outlives the call; the memory is the caller's promise.
        let done = unsafe {
            let name = self.tensors[position].c_name.as_ptr();
            try_call!(self.object, context::SET_TENSOR_ADDRESS, name, address)
        };
        self.object.accepted(done, || format!("an address for tensor '{name}'"), since)
    }

    /// Uses another range of shapes from now on. Shapes and addresses must be set again.
    ///
    /// # Safety
    /// `stream` is a CUDA stream, or null for the default one, of the device that the engine is on.
    pub unsafe fn set_profile(&mut self, profile: i32, stream: *mut c_void) -> Result<(), Error> {
        let since = self.object.now();
        // SAFETY: TensorRT checks the number; the stream is the caller's promise.
        let done = unsafe { call!(self.object, context::SET_OPTIMIZATION_PROFILE_ASYNC, profile, stream) };
        self.object.accepted(done, || format!("profile {profile}"), since)?;
        if let Some(bindings) = &mut self.bindings {
            bindings.first = usize::try_from(profile).unwrap_or(0) * self.tensors.len();
        }
        Ok(())
    }

    /// Puts an inference into a stream and returns before it is done.
    ///
    /// # Safety
    /// As for [`Context::set_address`] and [`Context::set_profile`], and every tensor has an address.
    pub unsafe fn enqueue(&mut self, stream: *mut c_void) -> Result<(), Error> {
        let since = self.object.glance();
        // SAFETY: stream and memory are the caller's promise; there is an address for every number.
        let done = unsafe {
            match &mut self.bindings {
                Some(bindings) => {
                    let addresses = bindings.addresses.as_mut_ptr().cast();
                    try_call!(self.object, context::ENQUEUE_V2, addresses, stream, null_mut())
                }
                None => try_call!(self.object, context::ENQUEUE_V3, stream),
            }
        };
        self.object.accepted(done, || "to enqueue an inference".to_owned(), since)
    }

    /// Where the memory of an output comes from whose size the data decide; since 8.5.
    pub fn set_output_allocator(&mut self, name: &str, allocator: &OutputAllocator) -> Result<(), Error> {
        let position = self.position(name)?;
        let pointer = allocator.object(self.object.family());
        self.object.keep(pointer, allocator.clone());
        let since = self.object.now();
        // SAFETY: the name outlives the call, and the context keeps the allocator.
        let done = unsafe {
            let name = self.tensors[position].c_name.as_ptr();
            try_call!(self.object, context::SET_OUTPUT_ALLOCATOR, name, pointer)
        };
        self.object.accepted(done, || format!("an allocator for output '{name}'"), since)
    }

    /// Who is told the time of each layer. Inferences are then slower.
    pub fn set_profiler(&mut self, profiler: &Profiler) {
        let pointer = profiler.object(self.object.family());
        self.object.keep(pointer, profiler.clone());
        // SAFETY: the context keeps the profiler.
        unsafe { call!(self.object, context::SET_PROFILER, pointer) }
    }

    /// Tells the profiler of the last inference, which must be done; where enqueue does not do that by itself. Since 8.2.
    pub fn report_to_profiler(&mut self) -> Result<(), Error> {
        let since = self.object.now();
        // SAFETY: no arguments.
        let done = unsafe { try_call!(self.object, context::REPORT_TO_PROFILER) };
        self.object.accepted(done, || "to report to the profiler".to_owned(), since)
    }

    /// Whether enqueue waits for the inference and tells the profiler by itself; since 8.2.
    pub fn set_enqueue_emits_profile(&mut self, emits: bool) -> Result<(), Error> {
        // SAFETY: a plain value.
        unsafe { try_call!(self.object, context::SET_ENQUEUE_EMITS_PROFILE, emits) };
        Ok(())
    }
}
