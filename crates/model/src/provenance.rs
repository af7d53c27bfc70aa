//! What stands beside an engine: `X.engine.json`, with where and how it was built. And whether that fits the place where
//! it is to be run.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use prony_files::Kind;
use prony_types::EngineIdentity;
use serde_json::{Map, Value};

use crate::error::ModelError;

/// The version of the sidecar that is understood.
pub const ENGINE_SCHEMA: &str = "prony.engine/1";

/// What a sidecar says that matters to whoever runs the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineProvenance {
    /// Its file.
    pub path: PathBuf,
    /// Hash of the engine that it belongs to.
    pub engine_sha256: Option<String>,
    /// Where the engine was built.
    pub identity: EngineIdentity,
    /// The deep-learning accelerator that it was built for.
    pub dla_core: Option<u32>,
    /// All of it.
    pub facts: Map<String, Value>,
}

impl EngineProvenance {
    /// The name of an engine's sidecar.
    pub fn path_for(engine: &Path) -> PathBuf {
        let mut name = engine.as_os_str().to_owned();
        name.push(".json");
        name.into()
    }

    /// The one beside an engine, if there is one.
    pub fn beside(engine: &Path) -> Result<Option<EngineProvenance>, ModelError> {
        let path = EngineProvenance::path_for(engine);
        match prony_files::read(&path, Kind::Sidecar) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(reason) => Err(ModelError::Unreadable { path, reason }),
            Ok(bytes) => EngineProvenance::read(path, &bytes).map(Some),
        }
    }

    fn read(path: PathBuf, bytes: &[u8]) -> Result<EngineProvenance, ModelError> {
        let wrong = |path: &Path, reason: String| ModelError::Sidecar { path: path.to_owned(), reason };
        let facts = match serde_json::from_slice(bytes) {
            Ok(Value::Object(facts)) => facts,
            Ok(_) => return Err(wrong(&path, "it is no JSON object".into())),
            Err(error) => return Err(wrong(&path, format!("it is no JSON ({error})"))),
        };
        match facts.get("schema").and_then(Value::as_str) {
            Some(ENGINE_SCHEMA) => {}
            Some(other) => return Err(wrong(&path, format!("its schema is {other}, not {ENGINE_SCHEMA}"))),
            None => return Err(wrong(&path, format!("it does not say that it is {ENGINE_SCHEMA}"))),
        }
        let engine_sha256 = facts.get("engine_sha256").and_then(Value::as_str).map(str::to_owned);
        let dla_core = facts.get("engine").and_then(|engine| engine.get("dla_core")?.as_u64());
        let dla_core = dla_core.and_then(|core| u32::try_from(core).ok());
        Ok(EngineProvenance { engine_sha256, identity: identity(&facts), dla_core, facts, path })
    }

    /// Whether it describes these very bytes.
    pub(crate) fn holds_for(&self, name: &str, sha256: &str) -> Result<(), ModelError> {
        match &self.engine_sha256 {
            Some(described) if described != sha256 => Err(ModelError::CutEngine {
                name: name.to_owned(),
                reason: format!(
                    "its hash is not the one in {}, so it was cut short or replaced since it was built; build it \
                     again, or remove that file if the engine is another one",
                    self.path.display()
                ),
            }),
            _ => Ok(()),
        }
    }
}

/// Where an engine was built. The GPU is an object of its own, or its facts stand beside its name.
fn identity(facts: &Map<String, Value>) -> EngineIdentity {
    let gpu = facts.get("gpu").and_then(Value::as_object);
    let text = |of: &Map<String, Value>, key: &str| of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let flag = |key: &str| facts.get(key).and_then(Value::as_bool).unwrap_or(false);
    let of_gpu = gpu.unwrap_or(facts);
    EngineIdentity {
        tensorrt: text(facts, "tensorrt"),
        gpu: if gpu.is_some() { text(of_gpu, "name") } else { text(facts, "gpu") },
        compute_capability: text(of_gpu, "compute_capability"),
        sm_count: of_gpu.get("sm_count").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
        driver: text(facts, "driver"),
        cuda: text(facts, "cuda"),
        version_compatible: flag("version_compatible"),
        hardware_compatible: flag("hardware_compatible"),
    }
}

/// Why an engine that was built there should not be run here, both sides named; `None` where nothing speaks against it.
/// What one of the two sides does not tell is not held against it.
pub fn mismatch(built: &EngineIdentity, here: &EngineIdentity) -> Option<String> {
    let mut differ = Vec::new();
    if !fits_version(built, here) {
        differ.push("TensorRT's version");
    }
    if built.hardware_compatible {
        if parts(&here.compute_capability).is_some_and(|found| found < vec![8]) {
            differ.push("the GPU, which is older than Ampere");
        }
    } else {
        if differs(&built.gpu, &here.gpu) {
            differ.push("the GPU");
        }
        if differs(&built.compute_capability, &here.compute_capability) {
            differ.push("the compute capability");
        }
        if built.sm_count != here.sm_count && built.sm_count > 0 && here.sm_count > 0 {
            differ.push("the number of SMs");
        }
    }
    if differ.is_empty() {
        return None;
    }
    Some(format!(
        "this engine was built {}, here is {}: {} differ{}; build it here, or use --force to try it",
        place(built, "for", "by"),
        place(here, "", "with"),
        listed(&differ),
        if differ.len() == 1 { "s" } else { "" },
    ))
}

/// `a`, `a and b`, `a, b and c`.
fn listed(words: &[&str]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        words => words.concat(),
    }
}

fn differs(built: &str, here: &str) -> bool {
    !built.is_empty() && !here.is_empty() && built != here
}

/// The same version, or a later one for an engine that was built for that. Builds of one patch level are alike.
fn fits_version(built: &EngineIdentity, here: &EngineIdentity) -> bool {
    let first = |version: &str| parts(version).map(|parts| parts.into_iter().take(3).collect::<Vec<u32>>());
    match (first(&built.tensorrt), first(&here.tensorrt)) {
        (Some(built_by), Some(found)) => built_by == found || built.version_compatible && found > built_by,
        _ => !differs(&built.tensorrt, &here.tensorrt),
    }
}

fn parts(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|part| part.parse().ok()).collect()
}

/// The place in words, as far as it is known.
fn place(identity: &EngineIdentity, gpu_word: &str, tensorrt_word: &str) -> String {
    let mut words = Vec::new();
    if !identity.gpu.is_empty() {
        let mut details = Vec::new();
        if identity.sm_count > 0 {
            details.push(format!("{} SMs", identity.sm_count));
        }
        if !identity.compute_capability.is_empty() {
            details.push(format!("compute capability {}", identity.compute_capability));
        }
        let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
        words.push(format!("{gpu_word} {}{details}", identity.gpu).trim_start().to_owned());
    }
    if !identity.tensorrt.is_empty() {
        let word = if words.is_empty() && tensorrt_word == "with" { "" } else { tensorrt_word };
        words.push(format!("{word} TensorRT {}", identity.tensorrt).trim_start().to_owned());
    }
    if words.is_empty() { "something unknown".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
#[path = "provenance_tests.rs"]
mod tests;
