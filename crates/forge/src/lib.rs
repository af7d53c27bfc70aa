//! Makes artifacts: graphs from checkpoints, 16-bit and quantised graphs, TensorRT engines, and the cache in which they are
//! kept.
//!
//! An artifact is made in a worker process that measures nothing: [`prepare`], [`rewrite`]. [`Cache`] knows what is there already, and
//! why something that is there does not do.

mod arithmetic;
mod build;
mod cache;
mod calibration;
pub mod convert;
mod error;
pub mod export;
mod key;
mod lock;
mod memory;
mod prepare;
mod progress;
pub mod quantise;
mod recipe;
mod rewrite;
mod shape;
mod shelf;
mod sidecar;
mod weights;

pub use cache::{Cache, Kept, SourceModel, has_engine};
pub use error::ForgeError;
pub use prepare::{Prepared, prepare};
pub use recipe::{Recipe, RecipeDifference};
pub use rewrite::{ExportedFile, exported, rewrite};
pub use shelf::{Described, Entry, Pruned, Rule};
pub use sidecar::{EngineSidecar, FreshEngine, GRAPH_SCHEMA, GraphMaking, GraphRecipe, GraphSidecar};
