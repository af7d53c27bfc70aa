//! An engine: what it takes and gives, and the contexts that execute it.
//!
//! Since 8.5 tensors are asked for by name. Before, they are numbered, once for each profile; the numbers of profile 0 are
//! used for all questions.

use std::ffi::CStr;

use crate::object::{Held, Kind, Object, c_text, call, copied, try_call};
use crate::shape::Dims;
use crate::tables::{engine, execution_context_allocation_strategy, tensor_io_mode, tensor_location};
use crate::{Context, DataType, Error, Family, HostMemory, Inspector, IoTensor, Selector};

/// A loaded engine.
#[derive(Debug)]
pub struct Engine {
    object: Held,
}

impl Engine {
    pub(crate) fn new(object: Held) -> Engine {
        Engine { object }
    }

    /// Inputs and outputs, in the engine's order.
    pub fn io(&self) -> Result<Vec<IoTensor>, Error> {
        if names_tensors(&self.object) { named(&self.object) } else { numbered(&self.object) }
    }

    /// Ranges of shapes that it was built for.
    pub fn profile_count(&self) -> i32 {
        profile_count(&self.object)
    }

    /// One shape of an input's range.
    pub fn profile_shape(&self, name: &str, profile: i32, selector: Selector) -> Result<Vec<i64>, Error> {
        let object = &self.object;
        let which = selector.number(object.version())?;
        let c_name = c_text("tensor name", name)?;
        let since = object.now();
        // SAFETY: the name outlives the call; TensorRT checks the rest.
        let dims: Dims = unsafe {
            match object.family() {
                Family::V8 if names_tensors(object) => {
                    try_call!(object, engine::GET_PROFILE_SHAPE_8, c_name.as_ptr(), profile, which).into()
                }
                Family::V8 => {
                    let index = self.binding(name)?;
                    try_call!(object, engine::GET_PROFILE_DIMENSIONS, index, profile, which).into()
                }
                _ => try_call!(object, engine::GET_PROFILE_SHAPE, c_name.as_ptr(), profile, which).into(),
            }
        };
        let what = || format!("the {selector:?} shape of '{name}' in profile {profile}");
        dims.shape().ok_or_else(|| object.refused(what(), since))
    }

    /// The number of a tensor in profile 0.
    fn binding(&self, name: &str) -> Result<i32, Error> {
        let index = numbered(&self.object)?.iter().position(|tensor| tensor.name == name);
        let index = index.and_then(|index| i32::try_from(index).ok());
        index.ok_or_else(|| Error::unknown_tensor(name))
    }

    /// Device memory that a context needs beside the weights.
    pub fn device_memory_bytes(&self) -> u64 {
        let ask = || -> Result<u64, Error> {
            // SAFETY: no arguments.
            unsafe {
                match self.object.method(&engine::GET_DEVICE_MEMORY_SIZE_V2) {
                    Ok((function, this)) => Ok(u64::try_from(function(this)).unwrap_or(0)),
                    Err(_) => Ok(try_call!(self.object, engine::GET_DEVICE_MEMORY_SIZE)),
                }
            }
        };
        // Every version has one of the two; the test of the tables holds that.
        ask().unwrap_or(0)
    }

    /// Layers after fusion.
    pub fn layer_count(&self) -> i32 {
        // SAFETY: no arguments.
        unsafe { call!(self.object, engine::GET_NB_LAYERS) }
    }

