//! Engines that do not run: each with its reason, and without a crash.

use std::fs;

use prony_backend::{BackendError, open_artifact};
use prony_types::{ArtifactSpec, BackendName, FailureKind};

use crate::place::{Setting, fill};

#[test]
fn an_engine_of_another_gpu_is_refused_before_it_is_read() {
    let setting = Setting::new("refuse::an_engine_of_another_gpu_is_refused_before_it_is_read", "10.3.0");
    // Would TensorRT be asked to read it, it would crash.
    Setting { behaviour: &[("deserialize", "crash")], ..setting }.run(|place| {
        let sidecar = r#"{"schema": "prony.engine/1", "tensorrt": "10.3.0",
            "gpu": {"name": "NVIDIA Orin", "compute_capability": "8.7", "sm_count": 8}}"#;
        fs::write(place.folder.join("x.engine.json"), sidecar).unwrap();
        let error = place.refusal(|_| ());
        assert_eq!(error.kind(), FailureKind::Model);
        let text = error.to_string();
        assert!(text.contains("NVIDIA Orin (8 SMs") && text.contains("Stand-in GPU (16 SMs"), "{text}");
        assert!(text.contains("--force"), "{text}");
    });
}

#[test]
fn an_engine_of_another_version_is_refused_unless_forced() {
    Setting::new("refuse::an_engine_of_another_version_is_refused_unless_forced", "8.6.1").run(|place| {
        let sidecar = r#"{"schema": "prony.engine/1", "tensorrt": "8.5.2"}"#;
        fs::write(place.folder.join("x.engine.json"), sidecar).unwrap();
        let text = place.refusal(|_| ()).to_string();
        assert!(text.contains("TensorRT 8.5.2") && text.contains("TensorRT 8.6.1"), "{text}");
        let session = place.open(|spec| spec.provider.force_engine = true).unwrap();
        let settings = session.record().settings.join("; ");
        assert!(settings.contains("tried by force: ") && settings.contains("code for the host"), "{settings}");
    });
}

#[test]
fn what_tensorrt_says_about_a_damaged_engine_is_passed_on() {
    Setting::new("refuse::what_tensorrt_says_about_a_damaged_engine_is_passed_on", "11.1.0").run(|place| {
        let mut bytes = fs::read(place.engine()).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(place.engine(), &bytes).unwrap();
        let error = place.refusal(|_| ());
        assert_eq!(error.kind(), FailureKind::Model);
        assert!(error.to_string().contains("the serialized engine is damaged"), "{error}");
    });
}

#[test]
fn an_artifact_must_have_the_hash_that_was_promised() {
    Setting::new("refuse::an_artifact_must_have_the_hash_that_was_promised", "8.2.1").run(|place| {
        let artifact = |sha256: &str| ArtifactSpec { path: place.engine(), sha256: sha256.into(), from_cache: true };
        let error = open_artifact(&artifact("0000"), BackendName::Tensorrt).unwrap_err().to_string();
        assert!(error.contains("is not what was made"), "{error}");
        let hash = prony_model::sha256_file(&place.engine()).unwrap();
        let whole = open_artifact(&artifact(&hash), BackendName::Tensorrt).unwrap();
        assert!(whole.bytes.is_empty(), "mapped when it is loaded, and not before");
        assert!(place.open(|spec| spec.artifact = Some(whole)).is_ok());
    });
}

#[test]
fn beyond_the_limit_is_a_violation_and_not_a_crash() {
    Setting::new("refuse::beyond_the_limit_is_a_violation_and_not_a_crash", "10.3.0").run(|place| {
        let peak = place.open(|_| ()).unwrap().device_use().unwrap().allocator_peak_bytes.unwrap();
        let limited = |limit: u64| place.open(|spec| spec.provider.gpu_mem_limit_bytes = Some(limit));
        for limit in [0, 1, peak / 4, peak / 2, peak - 1] {
            let Err(error @ BackendError::Memory { .. }) = limited(limit) else { panic!("{limit} of {peak}") };
            let device = error.device_use().unwrap();
            assert!(device.hard_limit && device.allocator_peak_bytes.unwrap() <= limit);
            let [violation, ..] = device.violations[..] else { panic!("{error}") };
            assert!(violation.asked_bytes + violation.held_bytes > limit);
            assert_eq!(error.to_string().matches("--gpu-mem-limit").count(), 1, "{error}");
        }
        let mut session = limited(peak).unwrap();
        fill(&mut *session, 0, 1.0);
        session.run(0).unwrap();
        let device = session.device_use().unwrap();
        assert!(device.hard_limit && device.violations.is_empty());
    });
}

#[test]
fn an_allocation_that_fails_ends_in_an_error() {
    for number in ["1", "2", "3", "4", "5", "6"] {
        let setting = Setting::new("refuse::an_allocation_that_fails_ends_in_an_error", "8.6.1");
        Setting { environment: &[("PRONY_FAIL_ALLOCATION", number)], ..setting }.run(|place| {
            let error = place.refusal(|_| ());
            assert!(matches!(error, BackendError::Memory { .. }), "{error}");
            assert!(error.to_string().contains("was refused on purpose"), "{error}");
            assert_eq!(error.device_use().unwrap().violations, []);
        });
    }
}

#[test]
fn a_gpu_without_memory_left_says_so() {
    let setting = Setting::new("refuse::a_gpu_without_memory_left_says_so", "10.3.0");
    Setting { behaviour: &[("memory", "5000")], ..setting }.run(|place| {
        let error = place.refusal(|_| ());
        assert!(error.to_string().contains("CUDA_ERROR_OUT_OF_MEMORY"), "{error}");
    });
}

#[test]
fn without_a_driver_nothing_is_created() {
    let setting = Setting::new("refuse::without_a_driver_nothing_is_created", "8.6.1");
    Setting { behaviour: &[("cuInit", "100")], ..setting }.run(|place| {
        let error = place.refusal(|_| ());
        assert_eq!(error.kind(), FailureKind::Unsupported);
        assert!(error.to_string().contains("NVIDIA driver"), "{error}");
        let journal = fs::read_to_string(place.folder.join("standin.log")).unwrap_or_default();
        assert!(!journal.contains("+ IRuntime"), "{journal}");
    });
}

#[test]
fn there_is_no_second_gpu() {
    Setting::new("refuse::there_is_no_second_gpu", "11.1.0").run(|place| {
        let error = place.refusal(|spec| spec.device = 1).to_string();
        assert_eq!(error, "tensorrt: there is no GPU 1; there are 1, numbered from 0");
    });
}
