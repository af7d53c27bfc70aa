//! Memory of the system, from `/proc/meminfo`, and of this process.

use std::path::PathBuf;

use crate::tree::Tree;
use crate::worker::status_bytes;

/// In bytes; what the kernel does not tell is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    pub(crate) total: Option<u64>,
    pub(crate) available: Option<u64>,
    pub(crate) swap_total: Option<u64>,
    pub(crate) swap_free: Option<u64>,
}

impl Memory {
    pub(crate) fn swap_used(&self) -> Option<u64> {
        Some(self.swap_total?.saturating_sub(self.swap_free?))
    }
}

pub(crate) fn read(tree: &Tree) -> Option<Memory> {
    let text = tree.text("proc/meminfo")?;
    let mut memory = Memory::default();
    for line in text.lines() {
        let Some((key, rest)) = line.split_once(':') else { continue };
        let slot = match key {
            "MemTotal" => &mut memory.total,
            "MemAvailable" => &mut memory.available,
            "SwapTotal" => &mut memory.swap_total,
            "SwapFree" => &mut memory.swap_free,
            _ => continue,
        };
        *slot = rest.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).map(|kib| kib * 1024);
    }
    memory.total.is_some().then_some(memory)
}

/// Highest resident memory of this process so far.
pub fn peak_rss_bytes() -> Option<u64> {
    status_bytes(&Tree::new(PathBuf::from("/")), "self", "VmHWM:")
}
