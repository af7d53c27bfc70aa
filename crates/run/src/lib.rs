//! One execution of a plan: workers, their rounds, what they said, and the record that follows from it.

pub mod roofline;
pub mod system;

mod accuracy;
mod clock;
mod errand;
mod files;
mod fold;
mod footprint;
mod jobs;
mod lock;
mod logs;
mod machine;
mod maker;
mod oom;
mod record;
mod redactor;
mod reference;
mod reference_cache;
mod replay;
mod resume;
mod runner;
mod samples;
mod schedule;
mod sensors;
mod setup;
mod sink;
mod words;
mod worker;

pub use self::accuracy::{Recorded, Scores, check_data, data_unchanged, paired, scored};
pub use self::clock::{utc_now, utc_stamp};
pub use self::files::{Files, Written, pictures, refuse_if_written};
pub use self::fold::CellFold;
pub use self::jobs::{engines_to_build, writable};
pub use self::lock::{Holder, MachineLock, Turn};
pub use self::machine::machine;
pub use self::maker::{Made, Maker, NotMade};
pub use self::record::RecordFold;
pub use self::redactor::Redactor;
pub use self::replay::replay;
pub use self::resume::{earlier_run, resumed};
pub use self::runner::{Ending, Run};
pub use self::schedule::{estimate_s, longest_s};
pub use self::setup::{RunSetup, resumed_info, run_info};
pub use self::sink::{Nobody, Sink};
pub use self::words::{last_word, made, scored as scored_in_words};
