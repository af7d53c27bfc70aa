//! What each provider is told, as the pairs of words that ONNX Runtime takes. Pure, so that it can be tested where the
//! provider cannot run.

use prony_types::{ArenaGrowth, BackendName, Precision, ProviderSpec, TensorSpec};

/// Name and value of an option.
pub(super) type Pair = (&'static str, String);

fn switch(on: bool) -> String {
    if on { "1".into() } else { "0".into() }
}

/// For the CUDA provider. ONNX Runtime allows TF32 in fp32 unless told otherwise; here fp32 is fp32.
/// Versions before 1.18 do not know the word, and refuse a word that they do not know; there the driver is told.
pub(super) fn cuda(device: u32, precision: Precision, spec: &ProviderSpec, version: &str) -> Vec<Pair> {
    let mut pairs = vec![("device_id", device.to_string())];
    if !version.starts_with("1.17.") {
        pairs.push(("use_tf32", switch(precision == Precision::Tf32)));
    }
    if let Some(bytes) = spec.gpu_mem_limit_bytes {
        pairs.push(("gpu_mem_limit", bytes.to_string()));
    }
    if let Some(arena) = spec.arena {
        let word = match arena {
            ArenaGrowth::PowerOfTwo => "kNextPowerOfTwo",
            ArenaGrowth::AsRequested => "kSameAsRequested",
        };
        pairs.push(("arena_extend_strategy", word.into()));
    }
    pairs
}

/// For the TensorRT provider. Paths of caches turn the caches on.
pub(super) fn tensorrt(
    device: u32,
    precision: Precision,
    spec: &ProviderSpec,
    inputs: &[TensorSpec],
    free_axes: bool,
) -> Vec<Pair> {
    let mut pairs = vec![
        ("device_id", device.to_string()),
        ("trt_fp16_enable", switch(precision == Precision::Fp16)),
        ("trt_bf16_enable", switch(precision == Precision::Bf16)),
        ("trt_int8_enable", switch(precision == Precision::Int8)),
    ];
    if precision != Precision::Bf16 {
        // Older providers do not know the word, and refuse a word that they do not know.
        pairs.retain(|(name, _)| *name != "trt_bf16_enable");
    }
    if let Some(bytes) = spec.trt_workspace_bytes.or(spec.gpu_mem_limit_bytes) {
        pairs.push(("trt_max_workspace_size", bytes.to_string()));
    }
    if let Some(folder) = &spec.trt_engine_cache {
        pairs.push(("trt_engine_cache_enable", switch(true)));
        pairs.push(("trt_engine_cache_path", folder.display().to_string()));
    }
    if let Some(folder) = &spec.trt_timing_cache {
        pairs.push(("trt_timing_cache_enable", switch(true)));
        pairs.push(("trt_timing_cache_path", folder.display().to_string()));
    }
    if let Some(table) = &spec.trt_int8_table {
        pairs.push(("trt_int8_calibration_table_name", table.display().to_string()));
        pairs.push(("trt_int8_use_native_calibration_table", switch(false)));
    }
    let names = ["trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes"];
    match &spec.trt_profile {
        Some(shapes) => pairs.extend(names.into_iter().zip(shapes.iter().cloned())),
        // One shape is run, so one shape is built for.
        None if free_axes => pairs.extend(names.into_iter().map(|name| (name, profile(inputs)))),
        None => {}
    }
    pairs
}

/// Shapes in TensorRT's spelling: `images:1x3x640x640,size:1x2`.
fn profile(inputs: &[TensorSpec]) -> String {
    let shape = |input: &TensorSpec| {
        let dims: Vec<String> = input.shape.iter().map(ToString::to_string).collect();
        format!("{}:{}", input.name, dims.join("x"))
    };
    inputs.iter().map(shape).collect::<Vec<_>>().join(",")
}

/// For the OpenVINO provider.
pub(super) fn openvino(threads: u32, precision: Precision, spec: &ProviderSpec) -> Vec<Pair> {
    let device = spec.openvino_device.clone().unwrap_or_else(|| "CPU".into());
    let mut pairs = vec![("device_type", device.clone())];
    let word = match precision {
        Precision::Fp16 => Some("FP16"),
        Precision::Fp32 => Some("FP32"),
        _ => None,
    };
    pairs.extend(word.map(|word| ("precision", word.to_owned())));
    if device == "CPU" {
        pairs.push(("num_of_threads", threads.to_string()));
    }
    pairs
}

/// The name that ONNX Runtime gives a backend's provider, without its suffix.
pub(super) const fn provider(backend: BackendName) -> &'static str {
    match backend {
        BackendName::OrtCuda => "CUDA",
        BackendName::OrtTensorrt => "Tensorrt",
        BackendName::OrtOpenvino => "OpenVINO",
        _ => "CPU",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prony_types::DType;

    fn get<'a>(pairs: &'a [Pair], name: &str) -> Option<&'a str> {
        pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    fn image() -> Vec<TensorSpec> {
        vec![TensorSpec { name: "images".into(), dtype: DType::F32, shape: vec![1, 3, 640, 640] }]
    }

    #[test]
    fn fp32_is_without_tf32() {
        let spec = ProviderSpec::default();
        assert_eq!(get(&cuda(0, Precision::Fp32, &spec, "1.31.1"), "use_tf32"), Some("0"));
        assert_eq!(get(&cuda(0, Precision::Tf32, &spec, "1.31.1"), "use_tf32"), Some("1"));
        assert_eq!(get(&cuda(0, Precision::Fp32, &spec, "1.17.3"), "use_tf32"), None);
    }

    #[test]
    fn memory_limit_and_arena_reach_cuda() {
        let spec = ProviderSpec {
            gpu_mem_limit_bytes: Some(4 << 30),
            arena: Some(ArenaGrowth::AsRequested),
            ..ProviderSpec::default()
        };
        let pairs = cuda(1, Precision::Fp32, &spec, "1.31.1");
        assert_eq!(get(&pairs, "device_id"), Some("1"));
        assert_eq!(get(&pairs, "gpu_mem_limit"), Some("4294967296"));
        assert_eq!(get(&pairs, "arena_extend_strategy"), Some("kSameAsRequested"));
    }

    #[test]
    fn tensorrt_is_told_precision_caches_and_workspace() {
        let spec = ProviderSpec {
            trt_workspace_bytes: Some(1 << 30),
            trt_engine_cache: Some("/tmp/engines".into()),
            trt_timing_cache: Some("/tmp/timing".into()),
            trt_int8_table: Some("calib.flatbuffers".into()),
            ..ProviderSpec::default()
        };
        let pairs = tensorrt(0, Precision::Int8, &spec, &image(), false);
        assert_eq!(get(&pairs, "trt_int8_enable"), Some("1"));
        assert_eq!(get(&pairs, "trt_fp16_enable"), Some("0"));
        assert_eq!(get(&pairs, "trt_bf16_enable"), None);
        assert_eq!(get(&pairs, "trt_max_workspace_size"), Some("1073741824"));
        assert_eq!(get(&pairs, "trt_engine_cache_enable"), Some("1"));
        assert_eq!(get(&pairs, "trt_engine_cache_path"), Some("/tmp/engines"));
        assert_eq!(get(&pairs, "trt_timing_cache_path"), Some("/tmp/timing"));
        assert_eq!(get(&pairs, "trt_int8_calibration_table_name"), Some("calib.flatbuffers"));
        assert_eq!(get(&pairs, "trt_profile_min_shapes"), None);
        assert_eq!(get(&tensorrt(0, Precision::Fp16, &spec, &image(), false), "trt_fp16_enable"), Some("1"));
    }

    #[test]
    fn a_profile_is_the_users_or_the_one_shape_that_is_run() {
        let pairs = tensorrt(0, Precision::Fp32, &ProviderSpec::default(), &image(), true);
        assert_eq!(get(&pairs, "trt_profile_opt_shapes"), Some("images:1x3x640x640"));
        let shapes = ["images:1x3x320x320", "images:1x3x640x640", "images:4x3x640x640"].map(String::from);
        let spec = ProviderSpec { trt_profile: Some(shapes), ..ProviderSpec::default() };
        let pairs = tensorrt(0, Precision::Fp32, &spec, &image(), true);
        assert_eq!(get(&pairs, "trt_profile_min_shapes"), Some("images:1x3x320x320"));
        assert_eq!(get(&pairs, "trt_profile_max_shapes"), Some("images:4x3x640x640"));
    }

    #[test]
    fn openvino_gets_its_device_and_threads() {
        let pairs = openvino(2, Precision::Fp32, &ProviderSpec::default());
        assert_eq!((get(&pairs, "device_type"), get(&pairs, "num_of_threads")), (Some("CPU"), Some("2")));
        let spec = ProviderSpec { openvino_device: Some("GPU.0".into()), ..ProviderSpec::default() };
        let pairs = openvino(2, Precision::Fp16, &spec);
        assert_eq!((get(&pairs, "precision"), get(&pairs, "num_of_threads")), (Some("FP16"), None));
    }
}
