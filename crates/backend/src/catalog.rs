//! The backends by their names, and the libraries that they need.

use prony_types::{BackendName, RuntimeName};

use crate::interface::Backend;
use crate::openvino::Openvino;
use crate::ort::Ort;
use crate::rten::Rten;
use crate::tensorrt::Tensorrt;
use crate::trtexec::Trtexec;

/// The backend behind a name.
pub fn backend(name: BackendName) -> Box<dyn Backend> {
    match name {
        BackendName::Rten => Box::new(Rten),
        BackendName::OrtCpu | BackendName::OrtCuda | BackendName::OrtTensorrt | BackendName::OrtOpenvino => {
            Box::new(Ort(name))
        }
        BackendName::Openvino => Box::new(Openvino),
        BackendName::Tensorrt => Box::new(Tensorrt(name)),
        BackendName::Trtexec => Box::new(Trtexec),
    }
}

/// The library that a backend needs, and its provider in it; `None` for the embedded engine.
pub fn needs(name: BackendName) -> Option<(RuntimeName, Option<&'static str>)> {
    match name {
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
