//! The `tensorrt` backend, whole, on a stand-in for TensorRT and for the driver: C++ libraries compiled here, whose
//! device is the host's memory and whose inference is `out = 2 * in`.
//!
//! The driver is found by the loader, which reads its search path when a process starts. So each test starts itself once
//! more, in a process that finds the stand-in, and afterwards asks the stand-in for complaints.
#![expect(clippy::unwrap_used, reason = "tests")]

mod place;
mod refuse;
mod run;
