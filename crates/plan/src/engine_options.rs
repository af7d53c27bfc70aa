//! Options of an engine, as flags and as keys of a plan file's `[engine]`: what `prony build` and `prony bench` share.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::ensure;
use clap::Args;
use prony_backend::precision_of;
use prony_source::ending::is_video_name;
use prony_types::{
    BackendName, CalibrationMethod, CalibrationSpec, EngineSpec, HalfSpec, ModelInfo, Precision, ProfileShape,
    QuantiseFor, QuantiseSpec, RewriteSpec, SourceSpec, TacticSources,
};
use serde::{Deserialize, Deserializer};

use crate::images::{is_tensors, meant};
use crate::values::{Seconds, Size};

/// Frames that ranges are found on, unless told otherwise: more change little, and each costs time.
pub const CALIBRATION_FRAMES: u32 = 128;

/// How an engine is to be built. Everything is optional; what is not said is TensorRT's own choice.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct EngineArgs {
    /// Scratch memory of the builder and of the engine, e.g. 1GB [default: half of --gpu-mem-limit, else no limit]
    #[arg(long, value_name = "SIZE", help_heading = "Engine")]
    pub workspace: Option<Size>,

    /// Device memory that kernels may take while they are timed
    #[arg(long, value_name = "SIZE", help_heading = "Engine")]
    pub tactic_memory: Option<Size>,

    /// How hard to look for fast kernels: 0, quick to build, to 5
    #[arg(long, value_name = "0-5", value_parser = clap::value_parser!(u8).range(0..=5), help_heading = "Engine")]
    pub opt_level: Option<u8>,

    /// Libraries that kernels may come from: default, or none but TensorRT itself
    #[arg(long, value_name = "default|none", help_heading = "Engine")]
    pub tactic_sources: Option<TacticSources>,

    /// Shapes of an input with free axes, e.g. images=1x3x320x320:1x3x640x640:4x3x640x640; may be repeated
    #[arg(long, value_name = "NAME=MIN:OPT:MAX", help_heading = "Engine")]
    pub profile: Vec<Profile>,

    /// Build for this deep-learning accelerator; what it cannot do falls to the GPU
    #[arg(long, value_name = "N", help_heading = "Engine")]
    pub dla_core: Option<u32>,

    /// Runs under later versions of TensorRT too, its lean runtime inside
    #[arg(long, help_heading = "Engine")]
    pub version_compatible: bool,

    /// Runs on other GPUs from Ampere on, perhaps more slowly
    #[arg(long, help_heading = "Engine")]
    pub hardware_compatible: bool,

    /// Weights can be replaced later
    #[arg(long, help_heading = "Engine")]
    pub refit: bool,

    /// Structured sparsity of the weights may be used
    #[arg(long, help_heading = "Engine")]
    pub sparse: bool,

    /// Small pools, level 0, no external kernels, lazy loading: for boards with little memory
    #[arg(long, help_heading = "Engine")]
    pub low_memory: bool,

    /// End a build that takes longer than this [default: 60m]
    #[arg(long, value_name = "TIME", help_heading = "Engine")]
    pub build_timeout: Option<Seconds>,

    /// A plugin library of your own; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Engine")]
    pub plugin: Vec<PathBuf>,

    /// What int8 ranges are found on: scenes, a folder of images or a data set, or an .npz with arrays named as the inputs
    /// [default: scenes for a built-in model]
    #[arg(long, visible_alias = "calib", value_name = "scenes|DIR|x.npz", help_heading = "Calibration")]
    #[serde(alias = "calib")]
    pub calibration: Option<PathBuf>,

    /// How many frames of it [default: 128]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Calibration")]
    pub calibration_frames: Option<u32>,

    /// How ranges are found: minmax, percentile, entropy or mse; TensorRT's own way is entropy or minmax
    /// [default: entropy for TensorRT, mse elsewhere]
    #[arg(long, value_name = "METHOD", help_heading = "Calibration")]
    pub calibration_method: Option<CalibrationMethod>,

    /// Seed of the scenes; not that of a measurement, so that nothing is measured on what it was calibrated with
    /// [default: 1007]
    #[arg(long, value_name = "N", help_heading = "Calibration")]
    pub calibration_seed: Option<u64>,
}

/// How ranges of a rewritten graph are found, unless told otherwise: see `docs/measurements.md`.
pub const REWRITE_METHOD: CalibrationMethod = CalibrationMethod::Mse;

/// Seed of calibration scenes.
pub const CALIBRATION_SEED: u64 = 1007;

