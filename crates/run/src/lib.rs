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
mod setup;
mod spectator;
mod worker;

pub use self::accuracy::{Recorded, Scores, paired, scored};
pub use self::files::{Files, Written, pictures, refuse_if_written, utc_now, utc_stamp};
pub use self::jobs::{engines_to_build, writable};
pub use self::lock::{Holder, MachineLock, Turn};
pub use self::machine::machine;
pub use self::maker::{Made, Maker, NotMade};
pub use self::redactor::Redactor;
pub use self::resume::earlier_run;
pub use self::runner::{Ending, Run, RunSetup, estimate_s, longest_s};
pub use self::setup::{PlannedRun, Site, resume, start};
pub use self::spectator::Spectator;
