//! How often the kernel saw a CPU throttle for heat.

use crate::clock::CPUS;
use crate::tree::Tree;

/// The counters that exist.
#[derive(Debug)]
pub(crate) struct Counters {
    paths: Vec<(String, String)>,
}

impl Counters {
    pub(crate) fn find(tree: &Tree) -> Counters {
        let with_path = |cpu: String| {
            let path = format!("{CPUS}/{cpu}/thermal_throttle/core_throttle_count");
            tree.value::<u64>(&path).is_some().then_some((cpu, path))
        };
        Counters { paths: tree.numbered(CPUS, "cpu").into_iter().filter_map(with_path).collect() }
    }

    pub(crate) fn is_there(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Events of all CPUs since boot; absent when one does not answer, because the sum would seem to fall.
    pub(crate) fn read(&self, tree: &Tree, failed: &mut Vec<String>) -> Option<u64> {
        let mut sum = 0;
        let mut complete = self.is_there();
        for (cpu, path) in &self.paths {
            match tree.value::<u64>(path) {
                Some(count) => sum += count,
                None => {
                    failed.push(format!("throttle counter of {cpu}"));
                    complete = false;
                }
            }
        }
        complete.then_some(sum)
    }
}
