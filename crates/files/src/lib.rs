//! How Prony opens files that others made, and writes files for others. A path may name anything: a pipe that never ends,
//! a device that never runs dry, a link to somebody's secret. So there is one way to read, which takes regular files up to
//! a size that makes sense for their kind, and one way to write, which replaces regular files and writes through the rest.

mod accounts;
mod acl;
mod folder;
mod kind;
mod name;
mod output;
mod owner;
mod program;
mod read;

pub use folder::{Draft, Folder, Foreign};
pub use kind::Kind;
pub use name::unguessable;
pub use output::{Output, write};
pub use owner::owner_problem;
pub use program::{find_program, safe_path, search_folders};
pub use read::{open, read, read_into, read_open, read_piped, read_text};
