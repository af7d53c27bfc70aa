//! The child's side: open one library, or run one program, and say what it is. This is the only place where discovery
//! runs code that is not Prony's, and the process it happens in may crash, print or hang.

mod cuda;
mod library;
mod nvidia;
mod onnxruntime;
mod openvino;
mod program;

use prony_types::{DiscoverJob, GpuRecord, RuntimeName};

use self::library::OpenLibrary;
use super::names;

/// What a runtime says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its version.
    pub version: Option<String>,
    /// What it brings: providers, devices. One that cannot be used has the reason behind it, see [`provided`].
    pub provides: Vec<String>,
    /// The GPUs it sees.
    pub gpus: Vec<GpuRecord>,
}

impl Answer {
    fn version(version: impl Into<String>) -> Answer {
        Answer { version: Some(version.into()), ..Answer::default() }
    }
}

/// Opens what the job names and asks it. The error says why it cannot be used.
pub fn answer(job: &DiscoverJob) -> Result<Answer, String> {
    if names::is_program(job.name) {
        return program::ask(job.name, &job.path);
    }
    let library = OpenLibrary::of(job.name, &job.path)?;
    match job.name {
        RuntimeName::Onnxruntime => onnxruntime::ask(&library),
        RuntimeName::Openvino => openvino::ask(&library),
        RuntimeName::Nvinfer | RuntimeName::NvinferLean => nvidia::nvinfer(&library),
        RuntimeName::Nvonnxparser => nvidia::parser(&library),
        RuntimeName::NvinferPlugin => nvidia::plugin(&library),
        RuntimeName::Cuda => cuda::ask(&library),
        RuntimeName::Cudart => nvidia::cudart(&library),
        RuntimeName::Cudnn => nvidia::cudnn(&library),
        RuntimeName::Nvml => nvidia::nvml(&library),
        RuntimeName::Trtexec | RuntimeName::Ffmpeg | RuntimeName::Gstreamer => Err("not a library".to_owned()),
    }
}

/// Splits what a runtime provides into its name and, where it cannot be used, the reason: `CUDA (libcublasLt.so.12:
/// cannot open shared object file)`.
pub fn provided(entry: &str) -> (&str, Option<&str>) {
    match entry.strip_suffix(')').and_then(|entry| entry.split_once(" (")) {
        Some((name, reason)) => (name, Some(reason)),
        None => (entry, None),
    }
}
