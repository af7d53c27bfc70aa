//! Damaged and hostile files for the readers of pickles, containers, checkpoints, ONNX files and arrays.
//!
//! A case is one input through one reader. It must end in an error or in data: no panic, no more than two seconds, and no
//! more memory than [`memory::allowed`] for its size. Inputs are mutated from files that Prony's own writers make; one that
//! gets somewhere new is kept to be mutated further.

pub mod drive;
pub mod memory;
pub mod mutate;
pub mod random;
pub mod reader;
pub mod seeds;
pub mod traces;

#[path = "../../model/src/pt/writer.rs"]
#[expect(clippy::unwrap_used, reason = "it is the tests' own writer, and writes into memory")]
mod writer;
