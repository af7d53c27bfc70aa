//! What the files of a runtime are called, and the words for how one was found.

use std::cmp::Ordering;

use prony_types::RuntimeName;

/// The oldest ONNX Runtime whose interface Prony speaks: major and minor version.
pub const OLDEST_ONNXRUNTIME: [u32; 2] = [1, 17];

/// Found where a flag or the plan pointed.
pub(super) const EXPLICIT: &str = "explicit";
/// Found in Prony's own runtime folder.
pub(super) const PRONY_HOME: &str = "PRONY_HOME";
/// Found in an environment that nobody activated.
pub(super) const NOT_ACTIVATED: &str = "not activated";
/// The variable that other users of ONNX Runtime know.
pub(super) const ORT_DYLIB_PATH: &str = "ORT_DYLIB_PATH";

/// The environment variable that points at a runtime, e.g. `PRONY_ONNXRUNTIME`.
pub fn variable(name: RuntimeName) -> String {
    format!("PRONY_{}", name.name().to_uppercase().replace('-', "_"))
}

/// Whether a person pointed at it: then nothing else will do in its place.
pub fn is_explicit(found_by: &str) -> bool {
    [EXPLICIT, ORT_DYLIB_PATH].contains(&found_by) || RuntimeName::ALL.iter().any(|&name| variable(name) == found_by)
}

/// Whether it is a program to run, not a library to open.
pub const fn is_program(name: RuntimeName) -> bool {
    matches!(name, RuntimeName::Trtexec | RuntimeName::Ffmpeg | RuntimeName::Gstreamer)
}

/// The name its file has, without a version.
pub const fn file_name(name: RuntimeName) -> &'static str {
    match name {
        RuntimeName::Onnxruntime => "libonnxruntime.so",
        RuntimeName::Openvino => "libopenvino_c.so",
        RuntimeName::Nvinfer => "libnvinfer.so",
        RuntimeName::Nvonnxparser => "libnvonnxparser.so",
        RuntimeName::NvinferPlugin => "libnvinfer_plugin.so",
        RuntimeName::NvinferLean => "libnvinfer_lean.so",
        RuntimeName::Trtexec => "trtexec",
        RuntimeName::Cuda => "libcuda.so.1",
        RuntimeName::Cudart => "libcudart.so",
        RuntimeName::Cudnn => "libcudnn.so",
        RuntimeName::Nvml => "libnvidia-ml.so.1",
        RuntimeName::Ffmpeg => "ffmpeg",
        RuntimeName::Gstreamer => "gst-launch-1.0",
    }
}

/// Whether a file of this name may be the runtime. `libonnxruntime_providers_shared.so` is not `libonnxruntime.so`.
pub(super) fn fits(name: RuntimeName, file: &str) -> bool {
    let Some(rest) = file.strip_prefix(file_name(name)) else { return false };
    match name {
        // The driver's libraries go by their one soname: without it they are the stubs of the toolkit, which answer
        // nothing.
        RuntimeName::Cuda | RuntimeName::Nvml | RuntimeName::Trtexec | RuntimeName::Gstreamer => rest.is_empty(),
        // As the Python package `imageio-ffmpeg` calls it.
        RuntimeName::Ffmpeg => rest.is_empty() || rest.starts_with("-linux"),
        _ => rest.is_empty() || version_suffix(rest).is_some(),
    }
}

/// The version in a file name like `libnvinfer_plugin.so.10.3.0`.
pub(super) fn version_in(file: &str) -> Option<&str> {
    file.find(".so.").and_then(|at| version_suffix(&file[at + 3..]))
}

fn version_suffix(rest: &str) -> Option<&str> {
    let version = rest.strip_prefix('.')?;
    let numbers = version.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    numbers.then_some(version)
}

/// Orders names as people do: `python3.9` before `python3.11`, `1.9` before `1.23.2`.
pub(super) fn natural(a: &str, b: &str) -> Ordering {
    fn parts(text: &str) -> Vec<Result<u64, &str>> {
        let mut rest = text;
        let mut parts = Vec::new();
        while let Some(first) = rest.chars().next() {
            let digits = first.is_ascii_digit();
            let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            parts.push(part.parse().map_err(|_| part));
            rest = after;
        }
        parts
    }
    parts(a).cmp(&parts(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_share_a_prefix_are_told_apart() {
        let onnxruntime = |file| fits(RuntimeName::Onnxruntime, file);
        assert!(onnxruntime("libonnxruntime.so"));
        assert!(onnxruntime("libonnxruntime.so.1"));
        assert!(onnxruntime("libonnxruntime.so.1.23.2"));
        assert!(!onnxruntime("libonnxruntime_providers_shared.so"));
        assert!(!onnxruntime("libonnxruntime.so.1.23.2.old"));
        assert!(!onnxruntime("libonnxruntime.so."));
        assert!(fits(RuntimeName::Nvinfer, "libnvinfer.so.10.3.0"));
        assert!(!fits(RuntimeName::Nvinfer, "libnvinfer_builder_resource.so.10.3.0"));
        assert!(!fits(RuntimeName::Nvinfer, "libnvinfer_plugin.so.10"));
        assert!(!fits(RuntimeName::Cudnn, "libcudnn_ops.so.9"));
        assert!(!fits(RuntimeName::Cuda, "libcuda.so"), "a stub of the toolkit");
        assert!(fits(RuntimeName::Ffmpeg, "ffmpeg-linux-x86_64-v7.0.2"));
        assert!(!fits(RuntimeName::Ffmpeg, "ffmpegthumbnailer"));
    }

    #[test]
    fn numbers_in_names_are_ordered_as_numbers() {
        assert_eq!(natural("1.9.0", "1.23.2"), Ordering::Less);
        assert_eq!(natural("python3.11", "python3.9"), Ordering::Greater);
        assert_eq!(natural("cuda", "cuda-12.2"), Ordering::Less);
        assert_eq!(natural("cuda-12.10", "cuda-12.9"), Ordering::Greater);
    }

    #[test]
    fn a_variable_is_named_after_its_runtime() {
        assert_eq!(variable(RuntimeName::NvinferPlugin), "PRONY_NVINFER_PLUGIN");
        assert!(is_explicit("PRONY_ONNXRUNTIME") && is_explicit("ORT_DYLIB_PATH") && is_explicit(EXPLICIT));
        assert!(!is_explicit(PRONY_HOME) && !is_explicit("loader"));
    }

    #[test]
    fn a_version_is_read_from_a_file_name() {
        assert_eq!(version_in("libnvinfer_plugin.so.10.3.0"), Some("10.3.0"));
        assert_eq!(version_in("libnvinfer_plugin.so"), None);
    }
}
