//! What the figures mean.
//!
//! Pure functions from samples and records to statistics, verdicts, differences and recommendations: no clock, no
//! I/O, no state beyond a fixed-size window. Everything here can be replayed from a run folder with the same result.

pub mod accuracy;
pub mod across;
pub mod agreement;
pub mod coco;
pub mod comparable;
pub mod difference;
mod engine;
mod exit;
pub mod gate;
pub mod load;
mod phase;
mod recommendation;
mod roofline;
mod series;
pub mod shape;
pub mod stall;
pub mod stats;
pub mod steady;
pub mod stopping;
mod student;
pub mod suspects;
mod telemetry;
pub mod verdict;

pub use agreement::Bounds;
pub use difference::{Contrast, EQUIVALENCE, TELLING, compare, narrowings};
pub use engine::{INT8_SLOWER, equivalents, mark_slow_int8, not_in_precision};
pub use exit::exit_code;
pub use phase::{by_round, detections_per_frame, latency, phases, round_p50_ms};
pub use recommendation::{Advice, Rounds, advise};
pub use roofline::predict;
pub use series::{Series, totals};
pub use telemetry::{lowest_available_mib, temp_range};
pub use verdict::{Evidence, NOTE, is_note, judge};
