//! What other processes took from a cell.
//!
//! A median hides a steady load: every frame takes twice as long, so nothing scatters. The kernel counts how long each
//! thread was ready to run and waited for a CPU, and that is the evidence. Two things must not pass for a neighbour's
//! doing. A cell with more threads than CPUs waits for itself; so nothing beyond what others really used of its CPUs
//! counts, nor beyond what its own CPU time left of them. And a thread that sleeps asks for nothing; so the share is of
//! the time that the work was held up, not of all threads at all times:
//!
//! - over all threads, wait for others and steal over the CPU time the cell asked for (its CPU time and those two), but over
//!   wall time where that is longer: a cell that mostly waits for a GPU is held up for the wait on its one thread, no more;
//! - of the thread that waited longest, its wait over wall time: the other threads of a pool wait for it at the end of
//!   every layer, so one CPU out of 64 that is taken halves the speed although it is less than 1 % of the CPU time.
//!
//! The larger of the two is the share.

use prony_types::{LoadCounters, LoadRecord, LoadSnapshot, Verdict};

/// Share from which on a measurement says as much about the neighbours as about the cell.
pub const UNSTABLE_SHARE: f64 = 0.05;
/// Share from which on it is mentioned.
pub const NOTED_SHARE: f64 = 0.01;

/// What was counted between two snapshots of a process. A thread that began in between has waited since then only; one
/// that ended took its account with it, and its CPU time is still in that of the process.
pub fn between(before: &LoadSnapshot, after: &LoadSnapshot) -> LoadCounters {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let grown = |before: Option<u64>, after: Option<u64>| Some(seconds(after?.saturating_sub(before?)));
    let threads = before.threads.as_ref().zip(after.threads.as_ref());
    let waits = threads.map(|(before, after)| {
        let waited = after.iter().map(|now| {
            let then = before.iter().find(|then| then.id == now.id);
            now.wait_ns.saturating_sub(then.map_or(0, |then| then.wait_ns))
        });
        waited.collect::<Vec<u64>>()
    });
    let switches = threads.and_then(|(before, after)| {
        let taken = after.iter().map(|now| {
            let then = before.iter().find(|then| then.id == now.id);
            let then = then.map_or(Some(0), |then| then.involuntary_switches);
            Some(now.involuntary_switches?.saturating_sub(then?))
        });
        taken.sum::<Option<u64>>()
    });
    LoadCounters {
        wall_s: seconds(after.t_ns.saturating_sub(before.t_ns)),
        cpus: after.cpus,
        cpu_s: grown(before.cpu_ns, after.cpu_ns),
        run_queue_wait_s: waits.as_ref().map(|waits| seconds(waits.iter().sum())),
        longest_wait_s: waits.as_ref().map(|waits| seconds(waits.iter().copied().max().unwrap_or(0))),
        involuntary_switches: switches,
        busy_s: grown(before.busy_ns, after.busy_ns),
        steal_s: grown(before.steal_ns, after.steal_ns),
    }
}

/// The rounds of a cell together. `stalled_s` is how long it stood still in them, which is reported apart. `serial` says that
/// one thread does all the work and never sleeps, so that its CPU time alone is evidence.
pub fn record(rounds: &[LoadCounters], stalled_s: f64, serial: bool) -> Option<LoadRecord> {
    let counters = rounds.iter().copied().reduce(LoadCounters::and)?;
    let worst = rounds.iter().filter_map(|round| others_share(round, 0.0, serial)).reduce(f64::max);
    let worst_round_share = worst.filter(|_| rounds.len() > 1);
    Some(LoadRecord { counters, others_share: others_share(&counters, stalled_s, serial), worst_round_share })
}

/// Share of the time that others held up the work, from 0 to 1; `None` where the counters do not tell.
fn others_share(load: &LoadCounters, stalled_s: f64, serial: bool) -> Option<f64> {
    let wall = load.wall_s - stalled_s;
    let cpu = load.cpu_s?;
    if wall <= 0.0 {
        return None;
    }
    let steal = load.steal_s.unwrap_or(0.0);
    let Some((wait, longest)) = load.run_queue_wait_s.zip(load.longest_wait_s) else {
        return serial.then(|| ((wall - cpu).max(steal) / wall).clamp(0.0, 1.0));
    };
    let cpus = f64::from(load.cpus.max(1));
    let left = (cpus * wall - cpu).max(0.0);
    let others = load.busy_s.map_or(left, |busy| (busy - cpu).clamp(0.0, left));
    let by_others = wait.min(others);
    let of_all = (by_others + steal) / (cpu + by_others + steal).max(wall);
    // Whose doing one thread's wait was is not known, so it is shared out as that of all threads is.
    let of_longest = (longest * if wait > 0.0 { by_others / wait } else { 0.0 } + steal / cpus) / wall;
    Some(of_all.max(of_longest).clamp(0.0, 1.0))
}

/// What is to be said of it, if anything.
pub(crate) fn finding(load: Option<&LoadRecord>) -> Option<(Verdict, String)> {
    let Some((load, share)) = load.and_then(|load| Some((load, load.others_share?))) else {
        let reason = "how long it waited for a CPU could not be read here, so load by other processes could not be \
                      ruled out";
        return Some((Verdict::Valid, reason.into()));
    };
    if share <= NOTED_SHARE {
        return None;
    }
    let percent = share * 100.0;
    let mut reason = format!("others took {percent:.0} % of the CPU time this cell asked for ({})", evidence(load));
    let worst = load.worst_round_share.filter(|worst| *worst > share * 1.5);
    if let Some(worst) = worst {
        reason += &format!(", {:.0} % in the worst round", worst * 100.0);
    }
    if share <= UNSTABLE_SHARE {
        return Some((Verdict::Valid, reason));
    }
    reason += "; measure again on a quiet machine";
    Some((Verdict::Unstable, reason))
}

/// The counters behind a share.
fn evidence(load: &LoadRecord) -> String {
    let LoadCounters { wall_s, cpu_s, run_queue_wait_s, involuntary_switches, steal_s, .. } = load.counters;
    let mut parts = match run_queue_wait_s {
        Some(wait) => vec![format!("run-queue wait {wait:.1} s in {wall_s:.1} s")],
        None => vec![format!("{:.1} s of CPU time in {wall_s:.1} s", cpu_s.unwrap_or(0.0))],
    };
    parts.extend(involuntary_switches.map(|n| format!("{n} involuntary switch{}", if n == 1 { "" } else { "es" })));
    parts.extend(steal_s.filter(|steal| *steal >= 0.05).map(|steal| format!("{steal:.1} s stolen by the hypervisor")));
    parts.join(", ")
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
