//! TensorRT's own benchmark. It is a program: a worker runs it and reads what it writes, so there is no session to open.

use prony_types::{BackendName, ModelFormat, ModelInfo, Precision, ProviderSpec};

use crate::tensorrt::Tensorrt;
use crate::{Backend, BackendError, Session, SessionSpec, Unsupported};

const NAME: &str = BackendName::Trtexec.name();

/// The program, as a backend that `bench` alone can use.
pub(crate) struct Trtexec;

impl Backend for Trtexec {
    fn name(&self) -> BackendName {
        BackendName::Trtexec
    }

    /// It runs the engines that the backend `tensorrt` runs.
    fn supports(&self, precision: Precision, model: &ModelInfo, provider: &ProviderSpec) -> Result<(), Unsupported> {
        if provider.gpu_mem_limit_bytes.is_some() {
            return Err(Unsupported::MemoryLimit { backend: NAME });
        }
        match (model.format, precision) {
            (ModelFormat::Engine, Precision::Native) => Ok(()),
            (ModelFormat::Engine, asked) => Err(Unsupported::EngineIsBuilt { asked }),
            (ModelFormat::Onnx, precision) => Tensorrt(BackendName::Tensorrt).supports(precision, model, provider),
        }
    }

    fn open(&self, _spec: &SessionSpec<'_>) -> Result<Box<dyn Session>, BackendError> {
        let what = "it is a program that times engines and hands out no outputs; use `prony bench`".into();
        Err(BackendError::Unsupported { backend: NAME, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_timed_as_it_is() {
        let engine = ModelInfo { format: ModelFormat::Engine, ..ModelInfo::default() };
        let supports = |precision, provider: &ProviderSpec| Trtexec.supports(precision, &engine, provider);
        assert_eq!(supports(Precision::Native, &ProviderSpec::default()), Ok(()));
        assert!(
            supports(Precision::Int8, &ProviderSpec::default()).unwrap_err().to_string().contains("--precision native")
        );
        let limited = ProviderSpec { gpu_mem_limit_bytes: Some(1 << 30), ..ProviderSpec::default() };
        assert!(supports(Precision::Native, &limited).unwrap_err().to_string().contains("--gpu-mem-limit"));
    }
}
