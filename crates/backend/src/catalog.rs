//! The backends by their names.

use prony_types::BackendName;

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
