//! The whole crate against a stand-in for TensorRT: C++ classes laid out as those of 8.2, 8.4, 8.6, 10.x and 11.x,
//! compiled here. Every failure ends as an error with a name and a reason.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(unsafe_code, reason = "addresses of tensors are handed over")]

mod build;
mod crash;
mod create;
mod execute;
mod load;
mod memory;
mod place;
