use prony_types::GpuRecord;

use super::*;

fn record(name: RuntimeName, state: RuntimeState) -> RuntimeRecord {
    RuntimeRecord {
        name,
        state,
        path: None,
        found_by: None,
        version: None,
        provides: Vec::new(),
        reason: None,
        trusted: None,
        looked: Vec::new(),
        remedy: None,
    }
}

fn ready(path: &str, version: &str, provides: &[&str]) -> RuntimeRecord {
    RuntimeRecord {
        path: Some(path.to_owned()),
        found_by: Some("loader".to_owned()),
        version: Some(version.to_owned()),
        provides: provides.iter().map(ToString::to_string).collect(),
        ..record(RuntimeName::Onnxruntime, RuntimeState::Ready)
    }
}

fn broken(name: RuntimeName, path: &str, reason: &str) -> RuntimeRecord {
    RuntimeRecord {
        path: Some(path.to_owned()),
        found_by: Some("loader".to_owned()),
        reason: Some(reason.to_owned()),
        ..record(name, RuntimeState::Broken)
    }
}

fn pointed_at(by: &str, record: RuntimeRecord) -> RuntimeRecord {
    RuntimeRecord { found_by: Some(by.to_owned()), ..record }
}

fn found(runtimes: Vec<RuntimeRecord>) -> Found {
    Found { runtimes, ..Found::default() }
}

fn on_gpu(runtimes: Vec<RuntimeRecord>) -> Found {
    Found { gpus: vec![GpuRecord::default()], ..found(runtimes) }
}

fn library(found: &Found, backend: BackendName) -> String {
    choose(found, backend).unwrap().unwrap().library.display().to_string()
}

fn refusal(found: &Found, backend: BackendName) -> String {
    choose(found, backend).unwrap_err()
}

#[test]
fn the_embedded_engine_needs_nothing() {
    assert_eq!(choose(&Found::default(), BackendName::Rten), Ok(None));
}

#[test]
fn the_first_copy_with_the_provider_is_used() {
    let mut found = found(vec![
        broken(RuntimeName::Onnxruntime, "/a", "a text file, not a library"),
        ready("/b", "1.31.1", &["CPU"]),
        ready("/c", "1.23.2", &["CUDA", "CPU"]),
    ]);
    found.gpus.push(GpuRecord::default());
    let spec = RuntimeSpec::new("/b", "1.31.1");
    assert_eq!(choose(&found, BackendName::OrtCpu), Ok(Some(spec)));
    assert_eq!(library(&found, BackendName::OrtCuda), "/c");
}

#[test]
fn what_is_missing_is_named_with_the_way_to_get_it() {
    let nothing = on_gpu(vec![record(RuntimeName::Onnxruntime, RuntimeState::Missing)]);
    assert_eq!(
        refusal(&nothing, BackendName::OrtCuda),
        "ort-cuda: no ONNX Runtime here; run `prony runtime install onnxruntime-gpu`"
    );
    assert_eq!(
        refusal(&nothing, BackendName::OrtCpu),
        "ort-cpu: no ONNX Runtime here; run `prony runtime install onnxruntime`"
    );
    assert_eq!(
        refusal(&nothing, BackendName::Openvino),
        "openvino: no OpenVINO here; run `prony runtime install openvino`"
    );
}

#[test]
fn a_provider_that_is_not_in_the_build_is_named() {
    let found = on_gpu(vec![ready("/b", "1.31.1", &["CPU"])]);
    assert_eq!(
        refusal(&found, BackendName::OrtCuda),
        "ort-cuda: provider CUDA is not in this build: /b (1.31.1) has CPU; run `prony runtime install onnxruntime-gpu`"
    );
}

