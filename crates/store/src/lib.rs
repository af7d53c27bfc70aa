//! The run folder on disk.
//!
//! Whatever happens to a run, what was written before it is still there and whole: the record is replaced atomically,
//! logs are appended to and tolerate a torn last line. A disk that is full is an error value with the path in it.
//!
//! A run folder may come from anybody, so it is data: what lies in it is reached by single names below an open descriptor,
//! links are not followed, and a record whose cells would lie elsewhere is refused.

mod atomic;
mod below;
mod check;
mod error;
mod folder;
mod lines;
mod picture;
mod redaction;
mod samples;
mod secrets;

pub use atomic::write_atomic;
pub use error::StoreError;
pub use folder::{RunFolder, cell_file, read_record_at};
pub use lines::{LineLog, read_lines, read_telemetry};
pub use picture::picture_of;
pub use redaction::{paths_of, redact};
pub use samples::{LoggedSample, SampleLog, each_sample, parse_samples, read_samples};
pub use secrets::Secrets;
