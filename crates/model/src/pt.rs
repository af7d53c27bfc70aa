//! PyTorch checkpoints as data. The container and its pickle are read; nothing in them is ever executed, so a hostile
//! file can at worst be refused. Sizes are checked before anything is allocated.

mod archive;
mod checkpoint;
mod machine;
mod module;
mod pickle;
mod tensor;
mod verdict;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod writer;

pub use archive::Archive;
pub use checkpoint::{Checkpoint, Holder};
pub use machine::read_pickle;
pub use module::{Class, Module};
pub use pickle::{Id, Made, Pickle, Value};
pub use tensor::{Element, Tensor};

/// Why a file is no checkpoint that can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PtError {
    /// Not the container that torch writes.
    #[error("{0}")]
    Container(String),
    /// The pickle is damaged, or uses what no checkpoint uses.
    #[error("its pickle cannot be read: opcode {opcode} at byte {offset}: {reason}")]
    Pickle {
        /// Name of the opcode, or its number where it has none.
        opcode: String,
        /// Where it stands.
        offset: usize,
        /// What is wrong.
        reason: String,
    },
    /// A tensor that does not fit its storage, or is of a kind that is not known.
    #[error("tensor {name}: {reason}")]
    Tensor {
        /// Which tensor, by its path or its storage.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// What the pickle holds is not a model.
    #[error("{0}")]
    Content(String),
}

/// A name out of a file that nobody vouches for, fit for a line on a terminal.
pub fn plain(name: &str) -> String {
    const LONGEST: usize = 120;
    let mut plain: String = name.chars().take(LONGEST).flat_map(printable).collect();
    if name.chars().nth(LONGEST).is_some() {
        plain.push_str("...");
    }
    plain
}

fn printable(letter: char) -> impl Iterator<Item = char> {
    let escape = letter.is_control().then(|| letter.escape_default());
    let as_it_is = escape.is_none().then_some(letter);
    escape.into_iter().flatten().chain(as_it_is)
}
