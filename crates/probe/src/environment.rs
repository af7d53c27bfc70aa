//! The machine before anything runs, and what to know before trusting figures from it.

use std::path::Path;

use prony_types::{CpuRecord, Environment};

use crate::tree::Tree;
use crate::{Probe, clock, cpuinfo, load, machine, memory};

/// This machine.
pub fn environment() -> Environment {
    environment_at(Path::new("/"))
}

/// The machine whose `proc`, `sys` and `etc` lie under a root. Architecture and usable CPUs are those of this process.
pub fn environment_at(root: &Path) -> Environment {
    let tree = Tree::new(root.to_owned());
    let probe = Probe::at(root);
    let cpu = cpuinfo::read(&tree);
    let memory = memory::read(&tree).unwrap_or_default();
    let governors = clock::governors(&tree);
    let mut environment = Environment {
        hostname: tree.text("proc/sys/kernel/hostname"),
        os: os_name(&tree),
        kernel: tree.text("proc/sys/kernel/osrelease"),
        arch: std::env::consts::ARCH.to_owned(),
        machine: machine::model(&tree),
        virtualization: machine::hypervisor(&tree, &cpu),
        cpu: CpuRecord {
            name: cpu.name,
            usable: usable_cpus(),
            cores: cpuinfo::cores(&tree),
            governor: (!governors.is_empty()).then(|| governors.join(", ")),
            max_khz: clock::max_khz(&tree),
            features: cpu.features,
        },
        mem_total_bytes: memory.total,
        mem_available_bytes: memory.available,
        swap_total_bytes: memory.swap_total,
        load1: load::read(&tree),
        sensors: probe.sensors(),
        ..Environment::default()
    };
    environment.notes = notes(&environment, &probe, memory.swap_used().unwrap_or(0), machine::cpu_quota(&tree));
    environment
}

fn notes(environment: &Environment, probe: &Probe, swap_used: u64, quota: Option<f64>) -> Vec<String> {
    let mut notes = Vec::new();
    let cpus = environment.cpu.usable;
    if let Some(load) = environment.load1.filter(|&load| load > f64::from(cpus) / 2.0) {
        notes.push(format!("the load average is {load:.2} on {cpus} usable CPUs: something else is running"));
    }
    if let Some(quota) = quota.filter(|&quota| quota < f64::from(cpus)) {
        notes.push(format!("a control group allows {quota:.1} of {cpus} CPUs: long frames may be cut by its quota"));
    }
    if let Some(governor) = environment.cpu.governor.as_ref().filter(|g| *g != "performance") {
        notes.push(format!("the frequency governor is {governor}, not performance: clocks follow the load"));
    }
    if !probe.has_frequency() {
        notes.push("no CPU frequency can be read".into());
    }
    if !probe.has_temperature() {
        notes.push("no temperature can be read".into());
    }
    for sensor in probe.silent() {
        notes.push(format!("{sensor} exists but gives no answer; it is left alone"));
    }
    if swap_used > 0 {
        notes.push(format!("{:.0} MiB of swap are in use", swap_used as f64 / f64::from(1 << 20)));
    }
    if let Some(hypervisor) = &environment.virtualization {
        notes.push(format!("this is a virtual machine ({hypervisor}): neighbours can take time from it unseen"));
    }
    notes
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
