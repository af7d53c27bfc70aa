//! What two places have to have in common, and what a sidecar may look like.

use super::*;

fn h200() -> EngineIdentity {
    EngineIdentity {
        tensorrt: "8.6.0".into(),
        gpu: "NVIDIA H200".into(),
        compute_capability: "9.0".into(),
        sm_count: 132,
        driver: "550.54".into(),
        cuda: "12.4".into(),
        ..EngineIdentity::default()
    }
}

fn orin() -> EngineIdentity {
    EngineIdentity { gpu: "Orin".into(), compute_capability: "8.7".into(), sm_count: 8, ..h200() }
}

#[test]
fn the_same_place_is_no_mismatch_and_a_driver_is_none_either() {
    assert_eq!(mismatch(&h200(), &h200()), None);
    assert_eq!(mismatch(&h200(), &EngineIdentity { driver: "580.1".into(), cuda: "13.0".into(), ..h200() }), None);
    assert_eq!(mismatch(&EngineIdentity { tensorrt: "8.6.0.12".into(), ..h200() }, &h200()), None);
}

#[test]
fn another_gpu_is_refused_with_both_named() {
    assert_eq!(
        mismatch(&h200(), &orin()).unwrap(),
        "this engine was built for NVIDIA H200 (132 SMs, compute capability 9.0) by TensorRT 8.6.0, here is Orin (8 SMs, \
         compute capability 8.7) with TensorRT 8.6.0: the GPU, the compute capability and the number of SMs differ; \
         build it here, or use --force to try it"
    );
    let cut_down = EngineIdentity { sm_count: 114, ..h200() };
    let error = mismatch(&h200(), &cut_down).unwrap();
    assert!(error.contains("114 SMs") && error.contains(": the number of SMs differs;"), "{error}");
}

#[test]
fn another_tensorrt_is_refused_unless_it_is_newer_and_that_was_built_for() {
    let newer = EngineIdentity { tensorrt: "10.16.1".into(), ..h200() };
    let error = mismatch(&h200(), &newer).unwrap();
    assert!(error.contains("by TensorRT 8.6.0") && error.contains("with TensorRT 10.16.1"), "{error}");
    assert!(error.contains(": TensorRT's version differs;"), "{error}");
    assert!(mismatch(&h200(), &EngineIdentity { tensorrt: "8.6.1".into(), ..h200() }).is_some());
    let compatible = EngineIdentity { version_compatible: true, ..h200() };
    assert_eq!(mismatch(&compatible, &newer), None);
    let built_later = EngineIdentity { version_compatible: true, tensorrt: "10.3.0".into(), ..h200() };
    assert!(mismatch(&built_later, &h200()).is_some());
}

#[test]
fn a_hardware_compatible_engine_goes_to_other_gpus_from_ampere_on() {
    let compatible = EngineIdentity { hardware_compatible: true, ..h200() };
    assert_eq!(mismatch(&compatible, &orin()), None);
    let turing = EngineIdentity { gpu: "Tesla T4".into(), compute_capability: "7.5".into(), sm_count: 40, ..h200() };
    assert!(mismatch(&compatible, &turing).unwrap().contains("older than Ampere"));
}

#[test]
fn what_nobody_told_is_not_held_against_it() {
    let plan_alone = EngineIdentity { tensorrt: "8.6.0".into(), ..EngineIdentity::default() };
    assert_eq!(mismatch(&plan_alone, &h200()), None);
    assert_eq!(mismatch(&EngineIdentity::default(), &h200()), None);
    let other = EngineIdentity { tensorrt: "10.3.0".into(), ..EngineIdentity::default() };
    let error = mismatch(&other, &h200()).unwrap();
    assert!(error.starts_with("this engine was built by TensorRT 10.3.0, here is NVIDIA H200"), "{error}");
}

fn read(text: &str) -> Result<EngineProvenance, ModelError> {
    EngineProvenance::read("a.engine.json".into(), text.as_bytes())
}

#[test]
fn the_gpu_may_be_an_object_or_stand_flat() {
    let nested = r#"{"schema": "prony.engine/1", "engine_sha256": "ab", "tensorrt": "8.6.0", "driver": "550.54",
        "cuda": "12.4", "gpu": {"name": "NVIDIA H200", "compute_capability": "9.0", "sm_count": 132}}"#;
    let sidecar = read(nested).unwrap();
    assert_eq!(sidecar.identity, h200());
    assert_eq!(sidecar.engine_sha256.as_deref(), Some("ab"));
    let mut flat = serde_json::to_value(h200()).unwrap();
    flat["schema"] = ENGINE_SCHEMA.into();
    assert_eq!(read(&flat.to_string()).unwrap().identity, h200());
}

#[test]
fn a_sidecar_that_is_none_gets_one_line() {
    for (text, expected) in [
        ("{", "it is no JSON ("),
        ("[]", "it is no JSON object"),
        ("{}", "it does not say that it is prony.engine/1"),
        (r#"{"schema": "prony.engine/2"}"#, "its schema is prony.engine/2, not prony.engine/1"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with("cannot use a.engine.json") && error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}
