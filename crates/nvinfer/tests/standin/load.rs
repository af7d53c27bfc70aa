//! Engines from bytes: whole ones load, others are refused with the reason.

use prony_nvinfer::{DataType, EngineReader, Error, ErrorRecorder, Family, Flag, Selector, StreamReader};
use prony_standin::VERSIONS;
use prony_standin::onnx::Model;

use crate::place::{Place, batches, everywhere};

#[test]
fn an_engine_tells_what_it_is() {
    everywhere(|place| {
        let bytes = place.build(&Model::batched(), |builder, config| {
            batches(builder, config, 4);
            config.set_flag(Flag::Refit, true).unwrap();
        });
        let engine = place.runtime().deserialize(&bytes.unwrap()).unwrap();
        let io = engine.io().unwrap();
        let names: Vec<(&str, bool)> = io.iter().map(|tensor| (tensor.name.as_str(), tensor.is_input)).collect();
        assert_eq!(names, [("images", true), ("boxes", false)]);
        assert_eq!([io[0].dtype, io[1].dtype], [DataType::F32; 2]);
        assert_eq!([&io[0].dims[..], &io[1].dims[..]], [&[-1, 3, 8, 8][..], &[-1, 6, 4]]);
        assert_eq!((io[0].format, io[0].vectorised_dim, io[0].on_host), (0, -1, false));
        let shape = |selector| engine.profile_shape("images", 0, selector).unwrap()[0];
        assert_eq!([Selector::Min, Selector::Opt, Selector::Max].map(shape), [1, 2, 4]);
        assert_eq!((engine.profile_count(), engine.layer_count()), (1, 2));
        assert_eq!((engine.device_memory_bytes(), engine.name().as_str()), (4096, "stand-in engine"));
        assert!(engine.is_refittable());
    });
}

#[test]
fn an_engine_becomes_the_same_bytes_again() {
    everywhere(|place| {
        let bytes = place.engine();
        let engine = place.runtime().deserialize(&bytes).unwrap();
        assert!(!engine.is_refittable());
        assert_eq!(engine.serialize().unwrap().as_bytes(), bytes);
    });
}

#[test]
fn bytes_that_are_not_whole_are_refused() {
    everywhere(|place| {
        let whole = place.engine();
        let runtime = place.runtime();
        let mut damaged = whole.clone();
        damaged[40] ^= 1;
        let cut = whole.len() - 5;
        for (bytes, reason) in [
            (&whole[..cut], format!("the serialized engine is truncated, it has {cut} bytes")),
            (&whole[..10], "the serialized engine is truncated, it has 10 bytes".to_owned()),
            (&[], "Magic tag does not match: this is no engine".to_owned()),
            (b"something else entirely", "Magic tag does not match: this is no engine".to_owned()),
            (&damaged, "the serialized engine is damaged".to_owned()),
        ] {
            let error = runtime.deserialize(bytes).unwrap_err();
            assert!(matches!(error, Error::NotCreated { .. }), "{error}");
            let expected = format!("TensorRT made no engine: IRuntime::deserializeCudaEngine: {reason}");
            assert_eq!(error.to_string(), expected);
        }
        runtime.deserialize(&whole).unwrap();
    });
}

#[test]
fn an_engine_of_another_version_is_refused_with_both() {
    let places: Vec<Place> = VERSIONS.into_iter().filter_map(Place::new).collect();
    for pair in places.windows(2) {
        let error = pair[1].runtime().deserialize(&pair[0].engine()).unwrap_err().to_string();
        let (here, there) = (pair[1].library.version(), pair[0].library.version());
        assert!(error.contains(&format!("expecting library version {here} got {there}, please rebuild.")), "{error}");
    }
}

#[test]
fn an_engine_of_another_device_is_refused_with_both_and_recorded() {
    everywhere(|place| {
        let bytes = place.engine();
        place.standin.set("device", "Other GPU");
        let recorder = ErrorRecorder::new();
        let runtime = place.runtime();
        runtime.set_error_recorder(&recorder);
        let error = runtime.deserialize(&bytes).unwrap_err().to_string();
        let reason = "generated on an incompatible device, expecting Other GPU got Stand-in GPU, please rebuild.";
        assert!(error.contains(reason), "{error}");
        assert_eq!(error.matches(reason).count(), 1, "said by logger and recorder, told once: {error}");
        let recorded = recorder.take();
        assert!(recorded.len() == 1 && recorded[0].1.contains(reason), "{recorded:?}");
    });
}

#[test]
fn host_code_has_to_be_allowed() {
    everywhere(|place| {
        if place.library.version() < "8.6".parse().unwrap() {
            return;
        }
        let build = |exclude: bool| {
            let bytes = place.build(&Model::detector(), |_, config| {
                config.set_flag(Flag::VersionCompatible, true).unwrap();
                config.set_flag(Flag::ExcludeLeanRuntime, exclude).unwrap();
            });
            bytes.unwrap()
        };
        let runtime = place.runtime();
        runtime.deserialize(&build(true)).unwrap();
        let error = runtime.deserialize(&build(false)).unwrap_err().to_string();
        assert!(error.contains("the engine carries host code, which is not allowed"), "{error}");
        runtime.allow_host_code(true).unwrap();
        runtime.deserialize(&build(false)).unwrap();
    });
}

/// Seven bytes at a time; fails after so many reads.
struct Slowly {
    bytes: Vec<u8>,
    at: usize,
    reads_left: usize,
}

impl EngineReader for Slowly {
    fn read(&mut self, into: &mut [u8]) -> i64 {
        if self.reads_left == 0 {
            return -1;
        }
        self.reads_left -= 1;
        let count = into.len().min(7).min(self.bytes.len() - self.at);
        into[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        i64::try_from(count).unwrap()
    }
}

#[test]
fn an_engine_is_read_piece_by_piece_in_10() {
    everywhere(|place| {
        let bytes = place.engine();
        let runtime = place.runtime();
        let read = |reads_left: usize| {
            let reader = Slowly { bytes: bytes.clone(), at: 0, reads_left };
            runtime.deserialize_stream(StreamReader::new(Box::new(reader)))
        };
        if place.family() != Family::V10 {
            let error = read(usize::MAX).unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
            return;
        }
        assert_eq!(read(usize::MAX).unwrap().io().unwrap().len(), 2);
        let error = read(3).unwrap_err().to_string();
        assert!(error.contains("the stream reader failed"), "{error}");
    });
}