#[test]
fn a_provider_that_cannot_be_opened_is_named_with_what_it_lacks() {
    let entry = "CUDA (libcublasLt.so.12: cannot open shared object file)";
    let copy = ready("/c", "1.23.2", &[entry, "CPU"]);
    let absent = ready("/b", "1.31.1", &["CPU"]);
    let both = on_gpu(vec![absent, copy]);
    assert_eq!(
        refusal(&both, BackendName::OrtCuda),
        "ort-cuda: /c: libonnxruntime_providers_cuda.so cannot be opened: libcublasLt.so.12: cannot open shared object \
         file; install the libraries of CUDA 12, or add their folder to LD_LIBRARY_PATH"
    );
    assert_eq!(library(&both, BackendName::OrtCpu), "/b");
    let alone = "Tensorrt (libonnxruntime_providers_tensorrt.so is not beside it)";
    let refusal = refusal(&on_gpu(vec![ready("/c", "1.23.2", &[alone, "CPU"])]), BackendName::OrtTensorrt);
    assert!(
        refusal.starts_with("ort-tensorrt: /c: libonnxruntime_providers_tensorrt.so is not beside it; "),
        "{refusal}"
    );
}

#[test]
fn without_a_gpu_a_package_was_advised() {
    let lacking = ready("/c", "1.23.2", &["CUDA (libcublasLt.so.12: cannot open shared object file)", "CPU"]);
    let without_provider = ready("/b", "1.31.1", &["CPU"]);
    for backend in [BackendName::OrtCuda, BackendName::OrtTensorrt, BackendName::Tensorrt, BackendName::Trtexec] {
        for copies in [vec![], vec![lacking.clone()], vec![without_provider.clone()]] {
            let refusal = refusal(&found(copies), backend);
            assert!(refusal.starts_with(&format!("{backend}: no NVIDIA GPU here")), "{refusal}");
            assert!(!refusal.contains("install"), "{refusal}");
        }
    }
    let undriven = Found { has_nvidia_device: true, ..found(vec![lacking]) };
    let refusal = refusal(&undriven, BackendName::OrtCuda);
    assert!(refusal.contains("there is an NVIDIA GPU, but libcuda.so.1 was not found; install the"), "{refusal}");
}

#[test]
fn a_broken_copy_gives_its_reason() {
    let mut copy = broken(RuntimeName::Onnxruntime, "/a", "built for aarch64, this machine is x86_64");
    copy.remedy = Some("remove it".to_owned());
    assert_eq!(
        refusal(&found(vec![copy]), BackendName::OrtCpu),
        "ort-cpu: /a: built for aarch64, this machine is x86_64; remove it"
    );
}

#[test]
fn what_someone_pointed_at_is_not_replaced_in_silence() {
    let copies = vec![
        pointed_at("PRONY_ONNXRUNTIME", broken(RuntimeName::Onnxruntime, "/a", "does not exist")),
        pointed_at("ORT_DYLIB_PATH", ready("/other", "1.30.0", &["CPU"])),
        ready("/b", "1.31.1", &["CUDA", "CPU"]),
    ];
    let mut found = found(copies);
    found.gpus.push(GpuRecord::default());
    assert_eq!(refusal(&found, BackendName::OrtCpu), "ort-cpu: /a: does not exist");
    found.runtimes[0] = pointed_at("PRONY_ONNXRUNTIME", ready("/a", "1.20.0", &["CPU"]));
    assert_eq!(library(&found, BackendName::OrtCpu), "/a");
    let refusal = refusal(&found, BackendName::OrtCuda);
    assert!(refusal.contains("provider CUDA is not in this build: /a (1.20.0) has CPU"), "{refusal}");
}

#[test]
fn a_provider_without_a_gpu_is_refused() {
    let copy = ready("/c", "1.23.2", &["Tensorrt", "CUDA", "CPU"]);
    let no_driver = found(vec![copy.clone(), record(RuntimeName::Cuda, RuntimeState::Missing)]);
    let text = refusal(&no_driver, BackendName::OrtCuda);
    assert!(text.starts_with("ort-cuda: no NVIDIA GPU here (and no driver: libcuda.so.1 was not found)"), "{text}");
    let reason = "cuInit failed: 100 CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected";
    let no_device = found(vec![copy, broken(RuntimeName::Cuda, "/lib/libcuda.so.1", reason)]);
    let text = refusal(&no_device, BackendName::OrtTensorrt);
    assert!(text.starts_with(&format!("ort-tensorrt: no NVIDIA GPU: /lib/libcuda.so.1: {reason}; ")), "{text}");
    assert_eq!(library(&no_device, BackendName::OrtCpu), "/c");
    let hidden = found(vec![record(RuntimeName::Cuda, RuntimeState::Ready)]);
    let text = refusal(&hidden, BackendName::Tensorrt);
    assert!(text.contains("libcuda.so.1 sees none; see whether CUDA_VISIBLE_DEVICES hides it"), "{text}");
}

