//! Which CPUs a worker's threads run on. One thread a physical core, the fastest cores first: two threads on the
//! siblings of one core share its arithmetic units and make latency a lottery.

use std::fs;
use std::io;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs this process may use, by number.
pub fn allowed() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else {
        let count = std::thread::available_parallelism().map_or(1, |n| n.get());
        return (0..count as u32).collect();
    };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

/// Chooses the CPUs for so many threads; `None` means one for each physical core.
pub fn choose(threads: Option<u32>) -> Vec<u32> {
    pick(&allowed(), threads, Path::new("/sys/devices/system/cpu"))
}

fn pick(allowed: &[u32], threads: Option<u32>, sysfs: &Path) -> Vec<u32> {
    let mut cores: Vec<(u64, u32)> = Vec::new();
    let mut siblings: Vec<(u64, u32)> = Vec::new();
    for &cpu in allowed {
        let folder = sysfs.join(format!("cpu{cpu}"));
        let speed = read_number(&folder.join("cpufreq/cpuinfo_max_freq")).unwrap_or(0);
        let first = fs::read_to_string(folder.join("topology/thread_siblings_list"))
            .ok()
            .and_then(|list| first_of(&list, allowed))
            .unwrap_or(cpu);
        let kind = if first == cpu { &mut cores } else { &mut siblings };
        kind.push((speed, cpu));
    }
    cores.sort_by_key(|&(speed, cpu)| (std::cmp::Reverse(speed), cpu));
    siblings.sort_by_key(|&(speed, cpu)| (std::cmp::Reverse(speed), cpu));
    let count = threads.map_or(cores.len(), |n| n as usize).max(1);
    // More threads than cores spill over to siblings; more than CPUs share what there is.
    let mut chosen: Vec<u32> = cores.iter().chain(&siblings).take(count).map(|&(_, cpu)| cpu).collect();
    chosen.sort_unstable();
    chosen
}

/// The lowest allowed CPU of a list like `0,64` or `0-1`.
fn first_of(list: &str, allowed: &[u32]) -> Option<u32> {
    let mut numbers = list.trim().split(',').filter_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse::<u32>().ok()?..=to.parse::<u32>().ok()?)
    });
    numbers.by_ref().flatten().find(|cpu| allowed.contains(cpu))
}

fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Pins the calling thread, and every thread it starts from now on. Says why it could not.
pub fn pin(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus.iter().filter(|&&cpu| (cpu as usize) < CpuSet::MAX_CPU) {
        set.set(cpu as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_of_siblings_are_read() {
        assert_eq!(first_of("0,64\n", &[0, 64]), Some(0));
        assert_eq!(first_of("2-3", &[3, 4]), Some(3));
        assert_eq!(first_of("garbage", &[0]), None);
    }

    #[test]
    fn without_sysfs_every_cpu_is_a_core() {
        let nowhere = Path::new("/nonexistent");
        assert_eq!(pick(&[0, 1, 5], None, nowhere), [0, 1, 5]);
        assert_eq!(pick(&[0, 1, 5], Some(2), nowhere), [0, 1]);
        assert_eq!(pick(&[0, 1], Some(9), nowhere), [0, 1]);
    }

    #[test]
    fn this_machine_has_a_cpu_and_it_can_be_pinned_to() {
        let cpus = choose(Some(1));
        assert_eq!(cpus.len(), 1);
        std::thread::spawn(move || {
            pin(&cpus).unwrap();
            assert_eq!(allowed(), cpus);
        })
        .join()
        .unwrap();
    }
}
