//! Which backends a plan measures, and in which precisions: those that were named, every one, or what the machine is ready for.

use anyhow::ensure;
use prony_backend::precision_of;
use prony_types::{BackendName, ModelInfo, Precision, RuntimeName};

use super::tier::Choice;
use super::{Machine, once_each};
use crate::options::BenchOptions;

/// What `auto` measures where it is ready, in the order of the report. The rest measure the same libraries by another way and
/// are measured only when named.
const AUTO: [BackendName; 4] =
    [BackendName::Tensorrt, BackendName::OrtCuda, BackendName::Openvino, BackendName::OrtCpu];

/// How the backends of a plan came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// One by one: what cannot run has failed.
    Named,
    /// `all` or a tier: what cannot run is skipped.
    All,
    /// Prony's own choice: what is not here is left out, what cannot run is skipped.
    Auto,
}

/// The backends of a plan.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) backends: Vec<BackendName>,
    pub(super) origin: Origin,
    /// What `auto` would measure and is not ready here, with the reason in a few words.
    pub(super) absent: Vec<(BackendName, String)>,
    /// Not ready although the user pointed at its library: it stays in the plan, and has failed.
    pointed: Vec<BackendName>,
}

/// The backends that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// One by one.
    Named(Vec<BackendName>),
    /// By `all` or a tier.
    All(Vec<BackendName>),
    /// Prony chooses.
    Auto,
}

impl Asked {
    pub(super) fn of(options: &BenchOptions, tier: Option<&Choice>) -> anyhow::Result<Asked> {
        match (options.backends.as_deref(), tier) {
            (None, Some(tier)) => Ok(Asked::All(tier.backends.clone())),
            (None, None) => Ok(Asked::Auto),
            (Some([word]), _) if word.trim() == "auto" => Ok(Asked::Auto),
            (Some([word]), _) if word.trim() == "all" => Ok(Asked::All(BackendName::ALL.to_vec())),
            (Some(names), _) => {
                for word in ["all", "auto"] {
                    ensure!(
                        !names.iter().any(|name| name.trim() == word),
                        "--backends {word} must be given alone; leave the others out"
                    );
                }
                let parse = |name: &String| -> anyhow::Result<BackendName> {
                    name.trim().parse().map_err(|e| anyhow::anyhow!("{e}, all, auto"))
                };
                let found = names.iter().map(parse).collect::<anyhow::Result<Vec<_>>>()?;
                ensure!(!found.is_empty(), "--backends is empty");
                Ok(Asked::Named(once_each(found)))
            }
        }
    }

    /// Whether Prony chooses.
    pub(super) fn is_auto(&self) -> bool {
        *self == Asked::Auto
    }

    /// All that may be measured, whatever the machine has.
    pub(super) fn possible(&self) -> Vec<BackendName> {
        match self {
            Asked::Named(backends) | Asked::All(backends) => backends.clone(),
            Asked::Auto => AUTO.to_vec(),
        }
    }

    /// All of it, as if the machine had everything.
    pub(super) fn anywhere(&self) -> Selection {
        let origin = match self {
            Asked::Named(_) => Origin::Named,
            Asked::All(_) => Origin::All,
            Asked::Auto => Origin::Auto,
        };
        Selection { backends: self.possible(), origin, absent: Vec::new(), pointed: Vec::new() }
    }

    /// What is measured on a machine.
    pub(super) fn on(&self, options: &BenchOptions, machine: &Machine<'_>) -> Selection {
        if self.is_auto() { Selection::auto(options, machine) } else { self.anywhere() }
    }
}

impl Selection {
    fn auto(options: &BenchOptions, machine: &Machine<'_>) -> Selection {
        let is_pointed = |&backend: &BackendName| {
            let mut pointed = options.library.iter().map(|library| library.name);
            pointed.any(|name| main_library(backend) == Some(name))
        };
        let (ready, absent): (Vec<_>, Vec<_>) =
            AUTO.into_iter().partition(|&backend| (machine.runtime)(backend).is_ok());
        let (pointed, absent): (Vec<_>, Vec<_>) = absent.into_iter().partition(is_pointed);
        let embedded = ready.is_empty().then_some(BackendName::Rten);
        let backends = ready.into_iter().chain(pointed.iter().copied()).chain(embedded).collect();
        let absent = absent.into_iter().map(|backend| (backend, (machine.absent)(backend))).collect();
        Selection { backends, origin: Origin::Auto, absent, pointed }
    }

    /// Whether Prony chose.
    pub(super) fn is_auto(&self) -> bool {
        self.origin == Origin::Auto
    }

    /// Whether a backend that cannot run has failed.
    pub(super) fn requires(&self, backend: BackendName) -> bool {
        self.origin == Origin::Named || self.pointed.contains(&backend)
    }

    /// What is not here, in one line.
    pub(super) fn absence(&self) -> Option<String> {
        if self.absent.is_empty() {
            return None;
        }
        let list = grouped(&self.absent);
        Some(match self.backends.contains(&BackendName::Rten) {
            true => format!("measured on the embedded engine (rten), because nothing else is here: {list}"),
            false => format!("not here: {list}"),
        })
    }
}

/// The library whose path alone says that a backend is wanted: ONNX Runtime's is that of the CPU, its GPU providers are
/// parts of some builds.
const fn main_library(backend: BackendName) -> Option<RuntimeName> {
    match backend {
        BackendName::OrtCpu => Some(RuntimeName::Onnxruntime),
        BackendName::Openvino => Some(RuntimeName::Openvino),
        BackendName::Tensorrt => Some(RuntimeName::Nvinfer),
        _ => None,
    }
}

/// `tensorrt and ort-cuda (no NVIDIA GPU); openvino (…)`: backends with the same reason stand together.
pub(super) fn grouped(absent: &[(BackendName, String)]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (backend, reason) in absent {
        match groups.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(backend.name()),
            None => groups.push((reason, vec![backend.name()])),
        }
    }
    let texts: Vec<String> =
        groups.into_iter().map(|(reason, names)| format!("{} ({reason})", listed(&names))).collect();
    texts.join("; ")
}

/// `a, b and c`.
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// The precisions of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Precisions {
    /// The same for every backend.
    Same(Vec<Precision>),
    /// Those that people ship on a backend: see [`Precisions::of`].
    AsShipped,
}

impl Precisions {
    /// In which precisions a model is measured on a backend. A file that is not in fp32 was made for the precision it brings.
    pub(super) fn of(&self, backend: BackendName, info: Option<&ModelInfo>) -> Vec<Precision> {
        match (self, info.map(precision_of)) {
            (Precisions::Same(list), _) => list.clone(),
            (Precisions::AsShipped, Some(Precision::Fp32)) if backend.on_gpu() => {
                vec![Precision::Fp16, Precision::Fp32]
            }
            (Precisions::AsShipped, Some(brings)) => vec![brings],
            // A file that cannot be read has one row, with the reason.
            (Precisions::AsShipped, None) => vec![Precision::Fp32],
        }
    }

    /// Every precision that may come up.
    pub(super) fn all(&self) -> &[Precision] {
        match self {
            Precisions::Same(list) => list,
            Precisions::AsShipped => &[Precision::Fp16, Precision::Fp32],
        }
    }
}

#[cfg(test)]
#[path = "selection_tests.rs"]
mod tests;
