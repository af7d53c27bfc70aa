//! Addresses as TensorRT passes them.

use std::ffi::{c_char, c_void};

/// Any pointer.
pub(crate) type Ptr = *mut c_void;
/// A text that ends with a NUL.
pub(crate) type Str = *const c_char;
