//! How to get what is missing and mend what is broken, in one line.

use std::path::PathBuf;

use prony_backend::discovery::{Candidate, Places, is_explicit, variable};
use prony_types::RuntimeName;

/// What to do about a runtime that is not there.
pub(super) const fn for_missing(name: RuntimeName) -> &'static str {
    match name {
        RuntimeName::Onnxruntime => {
            "run `prony runtime install onnxruntime` (with an NVIDIA GPU: `prony runtime install onnxruntime-gpu`)"
        }
        RuntimeName::Openvino => "run `prony runtime install openvino`",
        RuntimeName::Ffmpeg => "run `prony runtime install ffmpeg`",
        RuntimeName::Nvinfer | RuntimeName::Nvonnxparser | RuntimeName::NvinferPlugin | RuntimeName::NvinferLean => {
            TENSORRT
        }
        RuntimeName::Trtexec if cfg!(target_arch = "aarch64") => "run `sudo apt install libnvinfer-bin`",
        RuntimeName::Trtexec => "install NVIDIA's TensorRT package libnvinfer-bin, or set PRONY_TRTEXEC to its file",
        RuntimeName::Cuda | RuntimeName::Nvml if cfg!(target_arch = "aarch64") => {
            "install the NVIDIA driver (on a Jetson: `sudo apt install nvidia-jetpack`)"
        }
        RuntimeName::Cuda | RuntimeName::Nvml => "install the NVIDIA driver",
        RuntimeName::Cudart if cfg!(target_arch = "aarch64") => {
            "install the CUDA toolkit (on a Jetson: `sudo apt install nvidia-jetpack`)"
        }
        RuntimeName::Cudart => "install the CUDA toolkit",
        RuntimeName::Cudnn if cfg!(target_arch = "aarch64") => {
            "install cuDNN (on a Jetson: `sudo apt install nvidia-jetpack`)"
        }
        RuntimeName::Cudnn => "install cuDNN for the CUDA toolkit that is there",
        RuntimeName::Gstreamer => "run `sudo apt install gstreamer1.0-tools`",
    }
}

const TENSORRT: &str = if cfg!(target_arch = "aarch64") {
    "run `sudo apt install tensorrt` (from the Jetson's own package source)"
} else {
    "install NVIDIA's `tensorrt` package, or unpack its archive and set TENSORRT_HOME to the folder"
};

/// What to do about a runtime that cannot be used.
pub(super) fn for_broken(places: &Places, candidate: &Candidate, reason: &str) -> String {
    if let Some(remedy) = for_dependency(places, reason) {
        return remedy;
    }
    let variable = variable(candidate.name);
    let elsewhere = if is_explicit(&candidate.found_by) {
        match candidate.found_by.starts_with("PRONY_") || candidate.found_by.starts_with("ORT_") {
            true => format!("point {} at a library that fits, or unset it", candidate.found_by),
            false => "give the path of one that fits".to_owned(),
        }
    } else {
        format!("remove it, or point {variable} at another")
    };
    if candidate.found_by == "PRONY_HOME" {
        return format!("install it again: {}", for_missing(candidate.name));
    }
    match candidate.name {
        RuntimeName::Cuda | RuntimeName::Nvml if reason.contains("failed") || reason.contains("nvmlInit") => {
            "see whether `nvidia-smi` works; load the driver that fits this library, or give the container its GPU \
             (--gpus all)"
                .to_owned()
        }
        _ if reason.starts_with("too old") => format!("{}; or {elsewhere}", for_missing(candidate.name)),
        _ => elsewhere,
    }
}

/// What to do about a library that the loader cannot find, by its name in the loader's words.
pub(super) fn for_dependency(places: &Places, reason: &str) -> Option<String> {
    if let Some(version) = reason.split("`GLIBC").nth(1).and_then(|rest| rest.split('\'').next()) {
        return Some(format!("it was built for a newer system (GLIBC{version}); install a build for this one"));
    }
    let (before, _) = reason.split_once(": cannot open shared object file")?;
    let library = before.rsplit([' ', ':']).next().filter(|name| name.contains(".so"))?;
    if let Some(folder) = whereabouts(places, library) {
        return Some(format!("{library} is in {}; add that folder to LD_LIBRARY_PATH", folder.display()));
    }
    let major = library.split_once(".so.").map_or("", |(_, version)| version.split('.').next().unwrap_or_default());
    let stem = library.split_once(".so").map_or(library, |(stem, _)| stem);
    let source = match stem {
        "libcudart" | "libcublas" | "libcublasLt" if !major.is_empty() => format!("CUDA {major}"),
        "libcudart" | "libcublas" | "libcublasLt" | "libcufft" | "libcurand" | "libnvrtc" | "libcusparse"
        | "libcusolver" | "libnvJitLink" => "CUDA".to_owned(),
        "libcuda" => return Some(for_missing(RuntimeName::Cuda).to_owned()),
        _ if stem.starts_with("libcudnn") => format!("cuDNN {major}").trim_end().to_owned(),
        _ if stem.starts_with("libnvinfer") || stem == "libnvonnxparser" => {
            format!("TensorRT {major}").trim_end().to_owned()
        }
        _ => return Some(format!("install what has {library}, or add its folder to LD_LIBRARY_PATH")),
    };
    Some(format!("install the libraries of {source}, or add the folder of {library} to LD_LIBRARY_PATH"))
}

/// The folder of a library that is there, but not where the loader looks.
fn whereabouts(places: &Places, library: &str) -> Option<PathBuf> {
    places.library_folders().into_iter().find(|folder| folder.join(library).exists())
}
