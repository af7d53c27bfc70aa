//! What a model should take at least on a device of this machine: its cost, the device's peak, and where either is missing
//! the reason. `inspect` and `bench` both ask here.

use prony_backend::affinity;
use prony_judge::predict;
use prony_model::Cost;
use prony_types::{BackendName, CellSpec, GpuRecord, PeakRecord, Precision, ProviderSpec, RooflineRecord};

/// Where a model runs, as far as a peak depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Where<'a> {
    /// What executes it.
    pub backend: BackendName,
    /// Which GPU.
    pub device: u32,
    /// How many threads, where that was said.
    pub threads: Option<u32>,
    /// Options for its library.
    pub provider: &'a ProviderSpec,
}

impl<'a> Where<'a> {
    /// Where a cell runs.
    pub fn of(spec: &'a CellSpec) -> Where<'a> {
        let CellSpec { backend, device, threads, provider, .. } = spec;
        Where { backend: *backend, device: *device, threads: *threads, provider }
    }

    /// Whether it runs on the CPU's own cores.
    pub fn on_cpu(&self) -> bool {
        let elsewhere = self.provider.openvino_device.as_deref().is_some_and(|device| !device.starts_with("CPU"));
        let openvino = matches!(self.backend, BackendName::Openvino | BackendName::OrtOpenvino);
        !(self.backend.on_gpu() || openvino && elsewhere)
    }

    fn cpu_threads(&self) -> u32 {
        u32::try_from(affinity::choose(self.threads).len()).unwrap_or(u32::MAX)
    }
}

/// Measures the CPU with the threads that a backend would use; `None` where that is not needed, or is among these already.
#[must_use]
pub fn measure_cpu(peaks: &[PeakRecord], at: &Where<'_>) -> Option<PeakRecord> {
    let cpus = affinity::choose(at.threads);
    let known = |peak: &PeakRecord| peak.device == "cpu" && peak.threads == Some(at.cpu_threads());
    (at.on_cpu() && !peaks.iter().any(known)).then(|| prony_probe::cpu_peak(&cpus))
}

/// The peak that bounds a precision in a place, or why none is known.
pub fn peak_for(
    peaks: &[PeakRecord],
    gpus: &[GpuRecord],
    at: &Where<'_>,
    precision: Precision,
) -> Result<PeakRecord, String> {
    if at.backend.on_gpu() {
        let gpu = gpus.get(at.device as usize).ok_or_else(|| format!("there is no GPU {}", at.device))?;
        let unknown = || format!("the peak of {} in {precision} is not known", gpu.name);
        return prony_probe::gpu_peak(at.device, gpu, precision).ok_or_else(unknown);
    }
    if !at.on_cpu() {
        return Err("the peak of OpenVINO's other devices is not known".to_owned());
    }
    if precision != Precision::Fp32 {
        return Err(format!("the CPU's peak in {precision} is not measured, only that in fp32"));
    }
    let measured = peaks.iter().find(|peak| peak.device == "cpu" && peak.threads == Some(at.cpu_threads()));
    measured.cloned().ok_or_else(|| "the CPU's peak was not measured".to_owned())
}

/// The floor for a model of known cost, or why there is none.
pub fn floor(cost: &Cost, peak: &PeakRecord) -> Result<RooflineRecord, String> {
    let unknown: Vec<&str> = cost.unknown().map(|node| node.op.as_str()).collect();
    if let [first, ..] = &unknown[..] {
        let nodes = if unknown.len() == 1 { "node" } else { "nodes" };
        return Err(format!("the cost of {} {nodes} is not known, {first} among them", unknown.len()));
    }
    predict(&cost.layers, peak).ok_or_else(|| "the device has no peak".to_owned())
}

#[cfg(test)]
mod tests {
    use prony_plan::OpenedModels;
    use prony_types::{ModelSource, ModelSpec, PeakOrigin, SceneKind};

    use super::*;

    fn spec(backend: BackendName) -> CellSpec {
        let source = ModelSource::Builtin(SceneKind::Rgb);
        let model = ModelSpec::new("m", source, "");
        CellSpec { imgsz: Some([320, 320]), threads: Some(1), ..CellSpec::new(model, backend, Precision::Fp32) }
    }

    fn cpu() -> PeakRecord {
        PeakRecord {
            device: "cpu".into(),
            precision: Precision::Fp32,
            flops_per_s: 1e11,
            bytes_per_s: Some(1e10),
            cache_bytes: Some(1 << 25),
            threads: Some(1),
            origin: PeakOrigin::Measured,
            how: String::new(),
        }
    }

    #[test]
    fn a_built_in_detector_has_a_floor_on_the_cpu() {
        let spec = spec(BackendName::Rten);
        let peak = peak_for(&[cpu()], &[], &Where::of(&spec), Precision::Fp32).unwrap();
        let cost = OpenedModels::default().cost(&spec).as_ref().clone().unwrap();
        let floor = floor(&cost, &peak).unwrap();
        assert_eq!(floor.flops, cost.flops());
        assert!(floor.predicted_ms >= floor.flops as f64 / 1e11 * 1e3 * 0.999, "{floor:?}");
    }

    #[test]
    fn a_precision_that_was_not_measured_has_no_floor() {
        let spec = spec(BackendName::OrtCpu);
        let reason = peak_for(&[cpu()], &[], &Where::of(&spec), Precision::Int8).unwrap_err();
        assert_eq!(reason, "the CPU's peak in int8 is not measured, only that in fp32");
        let more = CellSpec { threads: Some(1), backend: BackendName::OrtCuda, ..spec };
        assert_eq!(peak_for(&[cpu()], &[], &Where::of(&more), Precision::Fp32).unwrap_err(), "there is no GPU 0");
    }
}
