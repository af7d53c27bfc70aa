//! How much memory a cell takes: an estimate before it is loaded, corrected by what the cells before it really took.

use prony_model::Cost;
use prony_types::{BackendName, CellSpec, HeadChoice, InputSpec, ModelSource, Precision};

const MIB: u64 = 1 << 20;

/// Frames are not kept beyond this, see `prony-bench`.
const MOST_FRAMES: u64 = 512 * MIB;
/// A frame of images whose size is not known: 1280 x 720 in colour.
const USUAL_FRAME: u64 = 1280 * 720 * 3;
/// Copies of the weights on the host: as read, as packed, and while one becomes the other.
const HOST_COPIES: u64 = 3;
/// The same where they end up on a device.
const STAGING_COPIES: u64 = 2;
/// Copies on the device.
const DEVICE_COPIES: u64 = 2;
/// Results that are alive at once, in multiples of what the largest node reads and writes.
const LIVE_NODES: u64 = 4;
/// The same for a graph that cannot be looked into, as a whole.
const UNKNOWN_ACTIVATIONS: u64 = 256 * MIB;
/// A context on the device.
const CONTEXT: u64 = 256 * MIB;

/// What a cell takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// Of the host's memory; on a device that shares it, all of it.
    pub host: u64,
    /// Of a device with memory of its own.
    pub device: u64,
}

impl Footprint {
    /// A coarse figure, from the graph where it could be read. `file_bytes` is the size of what is loaded.
    pub(crate) fn estimate(
        cell: &CellSpec,
        input: &InputSpec,
        cost: Option<&Cost>,
        file_bytes: u64,
        unified: bool,
    ) -> Footprint {
        let in_graph = |node: &prony_model::NodeCost| node.bytes.unwrap_or(0).saturating_sub(node.weight_bytes);
        let weights = cost.map_or(0, |cost| cost.nodes.iter().map(|node| node.weight_bytes).sum::<u64>());
        let weights = weights.max(file_bytes);
        let largest = cost.and_then(|cost| cost.nodes.iter().map(in_graph).max());
        let activations = largest.map_or(UNKNOWN_ACTIVATIONS, |bytes| bytes.saturating_mul(LIVE_NODES));
        // Half of what the first node reads and writes is about what is fed.
        let fed = cost.and_then(|cost| cost.nodes.first()).map_or(0, |node| in_graph(node) / 2);
        let frame = if cell.head == HeadChoice::None { fed } else { USUAL_FRAME };
        let frames = frame.saturating_mul(u64::from(input.frames.max(1))).min(MOST_FRAMES);
        let host = library(cell.backend) + frames;
        if !cell.backend.on_gpu() {
            let host = host.saturating_add(weights.saturating_mul(HOST_COPIES)).saturating_add(activations);
            return Footprint { host, device: 0 };
        }
        let host = host.saturating_add(weights.saturating_mul(STAGING_COPIES));
        let device = CONTEXT.saturating_add(weights.saturating_mul(DEVICE_COPIES)).saturating_add(activations);
        match unified {
            true => Footprint { host: host.saturating_add(device), device: 0 },
            false => Footprint { host, device },
        }
    }
}

/// Memory of a process with this library before it has a model, without what processes share.
const fn library(backend: BackendName) -> u64 {
    MIB * match backend {
        BackendName::Rten => 32,
        BackendName::OrtCpu => 96,
        BackendName::Openvino | BackendName::OrtOpenvino => 256,
        BackendName::Tensorrt | BackendName::Trtexec => 500,
        BackendName::OrtCuda => 700,
        BackendName::OrtTensorrt => 900,
    }
}

/// The size of what a cell loads, as far as one file says it.
pub(crate) fn file_bytes(cell: &CellSpec) -> u64 {
    let path = match (&cell.artifact, &cell.model.source) {
        (Some(artifact), _) => Some(artifact.path.as_path()),
        (None, ModelSource::File(path)) => Some(path.as_path()),
        (None, ModelSource::Builtin(_)) => None,
    };
    path.and_then(|path| std::fs::metadata(path).ok()).map_or(0, |file| file.len())
}

/// What cells were estimated to take, and what they took.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    backend: BackendName,
    model: String,
    precision: Precision,
    batch: u32,
    estimated: u64,
    took: u64,
}

