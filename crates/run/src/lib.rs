//! One execution of a plan: workers, their rounds, what they said, and the record that follows from it.

pub mod roofline;
pub mod system;

mod accuracy;
mod errand;
mod files;
mod fold;
mod footprint;
mod jobs;
mod lock;
mod machine;
mod maker;
mod oom;
mod redactor;
mod reference;
mod reference_cache;
mod resume;
mod runner;
mod sensors;
mod spectator;
mod worker;

pub use self::accuracy::{Recorded, Scores, check_data, data_unchanged, paired, scored};
pub use self::files::{Files, Written, pictures, refuse_if_written, utc_now, utc_stamp};
pub use self::jobs::{engines_to_build, writable};
pub use self::lock::{Holder, MachineLock, Turn};
pub use self::machine::machine;
pub use self::maker::{Made, Maker, NotMade};
pub use self::redactor::Redactor;
pub use self::resume::{earlier_run, resumed};
pub use self::runner::{Ending, Run, RunSetup, estimate_s, longest_s, resumed_info, run_info};
pub use self::spectator::Spectator;
