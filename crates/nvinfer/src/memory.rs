//! Memory that TensorRT hands out: a serialised engine or timing cache.

use crate::object::{Held, call};
use crate::tables::memory;

/// Bytes that belong to TensorRT until this is dropped.
#[derive(Debug)]
pub struct HostMemory {
    object: Held,
}

impl HostMemory {
    pub(crate) fn new(object: Held) -> HostMemory {
        HostMemory { object }
    }

    /// What is in it.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: no arguments.
        let (data, size) = unsafe { (call!(self.object, memory::DATA), call!(self.object, memory::SIZE)) };
        match usize::try_from(size) {
            // SAFETY: TensorRT's memory of that size, which stays as it is until the object goes.
            Ok(size) if size > 0 && !data.is_null() => unsafe { std::slice::from_raw_parts(data.cast(), size) },
            _ => &[],
        }
    }
}
