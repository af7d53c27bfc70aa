//! Engines that run.

use prony_backend::{ModelFile, Session, backend, inspect_engine};
use prony_standin::VERSIONS;
use prony_standin::onnx::{Dim, Model, element};
use prony_types::{BackendName, InspectJob, ModelSource, ModelSpec, TensorData, WORKER_PROTOCOL};

use crate::place::{Setting, doubled, fill};

/// Both slots, alone and side by side, on values of their own.
fn runs_both_slots(session: &mut dyn Session) {
    for round in 0..3u16 {
        let (first, second) = (f32::from(round), 100.0 + f32::from(round));
        fill(session, 0, first);
        session.run(0).unwrap();
        assert!(doubled(session, 0, first));
        fill(session, 1, second);
        session.submit(0).unwrap();
        session.submit(1).unwrap();
        session.collect(0).unwrap();
        session.collect(1).unwrap();
        assert!(doubled(session, 0, first) && doubled(session, 1, second), "round {round}");
    }
}

#[test]
fn an_engine_runs_in_every_layout() {
    for version in VERSIONS {
        Setting::new("run::an_engine_runs_in_every_layout", version).run(|place| {
            let mut session = place.open(|_| ()).unwrap();
            runs_both_slots(&mut *session);
            let timing = session.run(0).unwrap();
            assert!(timing.h2d_ns.is_some() && timing.d2h_ns.is_some());
            let record = session.record();
            assert_eq!((record.version.as_deref(), record.device.as_deref()), (Some(version), Some("Stand-in GPU")));
            assert_eq!(record.settings[0], "CUDA graph: captured");
            assert_eq!(session.executed(), "fp32 (2 of 2 layers)");
            let device = session.device_use().unwrap();
            assert!(device.allocator_peak_bytes.unwrap() > 4096, "weights, scratch and buffers");
            assert!(!device.hard_limit && !device.unified && device.violations.is_empty());
        });
    }
}

#[test]
fn an_engine_for_an_accelerator_runs_on_it() {
    for version in ["8.6.1", "10.3.0", "11.1.0"] {
        Setting::new("run::an_engine_for_an_accelerator_runs_on_it", version).run(|place| {
            let sidecar = r#"{"schema": "prony.engine/1", "engine": {"dla_core": 1}}"#;
            std::fs::write(place.folder.join("x.engine.json"), sidecar).unwrap();
            let session = place.open(|_| ()).unwrap();
            let settings = session.record().settings.join("; ");
            assert!(settings.contains("DLA core 1, as it was built for"), "{settings}");
            let journal = std::fs::read_to_string(place.folder.join("standin.log")).unwrap();
            assert!(journal.lines().any(|line| line == "= DLA core 1"), "{journal}");
        });
    }
}

#[test]
fn what_cannot_be_recorded_is_enqueued() {
    let setting = Setting::new("run::what_cannot_be_recorded_is_enqueued", "10.3.0");
    Setting { behaviour: &[("capture", "unsupported")], ..setting }.run(|place| {
        let mut session = place.open(|_| ()).unwrap();
        runs_both_slots(&mut *session);
        let graph = session.record().settings.remove(0);
        assert!(graph.starts_with("CUDA graph: not possible: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"), "{graph}");
    });
}

#[test]
fn on_an_integrated_gpu_nothing_is_copied() {
    let setting = Setting::new("run::on_an_integrated_gpu_nothing_is_copied", "8.6.1");
    Setting { behaviour: &[("integrated", "1")], ..setting }.run(|place| {
        let mut session = place.open(|spec| spec.provider.blocking_wait = true).unwrap();
        runs_both_slots(&mut *session);
        let timing = session.run(0).unwrap();
        assert_eq!((timing.h2d_ns, timing.d2h_ns), (None, None));
        assert!(session.device_use().unwrap().unified);
        let settings = session.record().settings.join("; ");
        assert!(settings.contains("no copies") && settings.contains("the host sleeps"), "{settings}");
    });
}

#[test]
fn free_axes_take_what_is_asked_within_the_profile() {
    for version in ["8.4.3", "11.1.0"] {
        let setting = Setting::new("run::free_axes_take_what_is_asked_within_the_profile", version);
        Setting { model: Model::batched(), ..setting }.run(|place| {
            let mut session = place.open(|spec| spec.batch = 3).unwrap();
            assert_eq!(session.inputs()[0].shape, [3, 3, 8, 8]);
            fill(&mut *session, 0, 5.0);
            session.run(0).unwrap();
            assert_eq!(session.output(0, 0).shape, [3, 6, 4]);
            let error = place.refusal(|spec| spec.batch = 5).to_string();
            let expected = "input images f32[?,3,8,8] does not take 5 at axis 0; profile 0 of the engine allows 1 to 4";
            assert_eq!(error, expected);
        });
    }
}

