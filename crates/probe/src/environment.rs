//! The machine before anything runs, and what to know before trusting figures from it.

use std::path::Path;

use prony_types::{CpuRecord, Environment};

use crate::jetson::{self, GpuClock, Packages};
use crate::power_mode::PowerModes;
use crate::preflight::{self, Facts};
use crate::python::{self, Hints};
use crate::tree::Tree;
use crate::{Probe, clock, cpuinfo, disk, load, machine, memory};

/// This machine; runs are taken to be written in the current folder.
pub fn environment() -> Environment {
    environment_for(Path::new("."))
}

/// This machine, with the room that is left where runs are written. GPU, driver and runtimes are for others to find.
pub fn environment_for(runs: &Path) -> Environment {
    survey(Path::new("/"), Some(runs), &Hints::here())
}

/// The machine whose `proc`, `sys` and `etc` lie under a root. Architecture and usable CPUs are those of this process.
pub fn environment_at(root: &Path) -> Environment {
    survey(root, None, &Hints::default())
}

fn survey(root: &Path, runs: Option<&Path>, hints: &Hints) -> Environment {
    let tree = Tree::new(root.to_owned());
    let probe = Probe::at(root);
    let memory = memory::read(&tree).unwrap_or_default();
    let cpu = cpuinfo::read(&tree);
    let mut environment = Environment {
        hostname: tree.text("proc/sys/kernel/hostname"),
        os: os_name(&tree),
        kernel: tree.text("proc/sys/kernel/osrelease"),
        arch: std::env::consts::ARCH.to_owned(),
        machine: machine::model(&tree),
        virtualization: machine::hypervisor(&tree, &cpu),
        cpu: processor(&tree, cpu),
        mem_total_bytes: memory.total,
        mem_available_bytes: memory.available,
        swap_total_bytes: memory.swap_total,
        swap_used_bytes: memory.swap_used(),
        disk_free_bytes: runs.and_then(disk::free_bytes),
        load1: load::read(&tree),
        python: python::packages(root, hints),
        sensors: probe.sensors(),
        ..Environment::default()
    };
    let facts = facts(&tree, &probe, &environment, runs.is_some());
    if facts.jetson {
        let packages = Packages::read(&tree);
        environment.l4t = jetson::l4t(&tree, &packages);
        environment.jetpack = jetson::jetpack(&packages, environment.l4t.as_deref());
    }
    environment.power_mode = facts.power_modes.name();
    environment.preflight = preflight::preflight(&environment, &facts);
    environment.notes = preflight::notes(&environment.preflight);
    environment
}

fn processor(tree: &Tree, info: cpuinfo::CpuInfo) -> CpuRecord {
    let governors = clock::governors(tree);
    CpuRecord {
        name: info.name,
        usable: usable_cpus(),
        cores: cpuinfo::cores(tree),
        governor: (!governors.is_empty()).then(|| governors.join(", ")),
        max_khz: clock::max_khz(tree),
        features: info.features,
    }
}

fn facts(tree: &Tree, probe: &Probe, environment: &Environment, disk: bool) -> Facts {
    Facts {
        jetson: jetson::is_jetson(tree, environment.machine.as_deref()),
        quota: machine::cpu_quota(tree),
        pinned_khz: clock::pinned_khz(tree),
        gpu_clock: GpuClock::find(tree),
        power_modes: PowerModes::read(tree),
        has_frequency: probe.has_frequency(),
        has_temperature: probe.has_temperature(),
        headroom: probe.least_headroom(),
        silent: probe.silent().to_vec(),
        disk,
    }
}

fn os_name(tree: &Tree) -> Option<String> {
    let text = tree.text("etc/os-release").or_else(|| tree.text("usr/lib/os-release"))?;
    let value = |key: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('='))?;
        let plain = line.trim().trim_matches(|c| c == '"' || c == '\'');
        (!plain.is_empty()).then(|| plain.to_owned())
    };
    value("PRETTY_NAME").or_else(|| value("NAME"))
}

/// CPUs that the scheduler lets this process use.
fn usable_cpus() -> u32 {
    let allowed = rustix::thread::sched_getaffinity(None).map(|set| set.count()).unwrap_or(0);
    if allowed > 0 {
        return allowed;
    }
    // More CPUs than the fixed-size set holds.
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}
