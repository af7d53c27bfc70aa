//! Runtimes as they are handed out: wheels, read and unpacked without believing anything in them. Finding, fetching and keeping
//! runtimes is still the binary's (`prony/src/runtime`).

pub mod disk;
pub mod layout;
mod name;
pub mod record;
pub mod version;
pub mod wheel;

pub use disk::{DiskError, disk_error};
pub use name::RuntimeName;
pub use version::Version;
pub use wheel::{FileRecord, Wheel};
