//! The runtimes of a machine: where its libraries are and what they say, which of them may be opened, and those that Prony
//! fetches for itself, out of wheels that are read without believing anything in them.

pub mod discovery;
pub mod disk;
pub mod home;
pub mod layout;
pub mod policy;
pub mod record;
pub mod version;
pub mod wheel;

mod found;
mod install;
mod name;

pub use self::disk::{DiskError, disk_error};
pub use self::found::{Found, absent, choose, discover, discover_for, question};
pub use self::install::{Installed, Order, Outcome, Request, Shelf, ShelfTurn, State, Stopped, install, is_failure};
pub use self::name::Package;
pub use self::version::Version;
pub use self::wheel::{FileRecord, Wheel};