impl EngineArgs {
    /// Paths of a plan file are relative to it.
    pub fn anchor(&mut self, base: &Path) {
        self.plugin.iter_mut().for_each(|path| *path = base.join(&*path));
        self.calibration.iter_mut().filter(|path| path.as_os_str() != "scenes").for_each(|path| {
            *path = base.join(&*path);
        });
    }

    /// These options, with gaps filled from a file.
    pub fn or(self, file: EngineArgs) -> EngineArgs {
        let several = |own: Vec<_>, file: Vec<_>| if own.is_empty() { file } else { own };
        EngineArgs {
            workspace: self.workspace.or(file.workspace),
            tactic_memory: self.tactic_memory.or(file.tactic_memory),
            opt_level: self.opt_level.or(file.opt_level),
            tactic_sources: self.tactic_sources.or(file.tactic_sources),
            profile: if self.profile.is_empty() { file.profile } else { self.profile },
            dla_core: self.dla_core.or(file.dla_core),
            version_compatible: self.version_compatible || file.version_compatible,
            hardware_compatible: self.hardware_compatible || file.hardware_compatible,
            refit: self.refit || file.refit,
            sparse: self.sparse || file.sparse,
            low_memory: self.low_memory || file.low_memory,
            build_timeout: self.build_timeout.or(file.build_timeout),
            plugin: several(self.plugin, file.plugin),
            calibration: self.calibration.or(file.calibration),
            calibration_frames: self.calibration_frames.or(file.calibration_frames),
            calibration_method: self.calibration_method.or(file.calibration_method),
            calibration_seed: self.calibration_seed.or(file.calibration_seed),
        }
    }

    /// The first flag that was given and that only engines have. Ranges are found for graphs too.
    pub fn engine_flag(&self) -> Option<&'static str> {
        let given = [
            (self.workspace.is_some(), "--workspace"),
            (self.tactic_memory.is_some(), "--tactic-memory"),
            (self.opt_level.is_some(), "--opt-level"),
            (self.tactic_sources.is_some(), "--tactic-sources"),
            (!self.profile.is_empty(), "--profile"),
            (self.dla_core.is_some(), "--dla-core"),
            (self.version_compatible, "--version-compatible"),
            (self.hardware_compatible, "--hardware-compatible"),
            (self.refit, "--refit"),
            (self.sparse, "--sparse"),
            (self.low_memory, "--low-memory"),
            (self.build_timeout.is_some(), "--build-timeout"),
            (!self.plugin.is_empty(), "--plugin"),
        ];
        given.into_iter().find_map(|(given, flag)| given.then_some(flag))
    }

    /// The first flag that was given at all.
    pub fn given_flag(&self) -> Option<&'static str> {
        self.engine_flag().or(self.says_calibration().then_some("--calibration"))
    }

    fn says_calibration(&self) -> bool {
        self.calibration.is_some()
            || self.calibration_frames.is_some()
            || self.calibration_method.is_some()
            || self.calibration_seed.is_some()
    }

    /// Flags that no engine of these precisions would read are refused, and so are files that are not there.
    pub fn check(&self, precisions: &[Precision]) -> anyhow::Result<()> {
        let calibrated = precisions.contains(&Precision::Int8);
        ensure!(
            !self.says_calibration() || calibrated,
            "--calibration is for int8; add it to --precision or leave the flag out"
        );
        if let Some(level) = self.opt_level {
            ensure!(level <= 5, "--opt-level {level} must lie between 0 and 5");
        }
        if let Some(limit) = self.build_timeout {
            ensure!(limit.0 >= 1.0, "--build-timeout {} s must be at least 1 s", limit.0);
        }
        for plugin in &self.plugin {
            ensure!(plugin.is_file(), "--plugin {} is not a file", plugin.display());
        }
        if let Some(path) = self.calibration.as_deref().filter(|path| path.as_os_str() != "scenes") {
            let there = path.exists() || is_video_name(path);
            ensure!(there, "--calibration {} is not there; give scenes, a folder or an .npz", path.display());
        }
        Ok(())
    }

    /// Replaces a folder to calibrate on by the one in it that holds the images; a note where that is another.
    pub fn find_images(&mut self) -> anyhow::Result<Option<String>> {
        let Some(named) = &self.calibration else { return Ok(None) };
        let (found, note) = meant("--calibration", named)?;
        self.calibration = Some(found);
        Ok(note)
    }

    /// The engine of a precision. `scenes` says whether built-in scenes are what the model was made for, so that they may be
    /// calibrated on without being asked for.
    pub fn spec(&self, precision: Precision, scenes: bool) -> anyhow::Result<EngineSpec> {
        let calibration = if precision == Precision::Int8 { self.calibration(scenes)? } else { None };
        Ok(EngineSpec {
            profile: self.profile.iter().map(|profile| profile.0.clone()).collect(),
            workspace_bytes: self.workspace.map(|size| size.0),
            tactic_memory_bytes: self.tactic_memory.map(|size| size.0),
            level: self.opt_level,
            tactic_sources: self.tactic_sources.unwrap_or(TacticSources::Default),
            dla_core: self.dla_core,
            version_compatible: self.version_compatible,
            hardware_compatible: self.hardware_compatible,
            refit: self.refit,
            sparse: self.sparse,
            low_memory: self.low_memory,
            calibration,
            ..EngineSpec::new(precision)
        })
    }

    /// Longest time that a build may take, where it was given.
    pub fn build_timeout_s(&self) -> Option<u64> {
        self.build_timeout.map(|limit| limit.0.ceil() as u64)
    }

    /// How a graph is brought to a precision by being rewritten. `images` are what ranges may be found on where nothing else
    /// was named; `None` where int8 has nothing at all to find them on.
    pub fn rewrite(
        &self,
        precision: Precision,
        backend: BackendName,
        scenes: bool,
        images: Option<&Path>,
    ) -> anyhow::Result<Option<RewriteSpec>> {
        if precision != Precision::Int8 {
            return Ok(Some(RewriteSpec::Half(HalfSpec::new(precision))));
        }
        let own = EngineArgs { calibration: self.calibration.clone().or(images.map(Path::to_owned)), ..self.clone() };
        let method = self.calibration_method.unwrap_or(REWRITE_METHOD);
        let calibration = own.calibration(scenes)?.map(|calibration| CalibrationSpec { method, ..calibration });
        let target = patterns_of(backend);
        let quantise = |calibration| QuantiseSpec { calibration, per_channel: true, exclude: Vec::new(), target };
        Ok(calibration.map(|calibration| RewriteSpec::Int8(quantise(calibration))))
    }

    fn calibration(&self, scenes: bool) -> anyhow::Result<Option<CalibrationSpec>> {
        let source = match self.calibration.as_deref() {
            Some(path) => calibration_source(path)?,
            None if scenes => SourceSpec::Scenes,
            None => return Ok(None),
        };
        Ok(Some(CalibrationSpec {
            method: self.calibration_method.unwrap_or(CalibrationMethod::Entropy),
            source,
            frames: self.calibration_frames.unwrap_or(CALIBRATION_FRAMES),
            seed: self.calibration_seed.unwrap_or(CALIBRATION_SEED),
        }))
    }
}