    /// The name of the network that it was built from; often empty.
    pub fn name(&self) -> String {
        // SAFETY: no arguments; null or a text that lives as long as the engine.
        unsafe {
            let name = call!(self.object, engine::GET_NAME);
            if name.is_null() { String::new() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
        }
    }

    /// Whether its weights can be replaced.
    pub fn is_refittable(&self) -> bool {
        // SAFETY: no arguments.
        unsafe { call!(self.object, engine::IS_REFITTABLE) }
    }

    /// Something that executes it.
    pub fn context(&self) -> Result<Context, Error> {
        let object = &self.object;
        self.refuse_implicit_batch()?;
        let since = object.now();
        // SAFETY: a plain number at most.
        let pointer = unsafe {
            match object.family() {
                Family::V8 => try_call!(object, engine::CREATE_EXECUTION_CONTEXT_8),
                _ => {
                    let strategy = execution_context_allocation_strategy::STATIC.number(object.version())?;
                    try_call!(object, engine::CREATE_EXECUTION_CONTEXT, strategy)
                }
            }
        };
        let context = object.child(Kind::Owned, "execution context", pointer, since)?;
        Context::new(context, &self.io()?, (!names_tensors(object)).then(|| self.profile_count()))
    }

    /// Such engines are executed by a method that went with 8.x, and nothing makes them any more.
    fn refuse_implicit_batch(&self) -> Result<(), Error> {
        let version = self.object.version();
        if self.object.family() == Family::V8 {
            // SAFETY: no arguments.
            let implicit = unsafe { try_call!(self.object, engine::HAS_IMPLICIT_BATCH_DIMENSION) };
            if implicit {
                let what =
                    "executing an engine with an implicit batch dimension (build it from ONNX instead)".to_owned();
                return Err(Error::Unsupported { what, version });
            }
        }
        Ok(())
    }

    /// Something that tells its layers, since 8.2.
    pub fn inspector(&self) -> Result<Inspector, Error> {
        let since = self.object.now();
        // SAFETY: no arguments.
        let pointer = unsafe { try_call!(self.object, engine::CREATE_ENGINE_INSPECTOR) };
        Ok(Inspector::new(self.object.child(Kind::Owned, "engine inspector", pointer, since)?))
    }

    /// The engine as bytes again.
    pub fn serialize(&self) -> Result<HostMemory, Error> {
        let since = self.object.now();
        // SAFETY: no arguments.
        let pointer = unsafe { call!(self.object, engine::SERIALIZE) };
        Ok(HostMemory::new(self.object.product("serialised engine", pointer, since)?))
    }
}

/// Whether tensors are asked for by name, as since 8.5.
pub(crate) fn names_tensors(object: &Object) -> bool {
    engine::GET_NB_IO_TENSORS.slot(object.version()).is_ok()
}

/// The error for a name that the engine does not have.
fn profile_count(object: &Object) -> i32 {
    // SAFETY: no arguments.
    unsafe { call!(object, engine::GET_NB_OPTIMIZATION_PROFILES) }
}

/// Inputs and outputs by name.
fn named(object: &Object) -> Result<Vec<IoTensor>, Error> {
    let version = object.version();
    let (input, host) = (tensor_io_mode::INPUT.number(version)?, tensor_location::HOST.number(version)?);
    let since = object.now();
    // SAFETY: the names are the engine's own and live as long as it does; the index is below the count.
    unsafe {
        let count = try_call!(object, engine::GET_NB_IO_TENSORS);
        let mut tensors = Vec::new();
        for index in 0..count {
            let name = try_call!(object, engine::GET_IO_TENSOR_NAME, index);
            let text = copied("tensor name", name)?;
            let text = text.ok_or_else(|| object.refused(format!("the name of tensor {index}"), since))?;
            let dims: Dims = match object.family() {
                Family::V8 => try_call!(object, engine::GET_TENSOR_SHAPE_8, name).into(),
                _ => try_call!(object, engine::GET_TENSOR_SHAPE, name).into(),
            };
            tensors.push(IoTensor {
                dims: dims.shape().ok_or_else(|| object.refused(format!("the shape of '{text}'"), since))?,
                name: text,
                dtype: DataType::from_number(try_call!(object, engine::GET_TENSOR_DATA_TYPE, name)),
                is_input: try_call!(object, engine::GET_TENSOR_IO_MODE, name) == input,
                on_host: try_call!(object, engine::GET_TENSOR_LOCATION, name) == host,
                format: try_call!(object, engine::GET_TENSOR_FORMAT, name),
                vectorised_dim: try_call!(object, engine::GET_TENSOR_VECTORIZED_DIM, name),
                components: try_call!(object, engine::GET_TENSOR_COMPONENTS_PER_ELEMENT, name),
            });
        }
        Ok(tensors)
    }
}

/// Inputs and outputs by number, those of profile 0.
fn numbered(object: &Object) -> Result<Vec<IoTensor>, Error> {
    let host = tensor_location::HOST.number(object.version())?;
    let since = object.now();
    // SAFETY: the index is below the count; names live as long as the engine.
    unsafe {
        let count = try_call!(object, engine::GET_NB_BINDINGS) / profile_count(object).max(1);
        let mut tensors = Vec::new();
        for index in 0..count {
            let name = copied("tensor name", try_call!(object, engine::GET_BINDING_NAME, index))?;
            let name = name.ok_or_else(|| object.refused(format!("the name of tensor {index}"), since))?;
            let dims = Dims::from(try_call!(object, engine::GET_BINDING_DIMENSIONS, index)).shape();
            tensors.push(IoTensor {
                dims: dims.ok_or_else(|| object.refused(format!("the shape of '{name}'"), since))?,
                name,
                dtype: DataType::from_number(try_call!(object, engine::GET_BINDING_DATA_TYPE, index)),
                is_input: try_call!(object, engine::BINDING_IS_INPUT, index),
                on_host: try_call!(object, engine::GET_LOCATION, index) == host,
                format: try_call!(object, engine::GET_BINDING_FORMAT, index),
                vectorised_dim: try_call!(object, engine::GET_BINDING_VECTORIZED_DIM, index),
                components: try_call!(object, engine::GET_BINDING_COMPONENTS_PER_ELEMENT, index),
            });
        }
        Ok(tensors)
    }
}
