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

pub use crate::error::PtError;

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