fn tensorrt(name: RuntimeName, path: &str, version: &str) -> RuntimeRecord {
    RuntimeRecord { name, ..ready(path, version, &[]) }
}

#[test]
fn a_lean_tensorrt_stands_in_where_there_is_no_whole_one() {
    let lean = tensorrt(RuntimeName::NvinferLean, "/lean/libnvinfer_lean.so.10", "10.16.1");
    let whole = tensorrt(RuntimeName::Nvinfer, "/whole/libnvinfer.so.8", "8.6.0");
    let missing = record(RuntimeName::Nvinfer, RuntimeState::Missing);
    assert_eq!(library(&on_gpu(vec![whole.clone(), lean.clone()]), BackendName::Tensorrt), "/whole/libnvinfer.so.8");
    assert_eq!(library(&on_gpu(vec![missing, lean.clone()]), BackendName::Tensorrt), "/lean/libnvinfer_lean.so.10");
    let pointed = on_gpu(vec![whole, pointed_at("explicit", lean)]);
    assert_eq!(library(&pointed, BackendName::Tensorrt), "/lean/libnvinfer_lean.so.10");
}

#[test]
fn a_tensorrt_of_an_unknown_major_is_refused_by_name() {
    let old = tensorrt(RuntimeName::Nvinfer, "/old/libnvinfer.so.7", "7.2.3");
    let future = tensorrt(RuntimeName::Nvinfer, "/new/libnvinfer.so.12", "12.0.1");
    assert_eq!(
        refusal(&on_gpu(vec![old.clone()]), BackendName::Tensorrt),
        "tensorrt: /old/libnvinfer.so.7: TensorRT 7.2.3 is not known here; use 8.x from 8.2 on, 10.x or 11.x"
    );
    assert!(refusal(&on_gpu(vec![future.clone()]), BackendName::Tensorrt).contains("TensorRT 12.0.1 is not known"));
    let known = tensorrt(RuntimeName::Nvinfer, "/usr/lib/libnvinfer.so.10", "10.3.0");
    assert_eq!(library(&on_gpu(vec![old, future, known]), BackendName::Tensorrt), "/usr/lib/libnvinfer.so.10");
}

#[test]
fn a_tensorrt_that_is_not_there_is_named_with_the_way_to_get_it() {
    let refusal = refusal(&on_gpu(vec![record(RuntimeName::Nvinfer, RuntimeState::Missing)]), BackendName::Tensorrt);
    assert!(refusal.starts_with("tensorrt: no TensorRT here; "), "{refusal}");
}

#[test]
fn what_is_not_here_is_told_with_what_helps_on_this_machine() {
    let missing = || vec![record(RuntimeName::Onnxruntime, RuntimeState::Missing)];
    let absent = crate::absent;
    assert_eq!(absent(&found(missing()), BackendName::OrtCuda), "no NVIDIA GPU", "no library would help");
    assert_eq!(absent(&found(missing()), BackendName::OrtCpu), "run `prony runtime install onnxruntime`");
    assert_eq!(absent(&on_gpu(missing()), BackendName::OrtCuda), "run `prony runtime install onnxruntime-gpu`");
    let cpu_only = on_gpu(vec![ready("/b", "1.31.1", &["CPU"])]);
    let reason = absent(&cpu_only, BackendName::OrtCuda);
    assert!(reason.starts_with("provider CUDA is not in this build: /b"), "{reason}");
    let no_device = "cuInit failed: 100 CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected";
    let driver = |reason| found(vec![broken(RuntimeName::Cuda, "/lib/libcuda.so.1", reason)]);
    assert_eq!(absent(&driver(no_device), BackendName::Tensorrt), "no NVIDIA GPU");
    let stub = absent(&driver("cuInit failed: 34 CUDA_ERROR_STUB_LIBRARY"), BackendName::Tensorrt);
    assert!(stub.starts_with("the NVIDIA driver does not work: cuInit failed: 34"), "{stub}");
}