/// Decides what a model and the limit of device memory decide about its engine; a note where that is not what was asked for.
/// Whoever builds it decides none of this again.
pub fn decide_engine(engine: &mut EngineSpec, info: &ModelInfo, gpu_mem_limit_bytes: Option<u64>) -> Option<String> {
    // Weights, activations and what the builder times need the other half.
    engine.workspace_bytes = engine.workspace_bytes.or(gpu_mem_limit_bytes.map(|limit| limit / 2));
    let brings_ranges = precision_of(info) == Precision::Int8 && engine.calibration.take().is_some();
    brings_ranges.then(|| "the graph brings its own int8 ranges, so nothing is calibrated".to_owned())
}

/// What ranges are found on, as it was typed: scenes, arrays or a folder.
pub fn calibration_source(path: &Path) -> std::io::Result<SourceSpec> {
    if path.as_os_str() == "scenes" {
        return Ok(SourceSpec::Scenes);
    }
    let arrays = is_tensors(path);
    let path = std::path::absolute(path)?;
    Ok(if arrays { SourceSpec::Tensor(path) } else { SourceSpec::Dir(path) })
}

/// The patterns that a backend has kernels for.
const fn patterns_of(backend: BackendName) -> QuantiseFor {
    match backend {
        BackendName::OrtCpu => QuantiseFor::Onnxruntime,
        BackendName::Openvino | BackendName::OrtOpenvino => QuantiseFor::Openvino,
        BackendName::Tensorrt | BackendName::Trtexec | BackendName::OrtTensorrt => QuantiseFor::Tensorrt,
        BackendName::Rten | BackendName::OrtCuda => QuantiseFor::Any,
    }
}

