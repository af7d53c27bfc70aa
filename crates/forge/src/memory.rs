//! Memory of the host while an engine is built: enough before it starts, and an end with advice before the kernel ends it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use prony_probe::MemoryRoom;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// CUDA, TensorRT and the kernels that it loads, as resident memory of a build: about this much on 8.6 and 10.
const BASE_BYTES: u64 = 1500 * MIB;
/// The same without cuBLAS and cuDNN and with kernels loaded when they are needed.
const SMALL_BASE_BYTES: u64 = 600 * MIB;
/// Copies of the weights that are alive at once: the file, the parsed graph, the network and the engine.
const COPIES: u64 = 4;
/// Copies on the device: weights as they are timed, and as they stay.
const DEVICE_COPIES: u64 = 2;
/// Scratch memory that a builder with no limit was seen to take for vision models.
const USUAL_WORKSPACE: u64 = GIB;

/// When a build must end for want of memory.
trait Scarcity {
    fn last_reserve(&self) -> u64;
    fn state(&self) -> State;
}

impl Scarcity for MemoryRoom {
    /// Below this the kernel may begin to kill: 5 % of a board's memory, at least 256 MiB, at most 1 GiB.
    fn last_reserve(&self) -> u64 {
        (self.total / 20).clamp(256 * MIB, GIB)
    }

    fn state(&self) -> State {
        // Swap puts the end off; while there is some, the build is only slow.
        let left = self.available.max(self.swap_free);
        match self.last_reserve() {
            reserve if left < reserve => State::Critical,
            reserve if self.available < 2 * reserve => State::Low,
            _ => State::Fine,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fine,
    Low,
    Critical,
}

/// What the watch has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// Said once.
    Warn(String),
    /// The build must end.
    Abort(String),
}

/// Looks at the memory again and again while a build is under way.
#[derive(Debug)]
pub(crate) struct Watch {
    root: PathBuf,
    warned: bool,
    lowest: Option<u64>,
}

impl Watch {
    /// Looks under a root, which is `/` or a made-up machine's.
    pub(crate) fn new(root: &Path) -> Watch {
        let lowest = MemoryRoom::read(root).map(|memory| memory.available);
        Watch { root: root.to_owned(), warned: false, lowest }
    }

    pub(crate) fn look(&mut self) -> Option<Alarm> {
        let memory = MemoryRoom::read(&self.root)?;
        self.lowest = Some(self.lowest.unwrap_or(u64::MAX).min(memory.available));
        let whose = if memory.of_cgroup { " in this control group" } else { "" };
        let left = format!("{} of {} memory left{whose}", size(memory.available), size(memory.total));
        match memory.state() {
            State::Fine => None,
            State::Low if self.warned => None,
            State::Low => {
                self.warned = true;
                Some(Alarm::Warn(format!("memory is getting scarce: {left}; {ADVICE} if it fails")))
            }
            State::Critical => Some(Alarm::Abort(format!(
                "the build was stopped before the kernel would have killed it: {left}, {} of swap; {ADVICE}",
                size(memory.swap_free)
            ))),
        }
    }

    /// Least memory that was ever left.
    pub(crate) fn lowest(&self) -> Option<u64> {
        self.lowest
    }
}

const ADVICE: &str = "use --low-memory, close other programs or add swap";

/// Highest resident memory of this process so far.
pub(crate) fn host_peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// What a build is going to take, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) host: u64,
    pub(crate) device: u64,
}

/// What an estimate is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) onnx_bytes: u64,
    pub(crate) workspace: Option<u64>,
    pub(crate) level: Option<u8>,
    pub(crate) low_memory: bool,
}

impl Plan {
    pub(crate) fn estimate(&self) -> Estimate {
        let base = if self.low_memory { SMALL_BASE_BYTES } else { BASE_BYTES };
        // From level 3 on more tactics are alive at once.
        let copies = COPIES + u64::from(self.level.unwrap_or(3).saturating_sub(2));
        Estimate {
            host: base + copies * self.onnx_bytes,
            device: self.workspace.unwrap_or(USUAL_WORKSPACE) + DEVICE_COPIES * self.onnx_bytes,
        }
    }

    /// What should be known before it starts; empty where there is room.
    pub(crate) fn advice(&self, host: Option<MemoryRoom>, gpu_free: Option<u64>, unified: bool) -> Vec<String> {
        let estimate = self.estimate();
        let mut advice = Vec::new();
        let small = if self.low_memory { "" } else { "; --low-memory takes less" };
        if let Some(host) = host {
            let needed = if unified { estimate.host + estimate.device } else { estimate.host };
            if needed + host.last_reserve() > host.available {
                let mut text = format!("the build takes about {} of memory", size(needed));
                let _ = write!(text, " and {} are available, {} of swap", size(host.available), size(host.swap_free));
                advice.push(text + small);
            }
            if let Some(workspace) = self.workspace
                && unified
                && workspace > host.available / 5 * 2
            {
                advice.push(format!(
                    "a workspace of {} is more than 40 % of the {} that are available; --workspace {}MB would fit",
                    size(workspace),
                    size(host.available),
                    (host.available / 4) >> 20
                ));
            }
        }
        if let Some(free) = gpu_free.filter(|&free| !unified && estimate.device > free) {
            advice.push(format!(
                "the build takes about {} on the GPU and {} are free there{small}",
                size(estimate.device),
                size(free)
            ));
        }
        advice
    }
}

