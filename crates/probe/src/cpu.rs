//! CPU time of the whole system, from `/proc/stat`.

use crate::tree::Tree;

const PATH: &str = "proc/stat";

/// Remembers the last reading, because only differences mean something.
#[derive(Debug)]
pub(crate) struct Cpu {
    last: Option<Ticks>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    busy: u64,
    all: u64,
}

impl Cpu {
    pub(crate) fn find(tree: &Tree) -> Cpu {
        Cpu { last: ticks(tree) }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.last.is_some()
    }

    /// Share of all CPUs that was busy since the last reading, 0 to 100.
    pub(crate) fn read(&mut self, tree: &Tree, failed: &mut Vec<String>) -> Option<f64> {
        let last = self.last?;
        let Some(now) = ticks(tree) else {
            failed.push("cpu time".into());
            return None;
        };
        self.last = Some(now);
        let all = now.all.checked_sub(last.all).filter(|&d| d > 0)?;
        // Single counters may step back a little when a CPU sleeps.
        let busy = now.busy.saturating_sub(last.busy).min(all);
        Some(busy as f64 / all as f64 * 100.0)
    }
}

fn ticks(tree: &Tree) -> Option<Ticks> {
    let text = tree.text(PATH)?;
    let line = text.lines().find_map(|l| l.strip_prefix("cpu "))?;
    // user nice system idle iowait irq softirq steal; guest time after that is already in user.
    let fields: Vec<u64> = line.split_whitespace().take(8).map_while(|f| f.parse().ok()).collect();
    let all: u64 = fields.iter().sum();
    let idle = fields.get(3)? + fields.get(4).unwrap_or(&0);
    Some(Ticks { busy: all - idle, all })
}