/// Shapes of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile(pub ProfileShape);

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Profile, String> {
        let wrong = || format!("`{text}` is not NAME=MIN:OPT:MAX, like images=1x3x320x320:1x3x640x640:4x3x640x640");
        // A name may hold a colon and even an equals sign; shapes hold neither.
        let (input, shapes) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
        let shape = |text: &str| text.split('x').map(|n| n.trim().parse::<u64>().map_err(|_| wrong())).collect();
        let shapes: Vec<Vec<u64>> = shapes.split(':').map(shape).collect::<Result<_, String>>()?;
        match <[Vec<u64>; 3]>::try_from(shapes) {
            Ok([min, opt, max]) => Ok(Profile(ProfileShape { input: input.to_owned(), min, opt, max })),
            Err(_) => Err(wrong()),
        }
    }
}

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Profile, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_three_shapes() {
        let Profile(shape) = "images=1x3x320x320:1x3x640x640:4x3x640x640".parse().unwrap();
        assert_eq!((shape.input.as_str(), &shape.max[..]), ("images", &[4, 3, 640, 640][..]));
        for bad in ["images", "images=1x3", "=1:1:1", "x=1:2:y", "x=1:2:3:4"] {
            let error = bad.parse::<Profile>().unwrap_err();
            assert!(error.contains("is not NAME=MIN:OPT:MAX"), "{error}");
        }
    }

    #[test]
    fn a_plan_file_says_the_same_as_flags() {
        let text =
            "workspace = '1GB'\nopt-level = 2\nprofile = ['x=1x3:2x3:4x3']\ncalibration = 'photos'\nrefit = true";
        let mut file: EngineArgs = toml::from_str(text).unwrap();
        file.anchor(Path::new("/plans"));
        let flags = EngineArgs { opt_level: Some(0), sparse: true, ..EngineArgs::default() };
        let spec = flags.or(file).spec(Precision::Int8, false).unwrap();
        assert_eq!((spec.level, spec.workspace_bytes, spec.refit, spec.sparse), (Some(0), Some(1 << 30), true, true));
        assert_eq!(spec.profile[0].opt, [2, 3]);
        assert_eq!(spec.calibration.unwrap().source, SourceSpec::Dir("/plans/photos".into()));
        assert!(toml::from_str::<EngineArgs>("works = 1").unwrap_err().to_string().contains("works"));
    }

    #[test]
    fn only_int8_is_calibrated_and_only_on_what_is_known() {
        let plain = EngineArgs::default();
        assert_eq!(plain.engine_flag(), None);
        assert_eq!(plain.spec(Precision::Fp16, true).unwrap().calibration, None);
        assert_eq!(plain.spec(Precision::Int8, false).unwrap().calibration, None);
        let scenes = plain.spec(Precision::Int8, true).unwrap().calibration.unwrap();
        assert_eq!(
            (scenes.source, scenes.frames, scenes.method),
            (SourceSpec::Scenes, 128, CalibrationMethod::Entropy)
        );
        let arrays = EngineArgs { calibration: Some("/x.npz".into()), ..EngineArgs::default() };
        assert_eq!(arrays.engine_flag(), None);
        let source = arrays.spec(Precision::Int8, true).unwrap().calibration.unwrap().source;
        assert_eq!(source, SourceSpec::Tensor("/x.npz".into()));
    }

    #[test]
    fn a_flag_that_nothing_reads_is_refused() {
        let method = EngineArgs { calibration_frames: Some(8), ..EngineArgs::default() };
        let error = method.check(&[Precision::Fp16]).unwrap_err().to_string();
        assert_eq!(error, "--calibration is for int8; add it to --precision or leave the flag out");
        assert!(method.check(&[Precision::Fp16, Precision::Int8]).is_ok());
        let plugin = EngineArgs { plugin: vec!["/no/such.so".into()], ..EngineArgs::default() };
        assert_eq!(plugin.check(&[]).unwrap_err().to_string(), "--plugin /no/such.so is not a file");
        let hasty = EngineArgs { build_timeout: Some(Seconds(0.5)), ..EngineArgs::default() };
        assert_eq!(hasty.engine_flag(), Some("--build-timeout"));
        assert_eq!(hasty.check(&[]).unwrap_err().to_string(), "--build-timeout 0.5 s must be at least 1 s");
        let photos = EngineArgs { calibration: Some("/no/such".into()), ..EngineArgs::default() };
        assert!(
            photos
                .check(&[Precision::Int8])
                .unwrap_err()
                .to_string()
                .starts_with("--calibration /no/such is not there")
        );
    }
}
