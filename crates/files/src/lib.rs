//! How Prony opens files that others made, and writes files for others. A path may name anything: a pipe that never ends,
//! a device that never runs dry, a link to somebody's secret. So there is one way to read, which takes regular files up to
//! a size that makes sense for their kind, and one way to write, which replaces regular files and writes through the rest.

mod folder;
mod kind;
mod name;
mod output;
mod read;

pub use folder::{Draft, Folder, Foreign};
pub use kind::Kind;
pub use name::unguessable;
pub use output::{Output, write};
pub use read::{open, read, read_into, read_piped, read_text};
