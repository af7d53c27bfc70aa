//! The run folder on disk.
//!
//! Whatever happens to a run, what was written before it is still there and whole: the record is replaced atomically,
//! logs are appended to and tolerate a torn last line. A disk that is full is an error value with the path in it.

mod atomic;
mod error;
mod folder;
mod lines;
mod redaction;
mod samples;

pub use atomic::write_atomic;
pub use error::StoreError;
pub use folder::{RunFolder, read_record_at};
pub use lines::{LineLog, read_lines, read_telemetry};
pub use redaction::redact;
pub use samples::{LoggedSample, SampleLog, parse_samples, read_samples};
