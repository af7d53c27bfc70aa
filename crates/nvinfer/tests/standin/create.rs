//! Opening and creating: what is missing or refuses is named.

use std::path::Path;

use prony_nvinfer::{Driver, Error, Family, Library, Logger, ParserLibrary, Version};
use prony_standin::Standin;
use prony_standin::onnx::{Dim, Model, element};

use crate::place::{Place, everywhere};

#[test]
fn version_and_family_are_the_librarys() {
    everywhere(|place| {
        let library = &place.library;
        let family = match library.version().major {
            8 => Family::V8,
            10 => Family::V10,
            _ => Family::V11,
        };
        assert_eq!(library.family(), family);
        assert!(library.path().ends_with(format!("libnvinfer.so.{}", library.version().major)));
        assert!(library.can_build());
        let lean = Library::open(&place.standin.lean()).unwrap();
        assert!(!lean.can_build());
        let error = lean.builder(&place.driver, &place.logger).unwrap_err();
        assert!(matches!(error, Error::Symbol { symbol: "createInferBuilder_INTERNAL", .. }), "{error}");
        lean.runtime(&place.driver, &place.logger).unwrap();
    });
}

#[test]
fn a_major_that_nobody_wrote_down_is_refused_by_name() {
    let Some(standin) = Standin::new("10.3.0") else { return };
    for (number, version) in [("7200", "7.2.0"), ("9100", "9.1.0"), ("120000", "12.0.0"), ("0", "0.0.0")] {
        standin.set("version", number);
        let error = Library::open(&standin.library()).unwrap_err();
        assert!(matches!(error, Error::UnknownMajor { .. }), "{error}");
        let expected = format!("libnvinfer.so.10: TensorRT {version} is of a major whose objects are not known here");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

#[test]
fn null_and_an_address_that_is_none_are_the_same_failure_with_what_was_logged() {
    everywhere(|place| {
        let create = || place.library.runtime(&place.driver, &place.logger).map(drop);
        for answer in ["null", "0x228"] {
            place.standin.set("create-runtime", answer);
            let error = create().unwrap_err();
            assert!(matches!(error, Error::NotCreated { .. }), "{error}");
            assert_eq!(error.to_string(), "TensorRT made no runtime: stand-in: no runtime: CUDA error 35", "{answer}");
        }
        place.standin.set("create-runtime", "");
        create().unwrap();
        place.standin.set("create-builder", "null");
        let error = place.library.builder(&place.driver, &place.logger).unwrap_err();
        assert_eq!(error.to_string(), "TensorRT made no builder: stand-in: no builder: CUDA error 35");
    });
}

/// 8.x crashes when a runtime cannot be made, which an old driver is the reason for.
#[test]
fn version_8_on_an_old_driver_is_asked_for_a_builder_before_a_runtime() {
    let Some(mut place) = Place::new("8.6.1") else { return };
    place.standin.set("create-builder", "null");
    place.library.runtime(&place.driver, &place.logger).expect("a driver of CUDA 12 suits every 8.x");
    place.standin.set("driver", "11040");
    place.driver = Driver::open(Some(&place.standin.driver())).unwrap();
    let before = place.standin.journal().len();
    let error = place.library.runtime(&place.driver, &place.logger).unwrap_err();
    assert!(error.to_string().starts_with("TensorRT made no builder: "), "{error}");
    assert_eq!(place.standin.journal().len(), before, "no runtime was asked for");
}

#[test]
fn a_driver_without_a_device_is_refused() {
    let Some(standin) = Standin::new("10.3.0") else { return };
    let driver = Driver::open(Some(&standin.driver())).unwrap();
    assert_eq!((driver.version(), driver.devices()), (12040, 1));
    standin.set("devices", "0");
    let error = Driver::open(Some(&standin.driver())).unwrap_err();
    assert!(matches!(error, Error::Driver { .. }) && error.to_string().contains("it sees no device"), "{error}");
    standin.set("cuInit", "999");
    let error = Driver::open(Some(&standin.driver())).unwrap_err().to_string();
    assert!(error.contains("cuInit failed with error 999") && error.contains("nvidia-smi"), "{error}");
}

#[test]
fn plugins_are_registered_or_refused_with_what_was_logged() {
    everywhere(|place| {
        place.library.init_plugins(&place.standin.plugins(), &place.logger).unwrap();
        assert_eq!(place.standin.journal(), ["plugins of ''"]);
        place.standin.set("plugins", "fail");
        let error = place.library.init_plugins(&place.standin.plugins(), &place.logger).unwrap_err().to_string();
        assert!(error.contains("libnvinfer_plugin.so") && error.ends_with("stand-in: no plugins, as asked"), "{error}");
        place.library.load_plugin(&place.standin.plugins()).unwrap();
        let error = place.library.load_plugin(Path::new("/nowhere/libmine.so")).unwrap_err();
        assert!(matches!(error, Error::Open { .. }), "{error}");
    });
}

#[test]
fn a_parser_of_another_major_or_none_at_all_is_refused() {
    let (Some(place), Some(other)) = (Place::new("10.3.0"), Standin::new("8.6.1")) else { return };
    let error = ParserLibrary::open(&other.parser(), &place.library).unwrap_err();
    assert!(matches!(error, Error::ParserMajor { .. }), "{error}");
    assert!(error.to_string().contains("is for TensorRT 8.x and the library is 10.3.0"), "{error}");
    place.standin.set("create-parser", "null");
    let builder = place.builder();
    let error = place.network(&builder, &Model::detector()).unwrap_err();
    assert_eq!(error.to_string(), "TensorRT made no ONNX parser: stand-in: no parser, as asked");
}

#[test]
fn a_model_that_is_refused_comes_back_with_node_and_reason() {
    everywhere(|place| {
        let builder = place.builder();
        let model = Model::new()
            .node("/conv", "Conv", "")
            .node("/head/nms", "FancyNms", "mine")
            .node("/head/sort", "FancySort", "mine")
            .input("images", element::F32, &[Dim::Fixed(1)])
            .output("boxes", element::F32, &[Dim::Fixed(1)]);
        let error = place.network(&builder, &model).unwrap_err();
        let Error::Parse { errors } = &error else { panic!("{error}") };
        let index: Vec<i32> = errors.iter().map(|error| error.node_index).collect();
        assert_eq!(index, [1, 2]);
        assert_eq!(errors[0].reason, "No importer registered for op: FancyNms");
        let named = if place.family() == Family::V8 { "node 1" } else { "node '/head/nms' (FancyNms)" };
        assert!(error.to_string().contains(&format!("{named}: No importer registered for op: FancyNms (code 8)")));
    });
}

#[test]
fn what_is_no_model_is_refused() {
    everywhere(|place| {
        let builder = place.builder();
        let network = builder.network(place.family() == Family::V11).unwrap();
        let parsers = ParserLibrary::open(&place.standin.parser(), &place.library).unwrap();
        let mut parser = parsers.parser(&network, &place.logger).unwrap();
        let whole = Model::detector().bytes();
        for bytes in [&b""[..], b"no model", &whole[..whole.len() - 3]] {
            let error = parser.parse_bytes(bytes, Some(Path::new("/models/x.onnx"))).unwrap_err().to_string();
            assert!(error.contains("Failed to parse the ONNX model /models/x.onnx"), "{error}");
        }
        let error = parser.parse_file(Path::new("/models/missing.onnx")).unwrap_err().to_string();
        assert!(error.contains("Could not open file /models/missing.onnx"), "{error}");
        let path = place.standin.folder().join("model.onnx");
        std::fs::write(&path, whole).unwrap();
        parser.parse_file(&path).unwrap();
        assert_eq!(network.layer_count(), 2);
    });
}

#[test]
fn what_is_younger_than_the_library_is_refused_with_both_versions() {
    let Some(place) = Place::new("8.2.1") else { return };
    let (builder, runtime) = (place.builder(), place.runtime());
    let mut config = builder.config().unwrap();
    for (error, since) in [
        (builder.set_max_threads(2).unwrap_err(), "8.4.1"),
        (runtime.allow_host_code(true).unwrap_err(), "8.6.0"),
        (config.set_optimization_level(3).unwrap_err(), "8.6.0"),
    ] {
        assert!(matches!(error, Error::TooOld { .. }), "{error}");
        assert!(error.to_string().contains(&format!("needs TensorRT {since} and this is 8.2.1")), "{error}");
    }
    assert_eq!(place.library.version(), Version { major: 8, minor: 2, patch: 1 });
}

#[test]
fn a_logger_that_panics_changes_nothing() {
    everywhere(|place| {
        let logger = Logger::new(|_, _| panic!("a broken logger"));
        place.library.runtime(&place.driver, &logger).unwrap();
        place.standin.set("create-runtime", "null");
        let error = place.library.runtime(&place.driver, &logger).unwrap_err();
        assert_eq!(error.to_string(), "TensorRT made no runtime: stand-in: no runtime: CUDA error 35");
    });
}
