//! TensorRT through its own library: engines that were built for this GPU, whether here or by someone else.

mod growing;
mod inspect;
mod io;
mod layers;
mod load;
mod opened;
mod session;

use prony_nvinfer::Profiler;
use prony_types::{BackendName, LayersRecord, ModelFormat, ModelInfo, Precision, ProviderSpec};

pub use self::inspect::inspect_engine;
use self::io::Wish;
use self::load::{Ask, Loaded, Plan};
pub use self::opened::{OpenedEngine, open_engine};
use self::session::{Setup, TrtSession};
use crate::gpu::Wait;
use crate::{Backend, BackendError, Proof, Session, SessionSpec, Unsupported, precision_of};

/// What errors call this backend.
const NAME: &str = BackendName::Tensorrt.name();
/// Calls of the profiling pass whose times do not count.
const UNCOUNTED_CALLS: usize = 3;
/// Calls of the profiling pass.
const PROFILED_CALLS: usize = 10;

/// TensorRT, run by us or by its own benchmark.
pub(crate) struct Tensorrt(pub(crate) BackendName);

impl Backend for Tensorrt {
    fn name(&self) -> BackendName {
        self.0
    }

    fn supports(&self, precision: Precision, model: &ModelInfo, _provider: &ProviderSpec) -> Result<(), Unsupported> {
        supports(self.0, precision, model)
    }

    fn open(&self, spec: &SessionSpec<'_>) -> Result<Box<dyn Session>, BackendError> {
        if self.0 != BackendName::Tensorrt {
            return Err(BackendError::Unsupported {
                backend: self.0.name(),
                what: "is a program, not a session".into(),
            });
        }
        Ok(Box::new(open(spec, None)?))
    }

    fn proof(&self, spec: &SessionSpec<'_>, fill: &mut dyn FnMut(&mut dyn Session)) -> Proof {
        if self.0 != BackendName::Tensorrt {
            return Proof::default();
        }
        let profiler = Profiler::new();
        let layers = open(&SessionSpec { slots: 1, ..spec.clone() }, Some(&profiler)).and_then(|mut session| {
            fill(&mut session);
            profiled(&mut session, &profiler).map(Some)
        });
        Proof { layers, ..Proof::default() }
    }
}

/// Whether an engine of a precision can be had from a file: one that is an engine is what it is, any other is built.
fn supports(backend: BackendName, precision: Precision, model: &ModelInfo) -> Result<(), Unsupported> {
    if model.format == ModelFormat::Engine {
        return match precision {
            Precision::Native => Ok(()),
            asked => Err(Unsupported::EngineKeepsPrecision { asked }),
        };
    }
    match (precision_of(model), precision) {
        (_, Precision::Native) | (Precision::Fp32, _) => Ok(()),
        (brings, asked) if brings == asked => Ok(()),
        (brings, asked) => Err(Unsupported::CannotBecome { backend, brings, asked }),
    }
}

fn open(spec: &SessionSpec<'_>, profiler: Option<&Profiler>) -> Result<TrtSession, BackendError> {
    session_of(load_for(spec)?, spec, profiler)
}

/// Loads the engine that a session runs.
fn load_for(spec: &SessionSpec<'_>) -> Result<Loaded, BackendError> {
    supports(BackendName::Tensorrt, spec.precision, &spec.model.info).map_err(|e| unsupported(e.to_string()))?;
    let Some(runtime) = &spec.runtime else {
        return Err(unsupported("no TensorRT was named; give --library nvinfer=/path/to/libnvinfer.so".into()));
    };
    load::load(&Ask {
        runtime,
        plugins: &spec.provider.trt_plugins,
        device: spec.device,
        limit: spec.provider.gpu_mem_limit_bytes,
        force: spec.provider.force_engine,
        plan: &|| Plan::of(spec.model, spec.artifact.as_ref()),
    })
}

/// Makes a session of a loaded engine.
fn session_of(loaded: Loaded, spec: &SessionSpec<'_>, profiler: Option<&Profiler>) -> Result<TrtSession, BackendError> {
    let wish = Wish { batch: Some(spec.batch), imgsz: spec.imgsz, shapes: &spec.shapes };
    let wait = if spec.provider.blocking_wait { Wait::Block } else { Wait::Spin };
    TrtSession::new(loaded, &Setup { wish, slots: spec.slots.max(1), wait, profiler, precision: spec.precision })
}

/// Runs a session whose layers report to a profiler, and counts what they compute in.
fn profiled(session: &mut TrtSession, profiler: &Profiler) -> Result<LayersRecord, BackendError> {
    for _ in 0..UNCOUNTED_CALLS {
        session.run(0)?;
    }
    profiler.take();
    for _ in 0..PROFILED_CALLS {
        session.run(0)?;
    }
    let text = session.layers().map_err(|reason| BackendError::Run { backend: NAME, reason })?;
    let layers = layers::parse(&text).map_err(|reason| BackendError::Run { backend: NAME, reason })?;
    Ok(layers::record(&layers, &profiler.take(), PROFILED_CALLS))
}

fn unsupported(what: String) -> BackendError {
    BackendError::Unsupported { backend: NAME, what }
}

#[cfg(test)]
mod tests {
    use prony_types::DType;

    use super::*;
    use crate::precision::tests::{model, quantised};

    fn answer(precision: Precision, model: &ModelInfo) -> Result<(), Unsupported> {
        supports(BackendName::Tensorrt, precision, model)
    }

    #[test]
    fn every_precision_can_be_asked_of_an_fp32_file() {
        for &precision in Precision::ALL {
            assert_eq!(answer(precision, &model(Some(DType::F32), &["Conv"])), Ok(()), "{precision}");
        }
    }

    #[test]
    fn a_file_with_a_precision_of_its_own_keeps_it() {
        let half = model(Some(DType::F16), &["Conv"]);
        assert_eq!(answer(Precision::Fp16, &half), Ok(()));
        assert_eq!(answer(Precision::Native, &half), Ok(()));
        let refusal = answer(Precision::Int8, &half).unwrap_err().to_string();
        assert!(refusal.contains("the file is fp16") && refusal.contains("give the fp32 model"), "{refusal}");
        for own in [Precision::Int8, Precision::Fp8, Precision::Nvfp4] {
            let file = quantised(own);
            assert_eq!(answer(own, &file), Ok(()));
            for other in Precision::ALL.iter().filter(|&&other| other != own && other != Precision::Native) {
                let refusal = answer(*other, &file).unwrap_err().to_string();
                assert!(refusal.starts_with(&format!("the file is {own}, ")), "{refusal}");
            }
        }
    }

    #[test]
    fn an_engine_is_native() {
        let engine = ModelInfo { format: ModelFormat::Engine, ..ModelInfo::default() };
        assert_eq!(answer(Precision::Native, &engine), Ok(()));
        for &precision in Precision::ALL.iter().filter(|&&precision| precision != Precision::Native) {
            assert!(answer(precision, &engine).unwrap_err().to_string().contains("--precision native"), "{precision}");
        }
    }
}
