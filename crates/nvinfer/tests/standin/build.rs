//! Building: every object of ours is asked for its part, and a build that fails says why.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use prony_nvinfer::{
    BuildListener, Calibration, Calibrator, DataType, Error, ErrorRecorder, Family, Flag, Pool, ProgressMonitor,
    Severity,
};
use prony_standin::onnx::{Dim, Model, element};

use crate::place::{Place, batches, everywhere};

#[test]
fn a_network_is_built_into_bytes_and_the_logger_hears_of_it() {
    everywhere(|place| {
        let bytes = place.engine();
        assert!(bytes.len() > 100);
        assert!(place.heard.lock().unwrap().contains(&(Severity::Info, "stand-in: building 2 layers".to_owned())));
        let flags = match place.family() {
            Family::V10 => "network flags 0",
            _ => "network flags 1",
        };
        assert!(place.standin.journal().contains(&flags.to_owned()), "{:?}", place.standin.journal());
    });
}

#[test]
fn a_network_tells_its_inputs_and_outputs() {
    everywhere(|place| {
        let builder = place.builder();
        let model = Model::batched().input("sizes", element::I64, &[Dim::Fixed(2)]);
        let network = place.network(&builder, &model).unwrap();
        let inputs = network.inputs().unwrap();
        let names: Vec<&str> = inputs.iter().map(|tensor| tensor.name.as_str()).collect();
        assert_eq!(names, ["images", "sizes"]);
        assert_eq!(inputs[0].dims, [-1, 3, 8, 8]);
        assert!(inputs[0].is_input && !inputs[0].on_host);
        // 8.x has no 64-bit numbers.
        let wide = if place.family() == Family::V8 { DataType::I32 } else { DataType::I64 };
        assert_eq!([inputs[0].dtype, inputs[1].dtype], [DataType::F32, wide]);
        let output = &network.outputs().unwrap()[0];
        assert_eq!((output.name.as_str(), output.dims.as_slice(), output.is_input), ("boxes", &[-1, 6, 4][..], false));
    });
}

#[test]
fn a_build_that_fails_gives_the_reason_and_the_recorder_has_it_too() {
    everywhere(|place| {
        place.standin.set("build", "fail");
        let recorder = ErrorRecorder::new();
        let error = place.build(&Model::detector(), |builder, _| builder.set_error_recorder(&recorder)).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        let reason = "Could not find any implementation for node /head.";
        assert_eq!(error.to_string(), format!("TensorRT refused to build the engine: {reason}"));
        assert_eq!(recorder.take(), [(2, reason.to_owned())]);
    });
}

#[test]
fn a_model_with_free_dimensions_needs_a_profile() {
    everywhere(|place| {
        let error = place.build(&Model::batched(), |_, _| ()).unwrap_err().to_string();
        assert!(error.contains("no optimization profile has been defined: images"), "{error}");
        place.build(&Model::batched(), |builder, config| assert_eq!(batches(builder, config, 4), 0)).unwrap();
    });
}

/// Writes down what it hears and ends the build at that step.
struct Diary {
    heard: Mutex<Vec<String>>,
    stop_at: i32,
}

impl BuildListener for Diary {
    fn phase_start(&self, phase: &str, parent: Option<&str>, steps: i32) {
        self.heard.lock().unwrap().push(format!("{phase} ({}), {steps} steps", parent.unwrap_or("-")));
    }

    fn step(&self, phase: &str, step: i32) -> bool {
        self.heard.lock().unwrap().push(format!("{phase} {step}"));
        step < self.stop_at
    }

    fn phase_finish(&self, phase: &str) {
        self.heard.lock().unwrap().push(format!("{phase} done"));
    }
}

#[test]
fn progress_is_told_and_can_end_the_build() {
    everywhere(|place| {
        let build = |stop_at: i32| {
            let diary = Arc::new(Diary { heard: Mutex::default(), stop_at });
            let monitor = ProgressMonitor::new(Arc::clone(&diary) as Arc<dyn BuildListener>);
            let built = place.build(&Model::detector(), |_, config| {
                let set = config.set_progress_monitor(&monitor);
                // 8.x has none, and says so by name.
                assert_eq!(set.is_err(), place.family() == Family::V8);
                assert!(set.err().is_none_or(|error| matches!(error, Error::Unsupported { .. })));
            });
            let heard = diary.heard.lock().unwrap().clone();
            (built, heard)
        };
        let (built, heard) = build(i32::MAX);
        built.unwrap();
        if place.family() == Family::V8 {
            return assert_eq!(heard, [""; 0]);
        }
        let all = [
            "Building Engine (-), 1 steps",
            "Tactic Selection (Building Engine), 2 steps",
            "Tactic Selection 0",
            "Tactic Selection 1",
            "Tactic Selection done",
            "Building Engine 0",
            "Building Engine done",
        ];
        assert_eq!(heard, all);
        let (built, heard) = build(1);
        let error = built.unwrap_err().to_string();
        assert_eq!(error, "TensorRT refused to build the engine: the build was cancelled by its progress monitor");
        assert_eq!(heard.last().unwrap(), "Building Engine done");
    });
}

/// Batches of two images, the first number of each from this list; a cache.
struct Images {
    left: Vec<f32>,
    batch: Vec<f32>,
    cache: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Images {
    fn new(numbers: &[f32], cache: &Arc<Mutex<Option<Vec<u8>>>>) -> Box<Images> {
        Box::new(Images { left: numbers.to_vec(), batch: Vec::new(), cache: Arc::clone(cache) })
    }
}

impl Calibration for Images {
    fn batch_size(&self) -> i32 {
        2
    }

