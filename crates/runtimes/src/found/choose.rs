//! Which library a backend is executed with, or the one line why none will do.

use crate::discovery::{is_explicit, provided};
use prony_types::os_text::path_from_text;
use prony_types::{BackendName, RuntimeName, RuntimeRecord, RuntimeSpec, RuntimeState};

use super::Found;
use super::companions::companions;
use super::remedy;

/// The library for a backend; `None` for the embedded engine, which needs none. The error is one line: what is
/// missing, and what would help.
pub fn choose(found: &Found, backend: BackendName) -> Result<Option<RuntimeSpec>, String> {
    let Some((name, provider)) = backend.needs() else { return Ok(None) };
    // Without a GPU, none of its libraries is of use.
    gpu_for(found, backend)?;
    let copies = considered(found, name);
    let usable = copies.iter().find(|copy| copy.state == RuntimeState::Ready && usable(copy, provider));
    match usable.and_then(|copy| spec(copy)) {
        Some(spec) => {
            let search = if backend.on_gpu() { found.search.clone() } else { Vec::new() };
            let companions = if backend == BackendName::Tensorrt { companions(found, &spec) } else { spec.companions };
            Ok(Some(RuntimeSpec { search, companions, ..spec }))
        }
        None => Err(format!("{backend}: {}", complaint(found, backend, &copies))),
    }
}

/// The copies that come into question. Where someone pointed at one, nothing else will do: to use another in silence
/// would be to measure what was not asked for.
pub(super) fn considered(found: &Found, name: RuntimeName) -> Vec<&RuntimeRecord> {
    // A lean TensorRT stands in where there is no whole one: it runs engines, and the records are sorted so that it is last.
    let is_it = |of: RuntimeName| of == name || (name, of) == (RuntimeName::Nvinfer, RuntimeName::NvinferLean);
    let copies = found.runtimes.iter().filter(|record| is_it(record.name) && record.state != RuntimeState::Missing);
    let copies: Vec<&RuntimeRecord> = copies.collect();
    let pointed_by = copies.iter().filter_map(|copy| copy.found_by.as_deref()).find(|by| is_explicit(by));
    match pointed_by {
        Some(by) => copies.into_iter().filter(|copy| copy.found_by.as_deref() == Some(by)).collect(),
        None => copies,
    }
}

fn usable(copy: &RuntimeRecord, provider: Option<&str>) -> bool {
    unknown_major(copy).is_none()
        && provider.is_none_or(|provider| copy.provides.iter().any(|entry| provided(entry) == (provider, None)))
}

/// The version of a TensorRT whose objects nobody here knows.
fn unknown_major(copy: &RuntimeRecord) -> Option<&str> {
    let version = copy.version.as_deref().filter(|_| is_tensorrt(copy.name))?;
    let known = version.split('.').next().is_some_and(|major| ["8", "10", "11"].contains(&major));
    (!known).then_some(version)
}

const fn is_tensorrt(name: RuntimeName) -> bool {
    matches!(name, RuntimeName::Nvinfer | RuntimeName::NvinferLean)
}

fn spec(copy: &RuntimeRecord) -> Option<RuntimeSpec> {
    Some(RuntimeSpec::new(path_from_text(copy.path.as_ref()?), copy.version.clone().unwrap_or_default()))
}