impl Ledger {
    /// Remembers what a cell took; a later figure replaces an earlier one.
    pub(crate) fn learn(&mut self, cell: &CellSpec, estimated: u64, took: u64) {
        self.entries.retain(|entry| !entry.is_of(cell));
        self.entries.push(Entry {
            backend: cell.backend,
            model: cell.model.sha256.clone(),
            precision: cell.precision,
            batch: cell.batch,
            estimated,
            took,
        });
    }

    /// An estimate, corrected: by what the very same took, else by how far the estimates of its backend were off at most. A
    /// tenth more, because no two processes take the same.
    pub(crate) fn need(&self, cell: &CellSpec, estimated: u64) -> u64 {
        let tenth_more = |bytes: u64| bytes.saturating_add(bytes / 10);
        if let Some(entry) = self.entries.iter().find(|entry| entry.is_of(cell)) {
            return tenth_more(entry.took);
        }
        let alike = self.entries.iter().filter(|entry| entry.backend == cell.backend);
        match alike.map(Entry::ratio).reduce(f64::max) {
            Some(ratio) => tenth_more((estimated as f64 * ratio) as u64),
            None => estimated,
        }
    }
}

impl Entry {
    fn is_of(&self, cell: &CellSpec) -> bool {
        let same = (self.backend, self.precision, self.batch) == (cell.backend, cell.precision, cell.batch);
        same && self.model == cell.model.sha256
    }

    fn ratio(&self) -> f64 {
        self.took as f64 / self.estimated.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use prony_types::{ModelSpec, SceneKind, SourceSpec};

    use super::*;

    fn cell(name: &str, backend: BackendName) -> CellSpec {
        let source = ModelSource::Builtin(SceneKind::Rgb);
        CellSpec::new(ModelSpec::new(name, source, name.to_owned()), backend, Precision::Fp32)
    }

    const INPUT: InputSpec = InputSpec { source: SourceSpec::Scenes, seed: 7, frames: 32 };

    #[test]
    fn larger_weights_and_more_frames_take_more() {
        let of = |file_bytes, frames| {
            let input = InputSpec { frames, ..INPUT };
            Footprint::estimate(&cell("m", BackendName::OrtCpu), &input, None, file_bytes, false).host
        };
        assert!(of(100 * MIB, 32) >= of(0, 32) + 300 * MIB);
        assert!(of(0, 64) > of(0, 32));
        assert_eq!(of(0, 10_000_000), of(0, 20_000_000), "frames are bounded");
        assert!(of(u64::MAX, 32) == u64::MAX, "a size that cannot be is no overflow");
    }

    #[test]
    fn on_unified_memory_the_device_s_part_is_the_host_s() {
        let of = |unified| Footprint::estimate(&cell("m", BackendName::Tensorrt), &INPUT, None, 50 * MIB, unified);
        let (apart, shared) = (of(false), of(true));
        assert!(apart.device > CONTEXT);
        assert_eq!(shared, Footprint { host: apart.host + apart.device, device: 0 });
        let on_cpu = Footprint::estimate(&cell("m", BackendName::Rten), &INPUT, None, 50 * MIB, true);
        assert_eq!(on_cpu.device, 0);
    }

    #[test]
    fn an_estimate_is_corrected_by_what_cells_took() {
        let (a, b) = (cell("a", BackendName::Rten), cell("b", BackendName::Rten));
        let other = cell("b", BackendName::OrtCpu);
        let mut ledger = Ledger::default();
        assert_eq!(ledger.need(&a, 100), 100);
        ledger.learn(&a, 100, 300);
        assert_eq!(ledger.need(&a, 100), 330, "the very same");
        assert_eq!(ledger.need(&b, 200), 660, "three times what was estimated, as the one before it");
        assert_eq!(ledger.need(&other, 200), 200, "nothing is known of that backend");
        ledger.learn(&b, 1000, 500);
        assert_eq!(ledger.need(&cell("c", BackendName::Rten), 100), 330, "the worst of its backend counts");
        ledger.learn(&a, 100, 50);
        assert_eq!(ledger.need(&a, 100), 55, "the latest figure");
    }
}
