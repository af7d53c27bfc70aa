//! Which library a backend is executed with.

use crate::{BackendName, RuntimeName};

impl BackendName {
    /// The library that it needs, and its provider in it; `None` for the embedded engine.
    pub const fn needs(self) -> Option<(RuntimeName, Option<&'static str>)> {
        match self {
            BackendName::Rten => None,
            BackendName::OrtCpu => Some((RuntimeName::Onnxruntime, Some("CPU"))),
            BackendName::OrtCuda => Some((RuntimeName::Onnxruntime, Some("CUDA"))),
            BackendName::OrtTensorrt => Some((RuntimeName::Onnxruntime, Some("Tensorrt"))),
            BackendName::OrtOpenvino => Some((RuntimeName::Onnxruntime, Some("OpenVINO"))),
            BackendName::Openvino => Some((RuntimeName::Openvino, None)),
            BackendName::Tensorrt => Some((RuntimeName::Nvinfer, None)),
            BackendName::Trtexec => Some((RuntimeName::Trtexec, None)),
        }
    }
}