/// Why none of the copies will do, by the one that comes nearest.
fn complaint(found: &Found, backend: BackendName, copies: &[&RuntimeRecord]) -> String {
    let Some((name, provider)) = backend.needs() else { return "needs no library".to_owned() };
    let install = install_for(backend, name);
    let path = |copy: &RuntimeRecord| copy.path.clone().unwrap_or_default();
    let unusable = copies.iter().find_map(|copy| {
        let reason = copy.provides.iter().map(|entry| provided(entry)).find(|(name, _)| Some(*name) == provider)?.1?;
        Some((copy, reason))
    });
    if let (Some((copy, reason)), Some(provider)) = (unusable, provider) {
        let file = format!("libonnxruntime_providers_{}.so", provider.to_lowercase());
        let remedy = remedy::for_dependency(&found.elsewhere, reason).map(|text| format!("; {text}"));
        let remedy = remedy.unwrap_or_default();
        return match reason.starts_with("libonnxruntime_providers") {
            true => format!("{}: {reason}; {install}", path(copy)),
            false => format!("{}: {file} cannot be opened: {reason}{remedy}", path(copy)),
        };
    }
    if let Some((copy, version)) = copies.iter().find_map(|copy| Some((copy, unknown_major(copy)?))) {
        return format!("{}: TensorRT {version} is not known here; use 8.x from 8.2 on, 10.x or 11.x", path(copy));
    }
    if let (Some(copy), Some(provider)) = (copies.iter().find(|copy| copy.state == RuntimeState::Ready), provider) {
        let has: Vec<&str> = copy.provides.iter().map(|entry| provided(entry).0).collect();
        let version = copy.version.as_deref().unwrap_or("of unknown version");
        let has = has.join(", ");
        return format!("provider {provider} is not in this build: {} ({version}) has {has}; {install}", path(copy));
    }
    if let Some(copy) = copies.first() {
        let reason = copy.reason.as_deref().unwrap_or("cannot be used");
        let remedy = copy.remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
        let not_opened = if copy.state == RuntimeState::NotOpened { "not opened: " } else { "" };
        return format!("{}: {not_opened}{reason}{remedy}", path(copy));
    }
    format!("no {} here; {install}", title(name))
}

/// Whether a backend that needs an NVIDIA GPU has one.
fn gpu_for(found: &Found, backend: BackendName) -> Result<(), String> {
    if !backend.on_gpu() || !found.gpus.is_empty() {
        return Ok(());
    }
    let driver = found.runtimes.iter().find(|record| record.name == RuntimeName::Cuda);
    let path = driver.and_then(|driver| driver.path.as_deref()).unwrap_or("libcuda.so.1");
    Err(match driver {
        Some(RuntimeRecord { state: RuntimeState::Broken, reason, remedy, .. }) => {
            let reason = reason.as_deref().unwrap_or("cannot be used");
            let remedy = remedy.as_deref().unwrap_or("install the driver");
            format!("{backend}: no NVIDIA GPU: {path}: {reason}; {remedy}")
        }
        Some(RuntimeRecord { state: RuntimeState::NotOpened, reason, remedy, .. }) => {
            let (reason, remedy) = (reason.as_deref().unwrap_or_default(), remedy.as_deref().unwrap_or_default());
            format!("{backend}: no NVIDIA GPU: {path}: not opened: {reason}; {remedy}")
        }
        Some(RuntimeRecord { state: RuntimeState::Ready, .. }) => {
            format!("{backend}: no NVIDIA GPU: {path} sees none; see whether CUDA_VISIBLE_DEVICES hides it")
        }
        _ if found.has_nvidia_device => {
            let install = remedy::for_missing(RuntimeName::Cuda);
            format!(
                "{backend}: there is an NVIDIA GPU, but libcuda.so.1 was not found; {install}, or give the container its GPU"
            )
        }
        _ => format!(
            "{backend}: no NVIDIA GPU here (and no driver: libcuda.so.1 was not found); rten, ort-cpu and openvino run \
             without one"
        ),
    })
}

pub(super) fn install_for(backend: BackendName, name: RuntimeName) -> String {
    match (backend, name) {
        (BackendName::OrtCuda | BackendName::OrtTensorrt, _) => {
            "run `prony runtime install onnxruntime-gpu`".to_owned()
        }
        (BackendName::OrtOpenvino, _) => {
            "install the Python package onnxruntime-openvino, or set PRONY_ONNXRUNTIME to a build that has it"
                .to_owned()
        }
        (_, RuntimeName::Onnxruntime) => "run `prony runtime install onnxruntime`".to_owned(),
        _ => remedy::for_missing(name).to_owned(),
    }
}

const fn title(name: RuntimeName) -> &'static str {
    match name {
        RuntimeName::Onnxruntime => "ONNX Runtime",
        RuntimeName::Openvino => "OpenVINO",
        RuntimeName::Nvinfer => "TensorRT",
        other => other.name(),
    }
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
