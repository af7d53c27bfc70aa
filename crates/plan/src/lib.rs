//! From what was asked to a [`Plan`](prony_types::Plan) in which everything is decided: options as flags and as keys of a plan
//! file, models by name, the matrix of cells, limits. What is wrong is said here, before anything runs.

pub mod engine_options;
pub mod gate_options;
pub mod images;
pub mod models;
pub mod named;
pub mod options;

mod resolve;
mod values;

pub use self::models::OpenedModels;
pub use self::resolve::{
    Inputs, Machine, Request, Resolved, fate_again, fits_batch, image_size, listed, open_data, read_baseline, share,
};
