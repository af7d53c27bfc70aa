//! What an engine is made from and for: all that decides its bytes, and so its place in the cache.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use prony_types::{EngineIdentity, EngineSpec, SourceSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ForgeError;
use crate::key::key_of;

/// Digits of a hash that a person compares.
const SHOWN_DIGITS: usize = 12;

/// All that decides an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// SHA-256 of the ONNX file.
    pub onnx_sha256: String,
    /// Weights in files of their own, by name, with their SHA-256.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, String>,
    /// How it is built.
    pub engine: EngineSpec,
    /// SHA-256 of the data that int8 ranges are found on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration_sha256: Option<String>,
    /// How many tensors the outputs are decoded with, which stay in float where ranges are found on data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub float_tail: Option<usize>,
    /// What builds it, and for what.
    #[serde(flatten)]
    pub identity: EngineIdentity,
    /// Plugin libraries, by file name, with their SHA-256.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plugins: BTreeMap<String, String>,
    /// Most device memory that the build may take: kernels that need more are not chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_mem_limit_bytes: Option<u64>,
}

impl Recipe {
    /// Where it lies in the cache.
    pub fn key(&self) -> Result<String, ForgeError> {
        key_of(&self.canonical())
    }

    /// Without what does not matter: where calibration data lie is no part of what they are; their hash is.
    fn canonical(&self) -> Recipe {
        let mut recipe = self.clone();
        if let Some(calibration) = &mut recipe.engine.calibration {
            calibration.source = SourceSpec::Scenes;
            calibration.seed = 0;
        }
        recipe
    }

    /// Whether the other one is the same model, built the same way: what differs then is the machine.
    pub fn is_of_same_kind(&self, other: &Recipe) -> bool {
        let (one, other) = (self.canonical(), other.canonical());
        one.onnx_sha256 == other.onnx_sha256 && one.engine == other.engine
    }

    /// Every field in which the newer one differs from this one.
    pub fn differences(&self, newer: &Recipe) -> Result<Vec<RecipeDifference>, ForgeError> {
        let (old, new) = (fields(&self.canonical())?, fields(&newer.canonical())?);
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let differ = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
        let value = |fields: &BTreeMap<String, String>, name: &String| {
            fields.get(name).cloned().unwrap_or_else(|| "none".to_owned())
        };
        let difference =
            |name: &String| RecipeDifference { field: title(name), old: value(&old, name), new: value(&new, name) };
        Ok(differ.map(difference).collect())
    }
}

/// One field that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeDifference {
    /// In words.
    pub field: String,
    /// What it was.
    pub old: String,
    /// What it is.
    pub new: String,
}

impl fmt::Display for RecipeDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.field, self.old, self.new)
    }
}

/// Every leaf of a recipe by its path.
fn fields(recipe: &Recipe) -> Result<BTreeMap<String, String>, ForgeError> {
    let mut found = BTreeMap::new();
    collect("", &serde_json::to_value(recipe).map_err(ForgeError::json("a recipe"))?, &mut found);
    Ok(found)
}

fn collect(path: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| collect(&below(key), value, into)),
        Value::Null => {}
        // Nobody told, as an identity has it.
        Value::String(text) if text.is_empty() => {}
        Value::Bool(yes) => drop(into.insert(path.to_owned(), if *yes { "on" } else { "off" }.to_owned())),
        Value::String(text) => drop(into.insert(path.to_owned(), shown(text))),
        other => drop(into.insert(path.to_owned(), other.to_string())),
    }
}

/// A hash is shown by its beginning.
fn shown(text: &str) -> String {
    let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { text[..SHOWN_DIGITS].to_owned() } else { text.to_owned() }
}

