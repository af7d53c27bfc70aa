//! What can be installed.

use std::fmt;

/// What can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Package {
    /// ONNX Runtime for CPUs.
    Onnxruntime,
    /// ONNX Runtime with its CUDA provider.
    OnnxruntimeGpu,
    /// OpenVINO.
    Openvino,
    /// A static ffmpeg.
    Ffmpeg,
}

impl Package {
    /// All of them.
    pub const ALL: [Package; 4] = [Package::Onnxruntime, Package::OnnxruntimeGpu, Package::Openvino, Package::Ffmpeg];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Package::Onnxruntime => "onnxruntime",
            Package::OnnxruntimeGpu => "onnxruntime-gpu",
            Package::Openvino => "openvino",
            Package::Ffmpeg => "ffmpeg",
        }
    }

    /// The package whose wheel carries it.
    pub fn package(self) -> &'static str {
        match self {
            Package::Ffmpeg => "imageio-ffmpeg",
            other => other.as_str(),
        }
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
