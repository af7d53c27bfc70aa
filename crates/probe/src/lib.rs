//! What the host says about itself.
//!
//! A file a sensor; each knows its place under a root, so tests hand it a tree of their own. A sensor that is not there
//! is absent; one that was there at the start and does not answer later is named in [`Telemetry::failed`].

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
mod size;
mod thermal;
mod throttle;
mod tree;
mod worker;

use std::path::PathBuf;

use prony_types::Telemetry;

pub use contention::load_snapshot;
pub use env_report::env_report;
pub use environment::{environment, environment_at, environment_for};
pub use memory::peak_rss_bytes;
pub use peak::{cpu_peak, gpu_peak};
pub use power_mode::{PowerMode, PowerModes};
pub use room::{MemoryRoom, memory_limit, oom_kills, private_peak_bytes};

use tree::Tree;

/// The host's sensors, found once and read again and again. It runs twice a second beside a timed cell, so a reading opens
/// the files it knows and looks for no others.
#[derive(Debug)]
pub struct Probe {
    tree: Tree,
    cpu: cpu::Cpu,
    worker: worker::Worker,
    has_memory: bool,
    has_load: bool,
    clocks: clock::Clocks,
    zones: thermal::Zones,
    throttle: throttle::Counters,
}

impl Default for Probe {
    fn default() -> Probe {
        Probe::new()
    }
}

impl Probe {
    /// The sensors of this machine.
    pub fn new() -> Probe {
        Probe::at("/")
    }

    /// The sensors of a tree that has `proc` and `sys` in it.
    pub fn at(root: impl Into<PathBuf>) -> Probe {
        let tree = Tree::new(root.into());
        Probe {
            cpu: cpu::Cpu::find(&tree),
            worker: worker::Worker::default(),
            has_memory: memory::read(&tree).is_some(),
            has_load: load::read(&tree).is_some(),
            clocks: clock::Clocks::find(&tree),
            zones: thermal::Zones::find(&tree),
            throttle: throttle::Counters::find(&tree),
            tree,
        }
    }

    /// One reading. Shares of CPU time are since the last reading; the worker's needs two of the same process.
    pub fn read(&mut self, t_ns: u64, cell: Option<String>, worker_pid: Option<u32>) -> Telemetry {
        let mut failed = Vec::new();
        let cpu_percent = self.cpu.read(&self.tree, &mut failed);
        let worker = worker_pid.map(|pid| self.worker.read(&self.tree, pid, t_ns)).unwrap_or_default();
        let memory = memory::read(&self.tree);
        if self.has_memory && memory.is_none() {
            failed.push("memory".into());
        }
        let load1 = load::read(&self.tree);
        if self.has_load && load1.is_none() {
            failed.push("load".into());
        }
        Telemetry {
            t_ns,
            cell,
            attempt: None,
            cpu_percent,
            worker_cpu_percent: worker.cpu_percent,
            worker_rss_bytes: worker.rss_bytes,
            mem_available_bytes: memory.and_then(|m| m.available),
            swap_used_bytes: memory.and_then(|m| m.swap_used()),
            load1,
            cpu_khz: self.clocks.read(&self.tree, &mut failed),
            temps_c: self.zones.read(&self.tree, &mut failed),
            throttle_events: self.throttle.read(&self.tree, &mut failed),
            failed,
        }
    }

    /// Names of the sensors that answered when they were looked for.
    pub fn sensors(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut add = |there: bool, name: &str| {
            if there {
                names.push(name.to_owned());
            }
        };
        add(self.cpu.is_there(), "cpu time");
        add(self.has_memory, "memory");
        add(self.has_load, "load average");
        add(self.has_frequency(), "cpu frequency");
        add(self.throttle.is_there(), "throttle counters");
        names.extend(self.zones.names().map(|zone| format!("temperature {zone}")));
        names
    }

    /// Whether clocks can be read.
    pub fn has_frequency(&self) -> bool {
        self.clocks.is_there()
    }

    /// Whether a temperature can be read.
    pub fn has_temperature(&self) -> bool {
        self.zones.names().next().is_some()
    }

    /// How near the machine is to a temperature at which the kernel acts.
    pub(crate) fn least_headroom(&self) -> Option<thermal::Headroom> {
        self.zones.least_headroom(&self.tree)
    }

    /// Sensors whose files are there but gave no answer when they were looked for; they are left alone afterwards.
    pub fn silent(&self) -> &[String] {
        self.zones.silent()
    }
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