#[test]
fn an_output_may_be_as_long_as_the_data_make_it() {
    let model = Model::new()
        .node("/nonzero", "NonZero", "")
        .input("images", element::F32, &[1, 3, 8, 8].map(Dim::Fixed))
        .output("boxes", element::F32, &[Dim::Free("found"), Dim::Fixed(1)]);
    for version in ["8.6.1", "10.3.0"] {
        let setting = Setting::new("run::an_output_may_be_as_long_as_the_data_make_it", version);
        Setting { model: model.clone(), ..setting }.run(|place| {
            let mut session = place.open(|_| ()).unwrap();
            // The stand-in has as many entries as there are positive numbers.
            for (first, positive) in [(1.0, 192), (-9.0, 182), (0.0, 191)] {
                fill(&mut *session, 1, first);
                session.run(1).unwrap();
                let output = session.output(1, 0);
                assert_eq!((output.shape, output.data.len()), (&[positive, 1][..], positive));
            }
            let graph = session.record().settings.remove(0);
            assert_eq!(graph, "CUDA graph: not possible: the data decide the size of an output");
        });
    }
}

#[test]
fn half_precision_outputs_are_widened() {
    let model = Model::new()
        .node("/conv", "Conv", "")
        .input("images", element::F32, &[1, 3, 8, 8].map(Dim::Fixed))
        .output("boxes", element::F16, &[1, 6, 4].map(Dim::Fixed))
        .output("numbers", element::I64, &[1, 2].map(Dim::Fixed));
    let setting = Setting::new("run::half_precision_outputs_are_widened", "10.3.0");
    Setting { model, ..setting }.run(|place| {
        let mut session = place.open(|_| ()).unwrap();
        fill(&mut *session, 0, 3.0);
        session.run(0).unwrap();
        assert!(doubled(&*session, 0, 3.0));
        assert_eq!(session.output(0, 1).data, TensorData::I64(&[6, 8]));
    });
}

#[test]
fn layers_say_what_they_compute_in_and_how_long() {
    for version in VERSIONS {
        Setting::new("run::layers_say_what_they_compute_in_and_how_long", version).run(|place| {
            let model = ModelFile::read(&place.engine()).unwrap();
            let mut filled = 0;
            let mut count = |session: &mut dyn Session| {
                fill(session, 0, 1.0);
                filled += 1;
            };
            let layers = backend(BackendName::Tensorrt).proof(&place.spec(&model), &mut count).layers.unwrap().unwrap();
            assert_eq!((filled, layers.layers, layers.of("fp32"), layers.reformats), (1, 2, 2, 0));
            // The stand-in's second layer takes twice as long as its first.
            let slowest: Vec<(&str, f64)> =
                layers.slowest.iter().map(|layer| (layer.name.as_str(), layer.ms)).collect();
            assert_eq!(slowest, [("/head", 0.5), ("/conv", 0.25)]);
            assert_eq!(layers.by_type[0].time, Some(1.0));
        });
    }
}

#[test]
fn an_engine_is_described() {
    let setting = Setting::new("run::an_engine_is_described", "10.3.0");
    Setting { model: Model::batched(), ..setting }.run(|place| {
        let model = ModelFile::read(&place.engine()).unwrap();
        let source = ModelSource::File(place.engine());
        let job = InspectJob {
            protocol: WORKER_PROTOCOL,
            model: ModelSpec::new("x", source, model.sha256.clone()),
            runtime: place.runtime(),
            plugins: Vec::new(),
            device: 0,
            force: false,
        };
        let record = inspect_engine(&model, &job).unwrap();
        let io: Vec<String> = record.inputs.iter().chain(&record.outputs).map(ToString::to_string).collect();
        assert_eq!(io, ["images f32[?,3,8,8]", "boxes f32[?,6,4]"]);
        let [profile] = &record.profiles[..] else { panic!("{record:?}") };
        assert_eq!(
            (&profile[0].min[..], &profile[0].opt[..], &profile[0].max[..]),
            (&[1, 3, 8, 8][..], &[2, 3, 8, 8][..], &[4, 3, 8, 8][..])
        );
        assert_eq!((record.here.tensorrt.as_str(), record.here.sm_count), ("10.3.0", 16));
        assert_eq!(record.device_memory_bytes, Some(4096));
        assert!(record.layers.unwrap().by_type[0].time.is_some());
    });
}