/// `488 MiB`, `31.2 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    if bytes >= 10 * GIB { format!("{:.1} GiB", bytes as f64 / GIB as f64) } else { format!("{} MiB", bytes >> 20) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of a made-up machine.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        root
    }

    fn meminfo(total: u64, available: u64, swap: u64) -> String {
        let line = |key: &str, mib: u64| format!("{key}:  {} kB\n", mib << 10);
        line("MemTotal", total) + &line("MemFree", 1) + &line("MemAvailable", available) + &line("SwapFree", swap)
    }

    #[test]
    fn a_container_that_leaves_less_than_the_machine_counts() {
        let limits = |max: u64| {
            tree(&[
                ("proc/meminfo", &meminfo(8000, 4000, 6000)),
                ("proc/self/cgroup", "0::/"),
                ("sys/fs/cgroup/memory.max", &(max * MIB).to_string()),
                ("sys/fs/cgroup/memory.current", &(900 * MIB).to_string()),
                ("sys/fs/cgroup/memory.swap.max", "0"),
                ("sys/fs/cgroup/memory.swap.current", "0"),
            ])
        };
        let roomy = limits(6000);
        assert!(!MemoryRoom::read(roomy.path()).unwrap().of_cgroup, "5100 MiB are left there, 4000 on the machine");
        let tight = limits(1000);
        let Some(Alarm::Abort(text)) = Watch::new(tight.path()).look() else { panic!("no end") };
        assert!(
            text.contains("100 MiB of 1000 MiB memory left in this control group, 0 MiB of swap; use --low-memory"),
            "{text}"
        );
    }

    #[test]
    fn the_watch_warns_once_and_then_stops_the_build() {
        let root = tree(&[("proc/meminfo", "")]);
        let mut watch = Watch::new(root.path());
        let mut look = |available, swap| {
            fs::write(root.path().join("proc/meminfo"), meminfo(8000, available, swap)).unwrap();
            watch.look()
        };
        assert_eq!(look(4000, 0), None);
        let Some(Alarm::Warn(text)) = look(700, 0) else { panic!("no warning") };
        assert!(
            text.starts_with("memory is getting scarce: 700 MiB of 8000 MiB memory left; use --low-memory"),
            "{text}"
        );
        assert_eq!(look(650, 0), None, "once");
        assert_eq!(look(100, 2000), None, "swap puts it off");
        let Some(Alarm::Abort(text)) = look(300, 100) else { panic!("no end") };
        assert!(text.contains("300 MiB of 8000 MiB memory left, 100 MiB of swap; use --low-memory"), "{text}");
        assert_eq!(watch.lowest(), Some(100 * MIB));
    }

    #[test]
    fn a_big_machine_keeps_no_more_than_a_gibibyte_back() {
        let big = |available| MemoryRoom { total: 2000 * GIB, available, swap_free: 0, of_cgroup: false };
        assert_eq!(big(50 * GIB).state(), State::Fine);
        assert_eq!(big(GIB - 1).state(), State::Critical);
        let small = |available| MemoryRoom { total: 2 * GIB, available, swap_free: 0, of_cgroup: false };
        assert_eq!(small(255 * MIB).state(), State::Critical);
    }

    const PLAN: Plan = Plan { onnx_bytes: 100 * MIB, workspace: None, level: None, low_memory: false };

    #[test]
    fn an_estimate_grows_with_what_it_is_made_from() {
        let small = Plan { low_memory: true, level: Some(0), workspace: Some(256 * MIB), ..PLAN };
        assert!(small.estimate().host < PLAN.estimate().host && small.estimate().device < PLAN.estimate().device);
        let large = Plan { onnx_bytes: GIB, ..PLAN };
        assert!(large.estimate().host > PLAN.estimate().host && large.estimate().device > PLAN.estimate().device);
        assert!(Plan { level: Some(5), ..PLAN }.estimate().host > PLAN.estimate().host);
    }

    #[test]
    fn there_is_advice_only_where_there_is_no_room() {
        let host = |available| Some(MemoryRoom { total: 8 * GIB, available, swap_free: 0, of_cgroup: false });
        assert_eq!(PLAN.advice(host(6 * GIB), Some(4 * GIB), false), [""; 0]);
        assert_eq!(PLAN.advice(None, None, false), [""; 0]);
        let tight = PLAN.advice(host(GIB), Some(512 * MIB), false);
        assert_eq!(
            tight,
            [
                "the build takes about 2000 MiB of memory and 1024 MiB are available, 0 MiB of swap; --low-memory takes less",
                "the build takes about 1224 MiB on the GPU and 512 MiB are free there; --low-memory takes less",
            ]
        );
        let unified = Plan { workspace: Some(2 * GIB), ..PLAN }.advice(host(4 * GIB), Some(4 * GIB), true);
        assert_eq!(unified.len(), 2, "{unified:?}");
        assert!(unified[1].ends_with("--workspace 1024MB would fit"), "{unified:?}");
    }
}
