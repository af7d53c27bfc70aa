//! Flags about libraries, as the plan has them; one that nothing in the plan would read is refused.

use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use prony_model::sha256_file;
use prony_types::{BackendName, ProviderSpec};

use super::selection::{grouped, listed};
use crate::options::BenchOptions;

const GIB: f64 = (1u64 << 30) as f64;

/// Refuses a flag that none of these backends would read. `absent` are backends that would be among them if they were ready.
pub(super) fn refuse_unread_flags(
    options: &BenchOptions,
    backends: &[BackendName],
    absent: &[(BackendName, String)],
) -> anyhow::Result<()> {
    use BackendName::{OrtCpu, OrtCuda, OrtOpenvino, OrtTensorrt, Tensorrt, Trtexec};
    let gpu_limit = options.gpu_mem_limit.is_some() || options.gpu_mem_limit_gb.is_some();
    let on = |given: bool, flag: &'static str| given.then_some(flag);
    let readers: [(Option<&str>, &[BackendName]); 8] = [
        (on(gpu_limit, "--gpu-mem-limit"), &[OrtCuda, OrtTensorrt, Tensorrt]),
        (options.engine.engine_flag(), &[Tensorrt, Trtexec]),
        (on(options.force, "--force"), &[Tensorrt]),
        (on(options.blocking_wait, "--blocking-wait"), &[Tensorrt]),
        (on(options.cuda_arena.is_some(), "--cuda-arena"), &[OrtCuda]),
        (provider_flag(options), &[OrtTensorrt]),
        (on(options.openvino_device.is_some(), "--openvino-device"), &[BackendName::Openvino, OrtOpenvino]),
        (on(options.allow_fallback, "--allow-fallback"), &[OrtCpu, OrtCuda, OrtTensorrt, OrtOpenvino, Tensorrt]),
    ];
    for (flag, readers) in readers {
        if let Some(flag) = flag
            && !readers.iter().any(|reader| backends.contains(reader))
        {
            bail!("{}", unread(flag, readers, absent));
        }
    }
    Ok(())
}

/// Refuses values that make no sense.
pub(super) fn check(options: &BenchOptions) -> anyhow::Result<()> {
    gpu_limit(options)?;
    profile(options)?;
    if let Some(table) = &options.trt_int8_table {
        ensure!(table.is_file(), "--trt-int8-table {} is not a file", table.display());
    }
    Ok(())
}

fn gpu_limit(options: &BenchOptions) -> anyhow::Result<Option<u64>> {
    let from_gb = options.gpu_mem_limit_gb.map(|gb| {
        ensure!((0.001..=100_000.0).contains(&gb), "--gpu-mem-limit-gb {gb} must lie between 0.001 and 100000");
        Ok((gb * GIB) as u64)
    });
    Ok(options.gpu_mem_limit.map(|size| size.0).or(from_gb.transpose()?))
}

fn profile(options: &BenchOptions) -> anyhow::Result<Option<[String; 3]>> {
    let profile = [&options.trt_profile_min, &options.trt_profile_opt, &options.trt_profile_max];
    Ok(match profile.map(Option::clone) {
        [Some(min), Some(opt), Some(max)] => Some([min, opt, max]),
        [None, None, None] => None,
        _ => bail!("a profile needs --trt-profile-min, --trt-profile-opt and --trt-profile-max"),
    })
}

fn plugin_sha256(path: &Path) -> anyhow::Result<String> {
    sha256_file(path).with_context(|| format!("--plugin {}", path.display()))
}

/// What providers are told.
pub(super) fn provider(options: &BenchOptions) -> anyhow::Result<ProviderSpec> {
    Ok(ProviderSpec {
        allow_fallback: options.allow_fallback,
        gpu_mem_limit_bytes: gpu_limit(options)?,
        arena: options.cuda_arena,
        trt_workspace_bytes: options.trt_workspace.map(|size| size.0),
        trt_engine_cache: options.trt_engine_cache.clone(),
        trt_timing_cache: options.trt_timing_cache.clone(),
        trt_profile: profile(options)?,
        trt_int8_table: options.trt_int8_table.clone(),
        trt_plugins: options.engine.plugin.iter().map(std::path::absolute).collect::<Result<_, _>>()?,
        trt_plugin_sha256: options.engine.plugin.iter().map(|path| plugin_sha256(path)).collect::<Result<_, _>>()?,
        trt_build_timeout_s: options.engine.build_timeout_s(),
        force_engine: options.force,
        blocking_wait: options.blocking_wait,
        openvino_device: options.openvino_device.clone(),
    })
}

/// TensorRT's caches lie in Prony's own unless told otherwise: without them it would build each engine twice.
pub(super) fn with_own_caches(
    mut provider: ProviderSpec,
    backends: &[BackendName],
    cache: Option<&Path>,
) -> ProviderSpec {
    let own = cache.filter(|_| backends.contains(&BackendName::OrtTensorrt)).map(|cache| cache.join("tensorrt"));
    provider.trt_engine_cache = provider.trt_engine_cache.or_else(|| own.clone());
    provider.trt_timing_cache = provider.trt_timing_cache.or(own);
    provider
}

/// The same for a cell of one model. ONNX Runtime names a cached engine after the names in its graph, not after its weights,
/// so models that differ only there must not share Prony's own folder.
pub(super) fn for_model(provider: &ProviderSpec, cache: Option<&Path>, model_sha256: &str) -> ProviderSpec {
    let mut own = provider.clone();
    if own.trt_engine_cache.is_some() && own.trt_engine_cache == cache.map(|cache| cache.join("tensorrt")) {
        own.trt_engine_cache.iter_mut().for_each(|folder| folder.push(model_sha256.get(..16).unwrap_or_default()));
    }
    own
}

