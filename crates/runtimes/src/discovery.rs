//! Finding the runtimes of a machine. The parent searches folders and reads file headers ([`candidates`]); what opens a
//! library is [`answer`], which runs in a process that may die of it.

mod answer;
mod candidate;
mod elf;
mod foreign;
mod names;
mod places;
mod python;
mod sought;

pub use self::answer::{Answer, answer, provided};
pub use self::candidate::{Candidate, candidates, looked};
pub use self::foreign::Refusal;
pub use self::names::{OLDEST_ONNXRUNTIME, file_name, is_explicit, is_program, variable};
pub use self::places::Places;
