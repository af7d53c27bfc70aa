//! Downloads that survive a break. What is there of a file lies beside it as `.part`, with a note of which version of
//! the file it is a part of; only a whole and checked file gets the name.
//!
//! curl or wget does every transfer, with the system's certificates and proxies. It is given one address at a time and
//! limits on time and length; redirections, lengths, encodings and versions are checked here.

mod answer;
mod download;
mod fetch;
mod part;
mod process;
mod tool;
mod transfer;
mod url;

pub use self::download::{Download, Fetched, Sha256Hex};
pub use self::fetch::fetch;
pub use self::url::Url;
