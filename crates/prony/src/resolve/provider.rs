//! Flags about libraries, as the plan has them; one that nothing in the plan would read is refused.

use std::path::Path;

use anyhow::{bail, ensure};
use prony_model::sha256_file;
use prony_types::{BackendName, ProviderSpec};

use crate::options::BenchOptions;

const GIB: f64 = (1u64 << 30) as f64;

/// What providers are told.
/// TensorRT's caches lie in Prony's own unless told otherwise: without them it would build each engine twice.
pub(super) fn provider(
    options: &BenchOptions,
    backends: &[BackendName],
    cache: Option<&Path>,
) -> anyhow::Result<ProviderSpec> {
    use BackendName::{OrtCpu, OrtCuda, OrtOpenvino, OrtTensorrt, Tensorrt, Trtexec};
    let trt = options.trt_workspace.is_some()
        || options.trt_engine_cache.is_some()
        || options.trt_timing_cache.is_some()
        || options.trt_profile_min.is_some()
        || options.trt_int8_table.is_some();
    let gpu_limit = options.gpu_mem_limit.is_some() || options.gpu_mem_limit_gb.is_some();
    let readers: [(bool, &str, &[BackendName]); 8] = [
        (gpu_limit, "--gpu-mem-limit", &[OrtCuda, OrtTensorrt, Tensorrt]),
        (options.engine.is_about_engines(), "an option of engines", &[Tensorrt, Trtexec]),
        (options.force, "--force", &[Tensorrt]),
        (options.blocking_wait, "--blocking-wait", &[Tensorrt]),
        (options.cuda_arena.is_some(), "--cuda-arena", &[OrtCuda]),
        (trt, "--trt-*", &[OrtTensorrt]),
        (options.openvino_device.is_some(), "--openvino-device", &[BackendName::Openvino, OrtOpenvino]),
        (options.allow_fallback, "--allow-fallback", &[OrtCpu, OrtCuda, OrtTensorrt, OrtOpenvino, Tensorrt]),
    ];
    for (given, flag, readers) in readers {
        if given && !readers.iter().any(|reader| backends.contains(reader)) {
            let names: Vec<&str> = readers.iter().map(|reader| reader.name()).collect();
            bail!("{flag} is for {}; add it to --backends or leave the flag out", names.join(" and "));
        }
    }
    let from_gb = options.gpu_mem_limit_gb.map(|gb| {
        ensure!((0.001..=100_000.0).contains(&gb), "--gpu-mem-limit-gb {gb} must lie between 0.001 and 100000");
        Ok((gb * GIB) as u64)
    });
    let profile = [&options.trt_profile_min, &options.trt_profile_opt, &options.trt_profile_max];
    let trt_profile = match profile.map(Option::clone) {
        [Some(min), Some(opt), Some(max)] => Some([min, opt, max]),
        [None, None, None] => None,
        _ => bail!("a profile needs --trt-profile-min, --trt-profile-opt and --trt-profile-max"),
    };
    if let Some(table) = &options.trt_int8_table {
        ensure!(table.is_file(), "--trt-int8-table {} is not a file", table.display());
    }
    let own_cache = cache.filter(|_| backends.contains(&OrtTensorrt)).map(|cache| cache.join("tensorrt"));
    Ok(ProviderSpec {
        allow_fallback: options.allow_fallback,
        gpu_mem_limit_bytes: options.gpu_mem_limit.map(|size| size.0).or(from_gb.transpose()?),
        arena: options.cuda_arena,
        trt_workspace_bytes: options.trt_workspace.map(|size| size.0),
        trt_engine_cache: options.trt_engine_cache.clone().or_else(|| own_cache.clone()),
        trt_timing_cache: options.trt_timing_cache.clone().or(own_cache),
        trt_profile,
        trt_int8_table: options.trt_int8_table.clone(),
        trt_plugins: options.engine.plugin.iter().map(std::path::absolute).collect::<Result<_, _>>()?,
        // One that cannot be read is refused with the engine's other options.
        trt_plugin_sha256: options.engine.plugin.iter().map(|path| sha256_file(path).unwrap_or_default()).collect(),
        trt_build_timeout_s: options.engine.build_timeout_s(),
        force_engine: options.force,
        blocking_wait: options.blocking_wait,
        openvino_device: options.openvino_device.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Size;

    #[test]
    fn a_flag_without_its_backend_is_refused() {
        let options = BenchOptions { gpu_mem_limit: Some(Size(1 << 30)), ..BenchOptions::default() };
        let error = provider(&options, &[BackendName::Rten], None).unwrap_err().to_string();
        assert_eq!(
            error,
            "--gpu-mem-limit is for ort-cuda and ort-tensorrt and tensorrt; add it to --backends or leave the flag out"
        );
        let spec = provider(&options, &[BackendName::OrtCuda], None).unwrap();
        assert_eq!(spec.gpu_mem_limit_bytes, Some(1 << 30));
    }

    #[test]
    fn gigabytes_are_the_same_limit() {
        let options = BenchOptions { gpu_mem_limit_gb: Some(4.0), ..BenchOptions::default() };
        assert_eq!(provider(&options, &[BackendName::OrtCuda], None).unwrap().gpu_mem_limit_bytes, Some(4 << 30));
        let absurd = BenchOptions { gpu_mem_limit_gb: Some(-1.0), ..BenchOptions::default() };
        assert!(provider(&absurd, &[BackendName::OrtCuda], None).is_err());
    }

    #[test]
    fn tensorrt_keeps_its_caches_in_prony_s_own() {
        let (plain, cache) = (BenchOptions::default(), Some(Path::new("/home/x/cache")));
        let spec = provider(&plain, &[BackendName::OrtTensorrt], cache).unwrap();
        assert_eq!(spec.trt_engine_cache.as_deref(), Some(Path::new("/home/x/cache/tensorrt")));
        assert_eq!(provider(&plain, &[BackendName::OrtCuda], cache).unwrap().trt_engine_cache, None);
    }

    #[test]
    fn half_a_profile_is_none() {
        let options = BenchOptions { trt_profile_min: Some("x:1".into()), ..BenchOptions::default() };
        assert!(
            provider(&options, &[BackendName::OrtTensorrt], None)
                .unwrap_err()
                .to_string()
                .contains("--trt-profile-max")
        );
    }
}
