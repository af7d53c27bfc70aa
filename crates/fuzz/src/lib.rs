//! Damaged and hostile files for the readers of model files and arrays, and of everything that a run folder, a data set, a plan
//! or a wheel holds.
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

#[path = "../../report/tests/fixture/mod.rs"]
mod fixture;
#[path = "../../prony/tests/support/wheel.rs"]
#[expect(clippy::unwrap_used, reason = "it is the tests' own writer, and writes into a folder of its own")]
mod wheels;
#[path = "../../model/src/pt/writer.rs"]
#[expect(clippy::unwrap_used, reason = "it is the tests' own writer, and writes into memory")]
mod writer;
