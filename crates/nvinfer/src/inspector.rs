//! The engine inspector: what the layers of an engine really are.

use std::sync::Arc;

use crate::object::{Held, copied, try_call};
use crate::pointer::Str;
use crate::tables::{inspector, layer_information_format};
use crate::{Context, Error};

/// Tells the layers of an engine.
#[derive(Debug)]
pub struct Inspector {
    object: Held,
}

impl Inspector {
    pub(crate) fn new(object: Held) -> Inspector {
        Inspector { object }
    }

    /// Shapes are told as this context has them.
    pub fn set_context(&mut self, context: &Context) -> Result<(), Error> {
        let pointer = context.object.public();
        self.object.keep(pointer, Arc::clone(&context.object));
        let since = self.object.now();
        // SAFETY: the inspector keeps the context.
        let done = unsafe { try_call!(self.object, inspector::SET_EXECUTION_CONTEXT, pointer) };
        self.object.accepted(done, || "a context for the inspector".to_owned(), since)
    }

    /// Every layer, as JSON. How much is in it depends on the verbosity that the engine was built with.
    pub fn engine_json(&self) -> Result<String, Error> {
        let format = layer_information_format::JSON.number(self.object.version())?;
        let since = self.object.now();
        // SAFETY: a plain number.
        let text = unsafe { try_call!(self.object, inspector::GET_ENGINE_INFORMATION, format) };
        self.read("the engine's information", text, since)
    }

    fn read(&self, what: &str, text: Str, since: crate::object::Moment) -> Result<String, Error> {
        // SAFETY: null, or a text that stays until the inspector's next method.
        unsafe { copied(what, text)? }.ok_or_else(|| self.object.refused(what, since))
    }
}
