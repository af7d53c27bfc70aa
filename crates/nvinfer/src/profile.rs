//! The range of shapes that an engine is built for.

use crate::object::{Held, c_text, call, try_call};
use crate::shape::Dims;
use crate::tables::{Value, opt_profile_selector as value, profile};
use crate::{Error, Version};

/// Which shape of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// The smallest.
    Min,
    /// The one to be fast at.
    Opt,
    /// The largest.
    Max,
}

impl Selector {
    pub(crate) fn number(self, version: Version) -> Result<i32, Error> {
        let value: &Value = match self {
            Selector::Min => &value::MIN,
            Selector::Opt => &value::OPT,
            Selector::Max => &value::MAX,
        };
        value.number(version)
    }
}

/// Shapes of the inputs. The builder that made it owns it.
#[derive(Debug)]
pub struct OptimizationProfile {
    pub(crate) object: Held,
}

impl OptimizationProfile {
    pub(crate) fn new(object: Held) -> OptimizationProfile {
        OptimizationProfile { object }
    }

    /// Sets one shape of an input's range.
    pub fn set_shape(&mut self, name: &str, selector: Selector, shape: &[i64]) -> Result<(), Error> {
        let object = &self.object;
        let c_name = c_text("tensor name", name)?;
        let number = selector.number(object.version())?;
        let dims = Dims::new(object.family(), name, shape)?;
        let since = object.now();
        // SAFETY: name and shape outlive the call.
        let done = unsafe {
            match &dims {
                Dims::Narrow(dims) => try_call!(object, profile::SET_DIMENSIONS_8, c_name.as_ptr(), number, *dims),
                Dims::Wide(_) => try_call!(object, profile::SET_DIMENSIONS, c_name.as_ptr(), number, dims.address()),
            }
        };
        object.accepted(done, || format!("{selector:?} shape {shape:?} of '{name}' in a profile"), since)
    }

    /// Whether the shapes set so far make sense together.
    pub fn is_valid(&self) -> bool {
        // SAFETY: no arguments.
        unsafe { call!(self.object, profile::IS_VALID) }
    }
}
