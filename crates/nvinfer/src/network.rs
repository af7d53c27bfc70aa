//! A network on its way to an engine.

use std::sync::{Arc, Mutex, PoisonError};

use crate::object::{Held, Kind, Object, call, copied, try_call};
use crate::shape::Dims;
use crate::tables::{network, tensor, tensor_location};
use crate::{DataType, Error, Family, IoTensor};

/// A network, empty until a parser fills it.
#[derive(Debug)]
pub struct Network {
    /// Weights are the parser's memory and are read when the engine is built. Goes before the network.
    parsers: Mutex<Vec<Arc<Object>>>,
    pub(crate) object: Held,
}

impl Network {
    pub(crate) fn new(object: Held) -> Network {
        Network { parsers: Mutex::default(), object }
    }

    /// Keeps a parser for as long as the network may be built.
    pub(crate) fn keep_parser(&self, parser: &Arc<Object>) {
        self.parsers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(parser));
    }

    /// What goes in.
    pub fn inputs(&self) -> Result<Vec<IoTensor>, Error> {
        (0..self.count(true)).map(|index| read(&self.tensor(true, index)?, true)).collect()
    }

    /// What comes out.
    pub fn outputs(&self) -> Result<Vec<IoTensor>, Error> {
        (0..self.count(false)).map(|index| read(&self.tensor(false, index)?, false)).collect()
    }

    /// Layers before fusion.
    pub fn layer_count(&self) -> i32 {
        // SAFETY: no arguments.
        unsafe { call!(self.object, network::GET_NB_LAYERS) }
    }

    fn count(&self, inputs: bool) -> i32 {
        // SAFETY: no arguments.
        unsafe {
            if inputs {
                call!(self.object, network::GET_NB_INPUTS)
            } else {
                call!(self.object, network::GET_NB_OUTPUTS)
            }
        }
    }

    /// One of them, which stays the network's.
    fn tensor(&self, input: bool, index: i32) -> Result<Held, Error> {
        let since = self.object.now();
        // SAFETY: a plain number below the count.
        let pointer = unsafe {
            match input {
                true => call!(self.object, network::GET_INPUT, index),
                false => call!(self.object, network::GET_OUTPUT, index),
            }
        };
        self.object.child(Kind::Borrowed, "tensor", pointer, since)
    }
}

fn read(object: &Held, is_input: bool) -> Result<IoTensor, Error> {
    let host = tensor_location::HOST.number(object.version())?;
    let since = object.now();
    // SAFETY: no arguments; the name lives as long as the tensor.
    unsafe {
        let name = copied("tensor name", call!(object, tensor::GET_NAME))?.unwrap_or_default();
        let dims: Dims = match object.family() {
            Family::V8 => try_call!(object, tensor::GET_DIMENSIONS_8).into(),
            _ => try_call!(object, tensor::GET_DIMENSIONS).into(),
        };
        // The first of the formats that are allowed; linear where nothing was said.
        let formats = call!(object, tensor::GET_ALLOWED_FORMATS);
        let format = if formats == 0 { 0 } else { formats.trailing_zeros().cast_signed() };
        Ok(IoTensor {
            dims: dims.shape().ok_or_else(|| object.refused(format!("the shape of '{name}'"), since))?,
            name,
            dtype: DataType::from_number(call!(object, tensor::GET_TYPE)),
            is_input,
            on_host: call!(object, tensor::GET_LOCATION) == host,
            format,
            vectorised_dim: -1,
            components: -1,
        })
    }
}
