//! Clocks of the CPUs, from cpufreq.

use crate::tree::Tree;

pub(crate) const CPUS: &str = "sys/devices/system/cpu";

/// CPUs whose clock can be read.
#[derive(Debug)]
pub(crate) struct Clocks {
    cpus: Vec<(String, String)>,
}

impl Clocks {
    pub(crate) fn find(tree: &Tree) -> Clocks {
        let with_path = |cpu: String| {
            let path = format!("{CPUS}/{cpu}/cpufreq/scaling_cur_freq");
            tree.value::<u64>(&path).is_some().then_some((cpu, path))
        };
        Clocks { cpus: tree.numbered(CPUS, "cpu").into_iter().filter_map(with_path).collect() }
    }

    pub(crate) fn is_there(&self) -> bool {
        !self.cpus.is_empty()
    }

    /// Kilohertz by CPU. Empty when one does not answer: a list with a hole would put clocks to the wrong CPUs.
    pub(crate) fn read(&self, tree: &Tree, failed: &mut Vec<String>) -> Vec<u64> {
        let mut clocks = Vec::with_capacity(self.cpus.len());
        for (cpu, path) in &self.cpus {
            match tree.value(path) {
                Some(khz) => clocks.push(khz),
                None => failed.push(format!("frequency of {cpu}")),
            }
        }
        if clocks.len() < self.cpus.len() {
            clocks.clear();
        }
        clocks
    }
}

/// Governors in use, each once.
pub(crate) fn governors(tree: &Tree) -> Vec<String> {
    let mut names: Vec<String> = tree
        .numbered(CPUS, "cpu")
        .iter()
        .filter_map(|cpu| tree.text(&format!("{CPUS}/{cpu}/cpufreq/scaling_governor")))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The highest clock of any CPU.
pub(crate) fn max_khz(tree: &Tree) -> Option<u64> {
    let of = |cpu: &String| tree.value(&format!("{CPUS}/{cpu}/cpufreq/cpuinfo_max_freq"));
    tree.numbered(CPUS, "cpu").iter().filter_map(of).max()
}

/// The clock that every CPU is held at by equal limits, whatever its governor would like.
pub(crate) fn pinned_khz(tree: &Tree) -> Option<u64> {
    let limits = |cpu: &String| {
        let at = |file: &str| tree.value::<u64>(&format!("{CPUS}/{cpu}/cpufreq/{file}"));
        Some((at("scaling_min_freq")?, at("scaling_max_freq")?))
    };
    let limits: Vec<(u64, u64)> = tree.numbered(CPUS, "cpu").iter().filter_map(limits).collect();
    let held = limits.iter().all(|(low, high)| low == high);
    limits.iter().map(|(_, high)| *high).max().filter(|_| held)
}
