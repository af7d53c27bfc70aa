//! The most that a device can do: arithmetic and bandwidth of the CPU, measured in a few dozen milliseconds each, and
//! what an NVIDIA GPU can do by its clocks and units.

mod bandwidth;
mod fma;
mod gpu;

use std::path::Path;

use prony_types::{PeakOrigin, PeakRecord, Precision};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::clock::CPUS;
use crate::tree::Tree;

pub use self::gpu::gpu_peak;

/// What the CPU can do with one thread on each of these CPUs, which must be a backend's own. Takes about 0.2 s, during
/// which nothing else should run.
pub fn cpu_peak(cpus: &[u32]) -> PeakRecord {
    let tree = Tree::new(Path::new("/").to_owned());
    let cache = last_level_cache(&tree, cpus);
    let (flops_per_s, instructions) = fma::peak(cpus);
    let bandwidth = bandwidth::peak(cpus, cache, crate::memory::read(&tree).and_then(|memory| memory.available));
    PeakRecord {
        device: "cpu".to_owned(),
        precision: Precision::Fp32,
        flops_per_s,
        bytes_per_s: bandwidth,
        cache_bytes: cache,
        threads: u32::try_from(cpus.len()).ok(),
        origin: PeakOrigin::Measured,
        how: format!("{instructions}, {} {}", cpus.len(), if cpus.len() == 1 { "thread" } else { "threads" }),
    }
}

/// Keeps the calling thread on one CPU; where that is not allowed it runs where it may.
fn pin(cpu: u32) {
    let mut set = CpuSet::new();
    if (cpu as usize) < CpuSet::MAX_CPU {
        set.set(cpu as usize);
        let _ = sched_setaffinity(None, &set);
    }
}

/// The last-level caches that these CPUs share or have, together.
fn last_level_cache(tree: &Tree, cpus: &[u32]) -> Option<u64> {
    let mut found: Vec<(u32, String, u64)> = Vec::new();
    for cpu in cpus {
        let folder = format!("{CPUS}/cpu{cpu}/cache");
        for index in tree.numbered(&folder, "index") {
            let text = |file: &str| tree.text(&format!("{folder}/{index}/{file}"));
            let level = text("level").and_then(|level| level.parse().ok());
            let size = text("size").and_then(|size| kibibytes(&size));
            let sharers = text("shared_cpu_list").unwrap_or_else(|| cpu.to_string());
            if let (Some(level), Some(size), Some("Unified" | "Data")) = (level, size, text("type").as_deref()) {
                found.push((level, sharers, size));
            }
        }
    }
    let last = found.iter().map(|(level, ..)| *level).max()?;
    found.retain(|(level, ..)| *level == last);
    found.sort_unstable();
    found.dedup();
    Some(found.iter().map(|(.., size)| size).sum())
}

/// `32768K` as bytes.
fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_that_are_shared_count_once() {
        let root = tempfile::tempdir().unwrap();
        let cache = |cpu: u32, index: u32, level: &str, kind: &str, size: &str, sharers: &str| {
            let folder = root.path().join(format!("{CPUS}/cpu{cpu}/cache/index{index}"));
            std::fs::create_dir_all(&folder).unwrap();
            let files = [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", sharers)];
            files.iter().for_each(|(file, text)| std::fs::write(folder.join(file), text).unwrap());
        };
        for (cpu, sharers) in [(0, "0-1"), (1, "0-1"), (2, "2-3")] {
            cache(cpu, 0, "1", "Data", "32K", &cpu.to_string());
            cache(cpu, 1, "1", "Instruction", "64K", &cpu.to_string());
            cache(cpu, 2, "3", "Unified", "4096K", sharers);
        }
        let tree = Tree::new(root.path().to_owned());
        assert_eq!(last_level_cache(&tree, &[0, 1]), Some(4 << 20));
        assert_eq!(last_level_cache(&tree, &[0, 1, 2]), Some(8 << 20));
        assert_eq!(last_level_cache(&tree, &[7]), None);
    }

    #[test]
    fn this_machine_computes_and_reads() {
        let peak = cpu_peak(&[0]);
        // A pocket calculator has less, and no processor has more.
        assert!((1e7..1e15).contains(&peak.flops_per_s), "{peak}");
        assert!(peak.bytes_per_s.is_none_or(|rate| (1e6..1e14).contains(&rate)), "{peak}");
        assert_eq!(peak.threads, Some(1));
    }
}