/// The path of a field in words.
fn title(path: &str) -> String {
    match path {
        "onnx_sha256" => "model".into(),
        "calibration_sha256" => "calibration data".into(),
        "float_tail" => "tensors left in float".into(),
        "tensorrt" => "TensorRT".into(),
        "cuda" => "CUDA".into(),
        "gpu" => "GPU".into(),
        "compute_capability" => "compute capability".into(),
        "sm_count" => "SM count".into(),
        "gpu_mem_limit_bytes" => "GPU memory limit".into(),
        other => {
            let other = other.strip_prefix("engine.").unwrap_or(other);
            other.replacen("plugins.", "plugin ", 1).replacen("weights.", "weights ", 1).replace('_', " ")
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use prony_model::sha256_hex;
    use prony_types::{CalibrationMethod, CalibrationSpec, Precision, ProfileShape};

    use super::*;
    use crate::key::KEY_DIGITS;

    pub(crate) fn recipe() -> Recipe {
        Recipe {
            onnx_sha256: sha256_hex(b"model"),
            weights: BTreeMap::new(),
            engine: EngineSpec::new(Precision::Fp16),
            calibration_sha256: None,
            float_tail: None,
            identity: EngineIdentity {
                tensorrt: "8.6.0".into(),
                gpu: "NVIDIA H200".into(),
                compute_capability: "9.0".into(),
                sm_count: 132,
                driver: "580.1".into(),
                cuda: "13.0".into(),
                version_compatible: false,
                hardware_compatible: false,
            },
            plugins: BTreeMap::new(),
            gpu_mem_limit_bytes: None,
        }
    }

    fn changed(change: impl FnOnce(&mut Recipe)) -> Recipe {
        let mut recipe = recipe();
        change(&mut recipe);
        recipe
    }

    fn texts(old: &Recipe, new: &Recipe) -> Vec<String> {
        old.differences(new).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn equal_recipes_have_equal_keys() {
        assert_eq!(recipe().key().unwrap(), recipe().key().unwrap());
        assert_eq!(recipe().key().unwrap().len(), KEY_DIGITS);
        let read: Recipe = serde_json::from_str(&serde_json::to_string(&recipe()).unwrap()).unwrap();
        assert_eq!((read.key().unwrap(), &read), (recipe().key().unwrap(), &recipe()));
    }

    #[test]
    fn whatever_decides_the_bytes_decides_the_key_and_is_named() {
        type Change = fn(&mut Recipe);
        let changes: &[(Change, &str)] = &[
            (|r| r.onnx_sha256 = sha256_hex(b"other"), "model 9372c470eead -> d9298a10d1b0"),
            (|r| r.engine.precision = Precision::Int8, "precision fp16 -> int8"),
            (|r| r.engine.workspace_bytes = Some(1024), "workspace bytes none -> 1024"),
            (|r| r.engine.level = Some(3), "level none -> 3"),
            (|r| r.engine.dla_core = Some(0), "dla core none -> 0"),
            (|r| r.engine.refit = true, "refit off -> on"),
            (|r| r.engine.sparse = true, "sparse off -> on"),
            (|r| r.engine.low_memory = true, "low memory off -> on"),
            (|r| r.calibration_sha256 = Some(sha256_hex(b"frames")), "calibration data none -> 594cfd2607d4"),
            (|r| r.identity.tensorrt = "10.3.0".into(), "TensorRT 8.6.0 -> 10.3.0"),
            (|r| r.identity.cuda = "12.4".into(), "CUDA 13.0 -> 12.4"),
            (|r| r.identity.driver = "580.2".into(), "driver 580.1 -> 580.2"),
            (|r| r.identity.gpu = "NVIDIA H100".into(), "GPU NVIDIA H200 -> NVIDIA H100"),
            (|r| r.identity.compute_capability = "8.9".into(), "compute capability 9.0 -> 8.9"),
            (|r| r.identity.sm_count = 114, "SM count 132 -> 114"),
            (|r| r.gpu_mem_limit_bytes = Some(1024), "GPU memory limit none -> 1024"),
            (|r| drop(r.weights.insert("m.data".into(), "ab".into())), "weights m.data none -> ab"),
            (|r| drop(r.plugins.insert("libmine.so".into(), "abc".into())), "plugin libmine.so none -> abc"),
        ];
        for (change, text) in changes {
            let new = changed(change);
            assert_ne!(new.key().unwrap(), recipe().key().unwrap(), "{text}");
            assert_eq!(texts(&recipe(), &new), [*text]);
        }
        let shape = ProfileShape { input: "x".into(), min: vec![1], opt: vec![2], max: vec![4] };
        let shaped = changed(|r| r.engine.profile = vec![shape]);
        assert_ne!(shaped.key().unwrap(), recipe().key().unwrap());
    }

    #[test]
    fn every_difference_is_named() {
        let new = changed(|r| {
            r.identity.driver = "580.2".into();
            r.identity.tensorrt = "10.3.0".into();
            r.identity.cuda = String::new();
        });
        assert_eq!(texts(&recipe(), &new), ["CUDA 13.0 -> none", "driver 580.1 -> 580.2", "TensorRT 8.6.0 -> 10.3.0"]);
        assert_eq!(texts(&recipe(), &recipe()), [""; 0]);
    }

    #[test]
    fn where_calibration_data_lie_does_not_matter() {
        let calibrated = |source| {
            changed(|r| {
                let method = CalibrationMethod::Entropy;
                r.engine.calibration = Some(CalibrationSpec { method, source, frames: 8, seed: 7 });
                r.calibration_sha256 = Some("same".into());
            })
        };
        let (here, there) = (calibrated(SourceSpec::Dir("a".into())), calibrated(SourceSpec::Dir("b".into())));
        assert_eq!(here.key().unwrap(), there.key().unwrap());
        assert!(here.is_of_same_kind(&there) && !here.is_of_same_kind(&recipe()));
        assert_eq!(texts(&here, &there), [""; 0]);
    }
}
