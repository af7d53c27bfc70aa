//! What else ran on the machine while a cell was timed.

use serde::{Deserialize, Serialize};

use crate::Phase;

/// Counters of a worker over a span of time: the rounds of a cell, or one of them. Absent is what the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadCounters {
    /// Wall time, with the uncounted frames before each round.
    pub wall_s: f64,
    /// CPUs that the worker's threads may run on.
    pub cpus: u32,
    /// CPU time of the worker, over all its threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// Time that its threads were ready to run and waited for a CPU, over all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_queue_wait_s: Option<f64>,
    /// The same of the one thread that waited longest, round by round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_wait_s: Option<f64>,
    /// Times that the kernel took a CPU away from one of its threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// CPU time of all processes on those CPUs, the worker included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_s: Option<f64>,
    /// Time that a hypervisor kept from those CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_s: Option<f64>,
}

impl LoadCounters {
    /// Both spans together. What one of them lacks, the sum lacks: half a figure would look like a small one.
    #[must_use]
    pub fn and(self, other: LoadCounters) -> LoadCounters {
        let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        LoadCounters {
            wall_s: self.wall_s + other.wall_s,
            cpus: self.cpus.max(other.cpus),
            cpu_s: sum(self.cpu_s, other.cpu_s),
            run_queue_wait_s: sum(self.run_queue_wait_s, other.run_queue_wait_s),
            longest_wait_s: sum(self.longest_wait_s, other.longest_wait_s),
            involuntary_switches: self.involuntary_switches.zip(other.involuntary_switches).map(|(a, b)| a + b),
            busy_s: sum(self.busy_s, other.busy_s),
            steal_s: sum(self.steal_s, other.steal_s),
        }
    }
}

/// What other processes took from a cell while it was timed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// Sums over all rounds.
    #[serde(flatten)]
    pub counters: LoadCounters,
    /// Share of the CPU time the cell asked for that others took, from 0 to 1; absent where the counters do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_share: Option<f64>,
    /// The same of the round in which it was largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_round_share: Option<f64>,
}

/// A time in which a cell that was being timed made no progress at all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// What was being timed.
    pub phase: Phase,
    /// Round of the schedule.
    pub round: u32,
    /// How long.
    pub seconds: f64,
}

/// What the kernel has counted of this process so far; the difference of two is a [`LoadCounters`]. Never written anywhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadSnapshot {
    /// CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// CPUs that the process may run on.
    pub cpus: u32,
    /// CPU time of the process, over all threads it ever had.
    pub cpu_ns: Option<u64>,
    /// Its threads as they are now; absent where the kernel does not account for them.
    pub threads: Option<Vec<ThreadLoad>>,
    /// CPU time of all processes on those CPUs.
    pub busy_ns: Option<u64>,
    /// Time that a hypervisor kept from those CPUs.
    pub steal_ns: Option<u64>,
}

/// One thread of a [`LoadSnapshot`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadLoad {
    /// Its number.
    pub id: u32,
    /// Time it was ready to run and waited for a CPU.
    pub wait_ns: u64,
    /// Times that the kernel took the CPU away from it.
    pub involuntary_switches: Option<u64>,
}
