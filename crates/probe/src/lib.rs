//! What the host says about itself.
//!
//! A file a sensor; each knows its place under a root, so tests hand it a tree of their own. A sensor that is not there
//! is absent; one that was there at the start and does not answer later is named in [`Telemetry::failed`](prony_types::Telemetry::failed).

mod cgroup;
mod clock;
mod contention;
mod cpu;
mod cpuinfo;
mod disk;
mod env_report;
mod environment;
mod jetson;
mod layout;
mod load;
mod machine;
mod memory;
mod peak;
mod power_mode;
mod preflight;
mod python;
mod room;
mod sensors;
mod size;
mod thermal;
mod throttle;
mod tree;
mod worker;

pub use contention::load_snapshot;
pub use env_report::env_report;
pub use environment::{environment, environment_at, environment_for};
pub use memory::peak_rss_bytes;
pub use peak::{cpu_peak, gpu_peak};
pub use power_mode::{PowerMode, PowerModes};
pub use room::{MemoryRoom, memory_limit, oom_kills, private_peak_bytes};
pub use sensors::Probe;

#[cfg(test)]
mod fixture;

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
