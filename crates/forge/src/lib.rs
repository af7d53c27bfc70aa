//! Makes artifacts: TensorRT engines, the ranges for int8, and the cache in which they are kept.
//!
//! An artifact is made in a worker process that measures nothing. [`Cache`] knows what is there already and why something
//! that is there does not do.

mod cache;
mod error;
mod lock;
mod recipe;
mod shelf;
mod sidecar;

pub use cache::{Cache, Kept, Origin};
pub use error::ForgeError;
pub use recipe::{Difference, Recipe};
pub use shelf::{Entry, Pruned, Rule};
pub use sidecar::{Made, SCHEMA, Sidecar};
