//! What this process got of its CPUs and what it had to wait for, from `/proc/self` and `/proc/stat`.

use std::path::PathBuf;

use prony_types::{LoadSnapshot, ThreadLoad};
use rustix::thread::{CpuSet, sched_getaffinity};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::tree::Tree;

/// What the kernel has counted of this process so far. It opens two files per thread, so it belongs outside what is timed.
pub fn load_snapshot() -> LoadSnapshot {
    let allowed = allowed_cpus();
    LoadSnapshot {
        t_ns: nanoseconds(clock_gettime(ClockId::Monotonic)),
        cpu_ns: Some(nanoseconds(clock_gettime(ClockId::ProcessCPUTime))),
        ..counted(&Tree::new(PathBuf::from("/")), &allowed, procfs::ticks_per_second())
    }
}

/// The part that is in files.
fn counted(tree: &Tree, cpus: &[u32], ticks_per_second: u64) -> LoadSnapshot {
    let times = cpu_times(tree, cpus);
    let ns = |ticks: u64| ticks.saturating_mul(1_000_000_000) / ticks_per_second.max(1);
    LoadSnapshot {
        t_ns: 0,
        cpus: cpus.len() as u32,
        cpu_ns: None,
        threads: threads(tree),
        busy_ns: times.map(|times| ns(times.busy)),
        steal_ns: times.and_then(|times| times.steal).map(ns),
    }
}

fn allowed_cpus() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Every thread with its wait on run queues; `None` where the kernel keeps no such accounts. It then has no file, or one
/// with three zeros for every thread, which no thread that ever ran can have.
fn threads(tree: &Tree) -> Option<Vec<ThreadLoad>> {
    let mut accounted = false;
    let mut threads = Vec::new();
    for id in tree.numbered("proc/self/task", "") {
        // A thread may end between the list and the file.
        let Some(text) = tree.text(&format!("proc/self/task/{id}/schedstat")) else { continue };
        // Time on a CPU, time on a run queue, turns.
        let mut fields = text.split_whitespace().map_while(|field| field.parse::<u64>().ok());
        let (Some(ran), Some(wait_ns), Some(turns)) = (fields.next(), fields.next(), fields.next()) else { continue };
        accounted |= ran > 0 || wait_ns > 0 || turns > 0;
        let involuntary_switches = tree.text(&format!("proc/self/task/{id}/status")).and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?;
            line.trim().parse().ok()
        });
        threads.push(ThreadLoad { id: id.parse().ok()?, wait_ns, involuntary_switches });
    }
    accounted.then_some(threads)
}

/// Ticks of some CPUs together.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CpuTimes {
    busy: u64,
    /// Kernels before 2.6.11 have no such column.
    steal: Option<u64>,
}

fn cpu_times(tree: &Tree, cpus: &[u32]) -> Option<CpuTimes> {
    let text = tree.text("proc/stat")?;
    let mut sum = CpuTimes { busy: 0, steal: Some(0) };
    let mut found = 0;
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("cpu") else { continue };
        let Some((number, rest)) = rest.split_once(' ') else { continue };
        if !number.parse().is_ok_and(|number: u32| cpus.contains(&number)) {
            continue;
        }
        // user nice system idle iowait irq softirq steal; guest time after that is already in user.
        let fields: Vec<u64> = rest.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        sum.busy += [0, 1, 2, 5, 6].iter().filter_map(|&at| fields.get(at)).sum::<u64>();
        sum.steal = sum.steal.zip(fields.get(7)).map(|(sum, steal)| sum + steal);
        found += 1;
    }
    // A sandbox may list fewer CPUs than it lets run; a part of them says nothing about the whole.
    (found > 0 && found == cpus.len()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    fn fixture() -> Fixture {
        let fixture = Fixture::new();
        fixture.write(
            "proc/stat",
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 10 20 700 5 1 2 30 0 0\ncpu1 7 0 0 0 0 0 0 1 0 0\ncpu10 3 0 0 0 0 0 0 0 0 0\nintr 5\n",
        );
        fixture.write("proc/self/task/41/schedstat", "5000 300 7\n");
        fixture.write("proc/self/task/41/status", "Name:\tx\nnonvoluntary_ctxt_switches:\t12\n");
        fixture.write("proc/self/task/42/schedstat", "0 0 0\n");
        fixture
    }

    #[test]
    fn only_the_cpus_of_this_process_are_counted() {
        let of = |cpus: &[u32]| counted(&fixture().tree(), cpus, 100);
        let one = of(&[0]);
        assert_eq!((one.busy_ns, one.steal_ns), (Some(1_330_000_000), Some(300_000_000)));
        let two = of(&[1, 10]);
        assert_eq!((two.cpus, two.busy_ns, two.steal_ns), (2, Some(100_000_000), Some(10_000_000)));
        assert_eq!(of(&[0, 3]).busy_ns, None, "a CPU that is not listed");
    }

    #[test]
    fn threads_are_told_apart_by_their_number() {
        let threads = counted(&fixture().tree(), &[0], 100).threads.unwrap();
        let thread = |id, wait_ns, involuntary_switches| ThreadLoad { id, wait_ns, involuntary_switches };
        assert_eq!(threads, [thread(41, 300, Some(12)), thread(42, 0, None)]);
    }

    #[test]
    fn a_kernel_without_accounts_does_not_say_that_nobody_waited() {
        let fixture = fixture();
        fixture.write("proc/self/task/41/schedstat", "0 0 0\n");
        assert_eq!(counted(&fixture.tree(), &[0], 100).threads, None);
        assert_eq!(counted(&Fixture::new().tree(), &[0], 100), LoadSnapshot { cpus: 1, ..LoadSnapshot::default() });
    }

    #[test]
    fn this_process_has_used_its_cpus() {
        let snapshot = load_snapshot();
        assert!(snapshot.cpus > 0 && snapshot.cpu_ns.is_some_and(|ns| ns > 0) && snapshot.t_ns > 0, "{snapshot:?}");
    }
}
