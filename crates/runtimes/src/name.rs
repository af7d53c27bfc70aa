//! What can be installed.

use std::fmt;

/// What can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeName {
    /// ONNX Runtime for CPUs.
    Onnxruntime,
    /// ONNX Runtime with its CUDA provider.
    OnnxruntimeGpu,
    /// OpenVINO.
    Openvino,
    /// A static ffmpeg.
    Ffmpeg,
}

impl RuntimeName {
    /// All of them.
    pub const ALL: [RuntimeName; 4] =
        [RuntimeName::Onnxruntime, RuntimeName::OnnxruntimeGpu, RuntimeName::Openvino, RuntimeName::Ffmpeg];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            RuntimeName::Onnxruntime => "onnxruntime",
            RuntimeName::OnnxruntimeGpu => "onnxruntime-gpu",
            RuntimeName::Openvino => "openvino",
            RuntimeName::Ffmpeg => "ffmpeg",
        }
    }

    /// The package whose wheel carries it.
    pub fn package(self) -> &'static str {
        match self {
            RuntimeName::Ffmpeg => "imageio-ffmpeg",
            other => other.as_str(),
        }
    }
}

impl fmt::Display for RuntimeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
