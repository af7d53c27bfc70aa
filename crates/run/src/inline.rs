//! Executing a model in this very process, for `prony run` and `prony compare-outputs`: the library and the engine that it
//! takes, what goes in, what comes out, and two models on the same frames.

pub mod compare;

mod boxes;
mod executor;
mod input;
mod output;
mod shape;

pub use self::boxes::{Boxes, NamedBox};
pub use self::executor::{BuiltEngine, EngineShapes, Executor, backend_for, found_runtime, tell_loader};
pub use self::input::{InputSources, InputSummary, ModelInputs};
pub use self::output::{OutputFiles, OutputSummary, WrittenFile, counted};
pub use self::shape::InputShape;