    fn next_batch(&mut self, names: &[&str], device_addresses: &mut [*mut c_void]) -> bool {
        assert_eq!((names, device_addresses.len()), (&["images"][..], 1));
        if self.left.len() < 2 {
            return false;
        }
        self.batch = self.left.drain(..2).collect();
        device_addresses[0] = self.batch.as_mut_ptr().cast();
        true
    }

    fn read_cache(&mut self) -> Option<Vec<u8>> {
        self.cache.lock().unwrap().clone()
    }

    fn write_cache(&mut self, cache: &[u8]) {
        *self.cache.lock().unwrap() = Some(cache.to_vec());
    }
}

#[test]
fn int8_is_calibrated_from_batches_once_and_from_the_cache_after_that() {
    everywhere(|place| {
        let cache: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
        let build = |calibrator: &Calibrator| {
            place.build(&Model::detector(), |_, config| {
                let flag = config.set_flag(Flag::Int8, true);
                let set = config.set_calibrator(calibrator);
                for done in [flag, set] {
                    assert_eq!(done.is_err(), place.family() == Family::V11);
                    assert!(done.err().is_none_or(|error| matches!(error, Error::Unsupported { .. })));
                }
            })
        };
        build(&Calibrator::entropy(Images::new(&[1.0, 5.0, 3.0, 2.0], &cache))).unwrap();
        if place.family() == Family::V11 {
            return assert_eq!(*cache.lock().unwrap(), None);
        }
        let version = place.library.version().number();
        let table = |algorithm: i32| format!("TRT-{version}-algorithm{algorithm}\nimages: 5 of 2\n");
        let written =
            |cache: &Mutex<Option<Vec<u8>>>| String::from_utf8(cache.lock().unwrap().clone().unwrap()).unwrap();
        assert_eq!(written(&cache), table(2));
        assert!(!place.said("Calibrated from cache"));
        // No batches at all, so it must be the cache.
        build(&Calibrator::entropy(Images::new(&[], &cache))).unwrap();
        assert!(place.said(&format!("Calibrated from cache: {}", table(2))));
        let fresh: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
        build(&Calibrator::minmax(Images::new(&[5.0, 1.0, 1.0, 1.0], &fresh))).unwrap();
        assert_eq!(written(&fresh), table(3));
        let error = build(&Calibrator::entropy(Images::new(&[], &Arc::default()))).unwrap_err().to_string();
        assert!(error.ends_with("Calibration failure occurred with no scaling factors detected."), "{error}");
    });
}

#[test]
fn a_timing_cache_learns_and_is_used_again() {
    everywhere(|place| {
        let mut builder = place.builder();
        let network = place.network(&builder, &Model::detector()).unwrap();
        let mut config = builder.config().unwrap();
        let mut cache = config.timing_cache(b"earlier\n").unwrap();
        config.set_timing_cache(&cache, false).unwrap();
        builder.build(&network, &config).unwrap();
        assert_eq!(cache.serialize().unwrap().as_bytes(), b"earlier\ntimed 2\n");
        let other = config.timing_cache(b"other\n").unwrap();
        cache.combine(&other, false).unwrap();
        drop((builder, network, config, other));
        assert_eq!(cache.serialize().unwrap().as_bytes(), b"earlier\ntimed 2\nother\n");
    });
}

#[test]
fn the_configuration_keeps_what_it_was_given_while_it_builds() {
    everywhere(|place| {
        let mut builder = place.builder();
        let network = place.network(&builder, &Model::detector()).unwrap();
        let mut config = builder.config().unwrap();
        let cache = config.timing_cache(b"").unwrap();
        config.set_timing_cache(&cache, false).unwrap();
        drop(cache);
        builder.set_error_recorder(&ErrorRecorder::new());
        if place.family() != Family::V8 {
            let diary = Arc::new(Diary { heard: Mutex::default(), stop_at: i32::MAX });
            config.set_progress_monitor(&ProgressMonitor::new(diary)).unwrap();
        }
        builder.build(&network, &config).unwrap();
    });
}

#[test]
fn pools_and_options_reach_the_configuration() {
    everywhere(|place| {
        let builder = place.builder();
        let mut config = builder.config().unwrap();
        config.set_memory_pool(Pool::Workspace, 123 << 20).unwrap();
        assert_eq!(config.memory_pool(Pool::Workspace).unwrap(), 123 << 20);
        config.set_avg_timing_iterations(2).unwrap();
        config.set_dla(0).unwrap();
        assert!(config.set_tactic_sources(0).unwrap());
        assert_eq!(builder.dla_cores(), 0);
        let fast = (place.family() != Family::V11).then_some(true);
        assert_eq!([builder.has_fast_fp16(), builder.has_fast_int8()], [fast; 2]);
        let young = place.library.version() < "8.6".parse().unwrap();
        let options = [
            config.set_optimization_level(3),
            config.set_hardware_compatibility(true),
            config.set_max_aux_streams(1),
            config.set_flag(Flag::VersionCompatible, true),
        ];
        for option in options {
            assert_eq!(option.is_err(), young, "{option:?}");
        }
    });
}

#[test]
fn only_10_and_11_have_strong_types_and_11_nothing_else() {
    everywhere(|place| {
        let builder = place.builder();
        let (weak, strong) = (builder.network(false), builder.network(true));
        assert_eq!(weak.is_ok(), place.family() != Family::V11);
        assert_eq!(strong.is_ok(), place.family() != Family::V8);
    });
    let Some(place) = Place::new("10.3.0") else { return };
    drop(place.builder().network(true).unwrap());
    assert!(place.standin.journal().contains(&"network flags 2".to_owned()));
}
