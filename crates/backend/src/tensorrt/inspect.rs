//! What is in an engine, by TensorRT's own word.

use prony_model::ModelFile;
use prony_nvinfer::{Engine, Error, IoTensor, Profiler, Selector};
use prony_types::{EngineRecord, InspectJob, Precision, ProfileShape};

use super::io::{self, Range, Wish};
use super::load::{Ask, Plan, load};
use super::session::{Setup, TrtSession};
use super::{NAME, layers, profiled};
use crate::BackendError;
use crate::gpu::Wait;

/// Opens an engine and describes it: tensors, profiles, and what its layers compute in.
pub fn inspect_engine(model: &ModelFile, job: &InspectJob) -> Result<EngineRecord, BackendError> {
    let failed = |error: Error| BackendError::Load { backend: NAME, reason: error.to_string() };
    let loaded = load(&Ask {
        runtime: &job.runtime,
        plugins: &job.plugins,
        device: job.device,
        limit: None,
        force: job.force,
        plan: &|| Plan::of(model, None),
    })?;
    let engine = &loaded.engine;
    let (inputs, outputs): (Vec<IoTensor>, Vec<IoTensor>) =
        engine.io().map_err(failed)?.into_iter().partition(|tensor| tensor.is_input);
    let ranges = profiles(engine, &inputs).map_err(failed)?;
    let told = engine.inspector().and_then(|inspector| inspector.engine_json());
    let told = told.map_err(|error| error.to_string()).and_then(|text| layers::parse(&text));
    let mut record = EngineRecord {
        name: engine.name(),
        here: loaded.here.clone(),
        inputs: inputs.iter().map(io::info).collect(),
        outputs: outputs.iter().map(io::info).collect(),
        profiles: ranges.iter().map(|ranges| shapes(&inputs, ranges)).collect(),
        device_memory_bytes: Some(engine.device_memory_bytes()),
        refittable: engine.is_refittable(),
        layers: told.as_ref().ok().map(|told| layers::record(told, &[], 0)),
    };
    // Times are worth having and not needed: an engine that cannot be run by itself is still described.
    match timed(loaded) {
        Ok(timed) => record.layers = Some(timed),
        Err(error) => tracing::warn!("the layers were not timed: {error}"),
    }
    Ok(record)
}

/// Runs an engine on zeros, in the shapes that it was tuned for.
fn timed(loaded: super::load::Loaded) -> Result<prony_types::LayersRecord, BackendError> {
    let profiler = Profiler::new();
    let wish = Wish { batch: None, imgsz: None, shapes: &[] };
    let setup = Setup { wish, slots: 1, wait: Wait::Spin, profiler: Some(&profiler), precision: Precision::Native };
    profiled(&mut TrtSession::new(loaded, &setup)?, &profiler)
}

/// What every profile allows of every input; `None` for an input without free axes.
pub(super) fn profiles(engine: &Engine, inputs: &[IoTensor]) -> Result<Vec<Vec<Option<Range>>>, Error> {
    let range = |profile: i32, input: &IoTensor| {
        if input.dims.iter().all(|&size| size >= 0) {
            return Ok(None);
        }
        let shape = |selector| engine.profile_shape(&input.name, profile, selector);
        Ok(Some(Range { min: shape(Selector::Min)?, opt: shape(Selector::Opt)?, max: shape(Selector::Max)? }))
    };
    let of = |profile: i32| inputs.iter().map(|input| range(profile, input)).collect();
    (0..engine.profile_count().max(1)).map(of).collect()
}

fn shapes(inputs: &[IoTensor], ranges: &[Option<Range>]) -> Vec<ProfileShape> {
    let sizes = |shape: &[i64]| shape.iter().map(|&size| u64::try_from(size).unwrap_or(0)).collect();
    let shape = |(input, range): (&IoTensor, &Option<Range>)| {
        let range = range.as_ref()?;
        let (min, opt, max) = (sizes(&range.min), sizes(&range.opt), sizes(&range.max));
        Some(ProfileShape { input: input.name.clone(), min, opt, max })
    };
    inputs.iter().zip(ranges).filter_map(shape).collect()
}
