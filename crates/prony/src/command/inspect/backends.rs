//! What could run a model on this machine, why the rest cannot, and how fast it could be at best.

use prony_backend::{backend, precision_of};
use prony_types::{
    BackendName, ModelFormat, ModelInfo, PeakRecord, Precision, ProviderSpec, RooflineRecord, RuntimeName,
};
use serde_json::{Value, json};

use super::graph::Graph;
use prony_run::MachineLock;
use prony_run::roofline::{self, Where};
use prony_runtimes::{Found, choose};

/// One backend and this model.
pub(super) struct Runner {
    pub(super) name: BackendName,
    /// The version of its library, or why it cannot run the model.
    pub(super) ability: Result<Option<String>, String>,
    /// The floor, or why there is none; only where it can run the model.
    pub(super) floor: Option<Result<RooflineRecord, String>>,
}

/// All backends, and the peaks that floors were made with.
pub(super) struct Runners {
    pub(super) runners: Vec<Runner>,
    pub(super) peaks: Vec<PeakRecord>,
}

impl Runners {
    /// Asks every backend. The CPU is measured where that tells something, and where nobody else is measuring.
    pub(super) fn of(found: &Found, info: &ModelInfo, graph: &Graph, device: u32) -> Runners {
        let abilities = BackendName::ALL.iter().map(|&name| (name, ability(found, name, info)));
        let abilities: Vec<_> = abilities.collect();
        let (precision, provider) = (precision_of(info), ProviderSpec::default());
        let mut peaks = Vec::new();
        let on_cpu = abilities.iter().any(|(name, ability)| ability.is_ok() && !name.on_gpu());
        let lock = (on_cpu && precision == Precision::Fp32).then(MachineLock::if_free);
        if let Some(Ok(_)) = &lock {
            peaks.extend(roofline::measure_cpu(&[], &place(BackendName::Rten, 0, &provider)));
        }
        let runner = |(name, ability): (BackendName, Result<Option<String>, String>)| {
            let floor = ability.is_ok().then(|| {
                let peak = match &lock {
                    Some(Err(holder)) if !name.on_gpu() => Err(format!(
                        "not measured, because the measuring lock of this machine is held by {holder}; run it again later"
                    )),
                    _ => roofline::peak_for(&peaks, &found.gpus, &place(name, device, &provider), precision),
                };
                peak.and_then(|peak| roofline::floor(&graph.anatomy.cost, &peak))
            });
            Runner { name, ability, floor }
        };
        Runners { runners: abilities.into_iter().map(runner).collect(), peaks }
    }

    pub(super) fn json(&self) -> Value {
        let runner = |runner: &Runner| {
            let floor = runner.floor.as_ref();
            json!({
                "backend": runner.name,
                "runs": runner.ability.is_ok(),
                "version": runner.ability.as_ref().ok().cloned().flatten(),
                "reason": runner.ability.as_ref().err(),
                "roofline": floor.and_then(|floor| floor.as_ref().ok()),
                "roofline_absent": floor.and_then(|floor| floor.as_ref().err()),
            })
        };
        self.runners.iter().map(runner).collect()
    }
}

fn place(backend: BackendName, device: u32, provider: &ProviderSpec) -> Where<'_> {
    Where { backend, device, threads: None, provider }
}

/// Whether a backend could run the model as it is.
fn ability(found: &Found, name: BackendName, info: &ModelInfo) -> Result<Option<String>, String> {
    backend(name).supports(Precision::Native, info, &ProviderSpec::default()).map_err(|e| e.to_string())?;
    let runtime = choose(found, name).map_err(|reason| without_name(name, &reason))?;
    let builds = info.format == ModelFormat::Onnx && name.runs_engines();
    if builds {
        let tensorrt =
            choose(found, BackendName::Tensorrt).map_err(|reason| without_name(BackendName::Tensorrt, &reason))?;
        let parser = |runtime: &prony_types::RuntimeSpec| runtime.companions.contains_key(&RuntimeName::Nvonnxparser);
        if !tensorrt.as_ref().is_some_and(parser) {
            return Err(
                "no libnvonnxparser of the same version, so no engine can be built from an ONNX file".to_owned()
            );
        }
    }
    Ok(runtime.map(|runtime| runtime.version).filter(|version| !version.is_empty()))
}

/// The reason stands behind the name already.
fn without_name(name: BackendName, reason: &str) -> String {
    reason.strip_prefix(&format!("{name}: ")).unwrap_or(reason).to_owned()
}