/// The first flag that was given and that only ONNX Runtime's TensorRT provider reads.
fn provider_flag(options: &BenchOptions) -> Option<&'static str> {
    let given = [
        (options.trt_workspace.is_some(), "--trt-workspace"),
        (options.trt_engine_cache.is_some(), "--trt-engine-cache"),
        (options.trt_timing_cache.is_some(), "--trt-timing-cache"),
        (options.trt_profile_min.is_some(), "--trt-profile-min"),
        (options.trt_int8_table.is_some(), "--trt-int8-table"),
    ];
    given.into_iter().find_map(|(given, flag)| given.then_some(flag))
}

/// Why nothing reads a flag, and what to do about it. `absent` are backends that would be in the plan if they were ready.
fn unread(flag: &str, readers: &[BackendName], absent: &[(BackendName, String)]) -> String {
    let names: Vec<&str> = readers.iter().map(|reader| reader.name()).collect();
    let absent: Vec<_> = absent.iter().filter(|(backend, _)| readers.contains(backend)).cloned().collect();
    let names = listed(&names);
    match absent.is_empty() {
        true => format!("{flag} is for {names}; choose one with --backends, or leave the flag out"),
        false => format!("{flag} is for {names}; not here: {}; leave the flag out", grouped(&absent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Size;

    #[test]
    fn a_flag_without_its_backend_is_refused() {
        let options = BenchOptions { gpu_mem_limit: Some(Size(1 << 30)), ..BenchOptions::default() };
        let error = refuse_unread_flags(&options, &[BackendName::Rten], &[]).unwrap_err().to_string();
        assert_eq!(
            error,
            "--gpu-mem-limit is for ort-cuda, ort-tensorrt and tensorrt; choose one with --backends, or leave the flag out"
        );
        let spec = provider(&options).unwrap();
        assert_eq!(spec.gpu_mem_limit_bytes, Some(1 << 30));
    }

    #[test]
    fn a_flag_whose_backend_is_not_here_is_refused_with_the_reason() {
        let options = BenchOptions { gpu_mem_limit: Some(Size(1 << 30)), ..BenchOptions::default() };
        let no_gpu = |backend| (backend, "no NVIDIA GPU".to_owned());
        let absent = [no_gpu(BackendName::Tensorrt), no_gpu(BackendName::OrtCuda)];
        let error = refuse_unread_flags(&options, &[BackendName::OrtCpu], &absent).unwrap_err().to_string();
        assert_eq!(
            error,
            "--gpu-mem-limit is for ort-cuda, ort-tensorrt and tensorrt; not here: tensorrt and ort-cuda (no NVIDIA GPU); \
             leave the flag out"
        );
        let mut engine = BenchOptions::default();
        engine.engine.low_memory = true;
        let error = refuse_unread_flags(&engine, &[BackendName::OrtCpu], &absent).unwrap_err().to_string();
        assert!(error.starts_with("--low-memory is for tensorrt and trtexec; not here: tensorrt"), "{error}");
    }

    #[test]
    fn gigabytes_are_the_same_limit() {
        let options = BenchOptions { gpu_mem_limit_gb: Some(4.0), ..BenchOptions::default() };
        assert_eq!(provider(&options).unwrap().gpu_mem_limit_bytes, Some(4 << 30));
        let absurd = BenchOptions { gpu_mem_limit_gb: Some(-1.0), ..BenchOptions::default() };
        assert!(provider(&absurd).is_err());
    }

    #[test]
    fn tensorrt_keeps_its_caches_in_prony_s_own() {
        let (plain, cache) = (BenchOptions::default(), Some(Path::new("/home/x/cache")));
        let spec = with_own_caches(provider(&plain).unwrap(), &[BackendName::OrtTensorrt], cache);
        assert_eq!(spec.trt_engine_cache.as_deref(), Some(Path::new("/home/x/cache/tensorrt")));
        assert_eq!(with_own_caches(provider(&plain).unwrap(), &[BackendName::OrtCuda], cache).trt_engine_cache, None);
    }

    #[test]
    fn two_models_with_the_same_names_shared_an_engine() {
        let cache = Some(Path::new("/home/x/cache"));
        let of = |options: &BenchOptions, sha256: &str| {
            let spec = with_own_caches(provider(options).unwrap(), &[BackendName::OrtTensorrt], cache);
            for_model(&spec, cache, sha256).trt_engine_cache.unwrap()
        };
        let (one, other) = ("1".repeat(64), "2".repeat(64));
        let plain = BenchOptions::default();
        assert_eq!(of(&plain, &one), Path::new("/home/x/cache/tensorrt/1111111111111111"));
        assert_ne!(of(&plain, &one), of(&plain, &other));
        // A folder that the user names is the user's.
        let named = BenchOptions { trt_engine_cache: Some("/mine".into()), ..BenchOptions::default() };
        assert_eq!(of(&named, &one), Path::new("/mine"));
    }

    #[test]
    fn half_a_profile_is_none() {
        let options = BenchOptions { trt_profile_min: Some("x:1".into()), ..BenchOptions::default() };
        assert!(provider(&options).unwrap_err().to_string().contains("--trt-profile-max"));
    }
}
