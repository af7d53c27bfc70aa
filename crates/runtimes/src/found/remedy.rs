//! How to get what is missing and mend what is broken, in one line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::discovery::{is_explicit, variable};
use prony_types::{RuntimeName, RuntimeRecord};

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

/// Folders of libraries that are there, but not where the loader looks, by the library's name.
pub(super) type Elsewhere = BTreeMap<String, PathBuf>;

/// What to do about a runtime that cannot be used.
pub(super) fn for_broken(elsewhere: &Elsewhere, record: &RuntimeRecord) -> String {
    let reason = record.reason.as_deref().unwrap_or_default();
    if let Some(remedy) = for_dependency(elsewhere, reason) {
        return remedy;
    }
    let found_by = record.found_by.as_deref().unwrap_or_default();
    let install = for_missing(record.name);
    let another = match found_by {
        "PRONY_HOME" => return format!("install it again: {install}"),
        "explicit" => "give the path of one that fits".to_owned(),
        pointer if is_explicit(pointer) => format!("point {pointer} at one that fits, or unset it"),
        _ => format!("remove it, or point {} at another", variable(record.name)),
    };
    match record.name {
        RuntimeName::Cuda | RuntimeName::Nvml if reason.starts_with("cuInit") || reason.starts_with("nvmlInit") => {
            "see whether `nvidia-smi` works; load the driver that this library belongs to, or give the container its GPU"
                .to_owned()
        }
        _ if reason.starts_with("too old") => format!("{install}; or {another}"),
        _ => another,
    }
}

/// Names of the libraries that the loader did not find, in its own words for it.
pub(super) fn unresolved(reason: &str) -> Vec<&str> {
    let Some((before, _)) = reason.split_once(": cannot open shared object file") else { return Vec::new() };
    before.rsplit(": ").next().unwrap_or(before).split(", ").filter(|name| !name.contains('/')).collect()
}

/// What to do about libraries that the loader did not find; `None` where that is not the reason.
pub(super) fn for_dependency(elsewhere: &Elsewhere, reason: &str) -> Option<String> {
    if let Some(version) = reason.split("`GLIBC_").nth(1).and_then(|rest| rest.split('\'').next()) {
        return Some(format!("it was built for a newer system (glibc {version}); install a build for this one"));
    }
    let mut folders: Vec<String> = Vec::new();
    let mut sources: Vec<String> = Vec::new();
    for library in unresolved(reason) {
        let (list, entry) = match elsewhere.get(library) {
            Some(folder) => (&mut folders, folder.display().to_string()),
            None => (&mut sources, source_of(library)),
        };
        if !list.contains(&entry) {
            list.push(entry);
        }
    }
    let install = format!("install {}", sources.join(" and "));
    let point = format!("add {} to LD_LIBRARY_PATH", folders.join(":"));
    match (sources.is_empty(), folders.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!("{install}, or add their folder to LD_LIBRARY_PATH")),
        (true, false) => Some(point),
        (false, false) => Some(format!("{install}, and {point}")),
    }
}

/// What brings a library.
fn source_of(library: &str) -> String {
    let (stem, version) = library.split_once(".so").unwrap_or((library, ""));
    let major = version.trim_start_matches('.').split('.').next().unwrap_or_default();
    let versioned = |what: &str| format!("the libraries of {what} {major}").trim_end().to_owned();
    match stem {
        "libcuda" | "libnvidia-ml" => "the NVIDIA driver".to_owned(),
        "libcudart" | "libcublas" | "libcublasLt" => versioned("CUDA"),
        // Their versions are their own.
        "libcufft" | "libcurand" | "libnvrtc" | "libcusparse" | "libcusolver" | "libnvJitLink" => {
            "the libraries of CUDA".to_owned()
        }
        _ if stem.starts_with("libcudnn") => versioned("cuDNN"),
        _ if stem.starts_with("libnvinfer") || stem == "libnvonnxparser" => versioned("TensorRT"),
        _ => format!("what has {library}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_that_is_missing_has_its_source_or_its_folder() {
        let reason = "libcublasLt.so.13, libcublas.so.13, libcudnn.so.9, libcuda.so.1: cannot open shared object file";
        let mut elsewhere = Elsewhere::new();
        assert_eq!(
            for_dependency(&elsewhere, reason).unwrap(),
            "install the libraries of CUDA 13 and the libraries of cuDNN 9 and the NVIDIA driver, or add their folder to \
             LD_LIBRARY_PATH"
        );
        elsewhere.insert("libcublasLt.so.13".to_owned(), PathBuf::from("/cuda"));
        elsewhere.insert("libcublas.so.13".to_owned(), PathBuf::from("/cuda"));
        elsewhere.insert("libcudnn.so.9".to_owned(), PathBuf::from("/cudnn"));
        assert_eq!(
            for_dependency(&elsewhere, reason).unwrap(),
            "install the NVIDIA driver, and add /cuda:/cudnn to LD_LIBRARY_PATH"
        );
    }

    #[test]
    fn other_reasons_are_no_missing_libraries() {
        let elsewhere = Elsewhere::new();
        assert_eq!(for_dependency(&elsewhere, "a text file, not a library"), None);
        assert_eq!(for_dependency(&elsewhere, "/x/libonnxruntime.so: cannot open shared object file"), None);
        let old = "/lib/libc.so.6: version `GLIBC_2.38' not found (required by /x/libonnxruntime.so)";
        let remedy = for_dependency(&elsewhere, old).unwrap();
        assert!(remedy.contains("glibc 2.38"), "{remedy}");
    }
}
