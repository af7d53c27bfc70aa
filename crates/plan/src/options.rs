//! Options of `prony bench`, as flags and as keys of a plan file: one list, so that the two cannot drift apart.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use prony_files::Kind;
use prony_types::os_text::{path_from_text, path_to_text, to_text};
use prony_types::{ArenaGrowth, HeadChoice, Precision, Resident, RuntimeName};
use serde::{Deserialize, Deserializer};

use crate::engine_options::EngineArgs;
use crate::gate_options::{self, GateLimit};
use crate::values::from_text_or_number;
pub use crate::values::{DeviceIndex, ImageSize, Seconds, Size};

/// Reads the value of a flag that is on or off.
pub fn yes_or_no(text: &str) -> Result<bool, &'static str> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("give yes or no"),
    }
}

/// Reads a word with a path in it, whose bytes need not be UTF-8, as [`prony_types::os_text`] writes it.
pub fn os_text() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|word| to_text(&word))
}

/// The same for a type that is read from such text.
pub fn os_value<T>() -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    OsStringValueParser::new().try_map(|word| to_text(&word).parse())
}

/// What a flag or a key may say. Everything is optional here; defaults are where the plan is resolved.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BenchOptions {
    /// Model files (.onnx, .pt; .engine, .plan or .trt), or builtin-rgb, builtin-thermal; both of these if none is given
    #[arg(value_name = "MODEL", value_parser = os_text())]
    pub models: Vec<String>,

    /// Backends, separated by commas; `auto`: those of tensorrt, ort-cuda, openvino and ort-cpu that are ready here, rten if
    /// none is; `all`: every backend, with the reason where one cannot run [default: auto]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Matrix")]
    pub backends: Option<Vec<String>>,

    /// Precisions, separated by commas [default: fp32; with `auto` fp16 and fp32 on NVIDIA GPUs, and a file that is not fp32 as
    /// it is]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Matrix")]
    pub precision: Option<Vec<Precision>>,

    /// A ready-made matrix of all backends: quick (fp32, 2 s or 64 samples per cell), core (fp32, fp16, int8), full (also tf32, bf16 and batches)
    #[arg(long, value_name = "quick|core|full", help_heading = "Matrix")]
    pub tier: Option<Tier>,

    /// Frames a call, separated by commas [default: 1]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Matrix")]
    #[serde(deserialize_with = "one_or_many")]
    pub batch: Option<Vec<u32>>,

    /// Index of the GPU, from 0; a CPU is chosen by its backend (--backends ort-cpu)
    #[arg(long, value_name = "N", help_heading = "Matrix")]
    pub device: Option<DeviceIndex>,

    /// CPU threads [default: one per physical core]
    #[arg(long, value_name = "N", help_heading = "Matrix")]
    pub threads: Option<u32>,

    /// `scenes`, or a folder of images or a data set [default: scenes]
    #[arg(long, value_name = "scenes|DIR", help_heading = "Input")]
    pub source: Option<PathBuf>,

    /// Tensors for a model that is not a detector (implies --head none)
    #[arg(long, value_name = "x.npy|x.npz", help_heading = "Input", conflicts_with = "source")]
    pub input: Option<PathBuf>,

    /// Network input, N or HxW [default: what the model says]
    #[arg(long, value_name = "N|HxW", help_heading = "Input")]
    pub imgsz: Option<ImageSize>,

    /// Distinct frames to keep resident [default: 32]
    #[arg(long, value_name = "N", help_heading = "Input")]
    pub frames: Option<u32>,

    /// Seed of built-in scenes, random tensors and slices of data [default: 7; 99 for scenes that are scored]
    #[arg(long, value_name = "N", help_heading = "Input")]
    pub seed: Option<u64>,

    /// Score every cell on this: `scenes`, a COCO instances*.json, an Ultralytics data.yaml, or a folder with one
    #[arg(long, value_name = "scenes|PATH", help_heading = "Accuracy")]
    pub data: Option<PathBuf>,

    /// Score on this many images, drawn by --seed [default: all of them; 500 built-in scenes]
    #[arg(long, value_name = "N", help_heading = "Accuracy")]
    pub limit: Option<u32>,

    /// Which part of the data: train, val, test, val2017 [default: val]
    #[arg(long, value_name = "NAME", help_heading = "Accuracy")]
    pub split: Option<String>,

    /// Score on the images that this file names, an id or a file name a line
    #[arg(long, value_name = "FILE", help_heading = "Accuracy")]
    pub ids: Option<PathBuf>,

    /// Where the images of a COCO file are, if not beside it
    #[arg(long, value_name = "DIR", help_heading = "Accuracy")]
    pub images: Option<PathBuf>,

    /// Only score, do not time; `prony eval` sets it.
    #[arg(skip)]
    #[serde(skip)]
    pub only_scored: bool,

    /// Lowest confidence that is kept [default: 0.25]
    #[arg(long, value_name = "X", help_heading = "Boxes")]
    pub conf: Option<f32>,

    /// Overlap above which the weaker box goes [default: 0.45]
    #[arg(long, value_name = "X", help_heading = "Boxes")]
    pub iou: Option<f32>,

    /// Most boxes an image [default: 300]
    #[arg(long, value_name = "N", help_heading = "Boxes")]
    pub max_det: Option<u32>,

    /// How outputs become boxes: auto, dense, objectness, dfl, end2end, efficient-nms, rtdetr, none [default: auto]
    #[arg(long, value_name = "HEAD", help_heading = "Boxes")]
    pub head: Option<HeadChoice>,

    /// Warm up this long [default: until steady]
    #[arg(long, value_name = "TIME", help_heading = "Budget")]
    pub warmup: Option<Seconds>,

    /// Measure each cell this long, without stopping early
    #[arg(long, value_name = "TIME", help_heading = "Budget")]
    pub duration: Option<Seconds>,

    /// Measure this many frames of each cell
    #[arg(long, value_name = "N", help_heading = "Budget")]
    pub samples: Option<u64>,

    /// Kill a worker that gives no sign of life for this long [default: 120s]
    #[arg(long, value_name = "TIME", help_heading = "Budget")]
    pub timeout: Option<Seconds>,

    /// Cells that are loaded at a time: `auto` loads as many as fit into memory. Only cells loaded together are timed in the same
    /// rounds and compared in pairs [default: auto]
    #[arg(long, value_name = "N|auto", help_heading = "Run")]
    pub resident: Option<Resident>,

    /// Hold outputs against this model's, in its own precision on the CPU [default: each model itself]
    #[arg(long, value_name = "MODEL", value_parser = os_text(), help_heading = "Run")]
    pub reference: Option<String>,

    /// A limit that must hold, or exit code 3 (4 if it could not be measured): map_min, map_drop_max, p99_max_ms,
    /// latency_ratio_max, memory_growth_max; may be repeated
    #[arg(long, value_name = "NAME=LIMIT", help_heading = "Gates")]
    #[serde(rename = "gates", deserialize_with = "gate_options::table")]
    pub gate: Vec<GateLimit>,

    /// Hold relative limits against the same cells of this run: its folder, or its report.json
    #[arg(long, value_name = "RUN", help_heading = "Gates")]
    pub baseline: Option<PathBuf>,

    /// Where run folders are made [default: runs]
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub out: Option<PathBuf>,

    /// Last part of the run folder's name [default: bench]
    #[arg(long, value_name = "NAME", help_heading = "Run")]
    pub name: Option<String>,

    /// Use this library or program, e.g. onnxruntime=/opt/ort/lib/libonnxruntime.so
    #[arg(long, value_name = "NAME=PATH", value_parser = os_value::<NamedLibrary>(), help_heading = "Runtimes")]
    pub library: Vec<NamedLibrary>,

    /// Folder of runtimes and caches [default: $PRONY_HOME, else the XDG data folder]
    #[arg(long, value_name = "DIR", help_heading = "Runtimes")]
    pub home: Option<PathBuf>,

    /// Measure also when nodes run elsewhere than asked; the verdict is then `fell-back`
    #[arg(long, help_heading = "Runtimes")]
    pub allow_fallback: bool,

    /// Most GPU memory that a cell may take, e.g. 4GB: tensorrt is refused more, ONNX Runtime's arena keeps to it
    #[arg(long, value_name = "SIZE", help_heading = "Runtimes")]
    pub gpu_mem_limit: Option<Size>,

    /// The same in gigabytes
    #[arg(long, value_name = "N", help_heading = "Runtimes", conflicts_with = "gpu_mem_limit")]
    pub gpu_mem_limit_gb: Option<f64>,

    /// How ort-cuda's arena grows: power-of-two or as-requested
    #[arg(long, value_name = "HOW", help_heading = "Runtimes")]
    pub cuda_arena: Option<ArenaGrowth>,

    /// Scratch memory of ort-tensorrt, e.g. 1GB
    #[arg(long, value_name = "SIZE", help_heading = "Runtimes")]
    pub trt_workspace: Option<Size>,

    /// Folder in which ort-tensorrt keeps its engines
    #[arg(long, value_name = "DIR", help_heading = "Runtimes")]
    pub trt_engine_cache: Option<PathBuf>,

    /// Folder in which ort-tensorrt keeps its timing cache
    #[arg(long, value_name = "DIR", help_heading = "Runtimes")]
    pub trt_timing_cache: Option<PathBuf>,

    /// Smallest shapes of ort-tensorrt's profile, e.g. images:1x3x320x320
    #[arg(long, value_name = "SHAPES", help_heading = "Runtimes", requires_all = ["trt_profile_opt", "trt_profile_max"])]
    pub trt_profile_min: Option<String>,

    /// Usual shapes of the profile
    #[arg(long, value_name = "SHAPES", help_heading = "Runtimes", requires = "trt_profile_min")]
    pub trt_profile_opt: Option<String>,

    /// Largest shapes of the profile
    #[arg(long, value_name = "SHAPES", help_heading = "Runtimes", requires = "trt_profile_min")]
    pub trt_profile_max: Option<String>,

    /// Calibration table for ort-tensorrt in int8
    #[arg(long, value_name = "FILE", help_heading = "Runtimes")]
    pub trt_int8_table: Option<PathBuf>,

    /// OpenVINO's device for openvino and ort-openvino, e.g. GPU.0 [default: CPU]
    #[arg(long, value_name = "NAME", help_heading = "Runtimes")]
    pub openvino_device: Option<String>,

    /// Try an engine although it was built for another GPU or another TensorRT
    #[arg(long, help_heading = "Runtimes")]
    pub force: bool,

    /// Sleep until the GPU is done instead of spinning: a core is free, and latency grows
    #[arg(long, help_heading = "Runtimes")]
    pub blocking_wait: bool,

    /// How engines are built.
    #[command(flatten)]
    pub engine: EngineArgs,

    /// Fail on skipped cells and on every verdict but `valid`
    #[arg(long, help_heading = "Run")]
    pub strict: bool,

    /// Leave host name, user name and paths out of everything that is written
    #[arg(long, help_heading = "Run")]
    pub redact: bool,
}

impl BenchOptions {
    /// Reads a plan file.
    pub fn read(path: &Path) -> anyhow::Result<BenchOptions> {
        let unreadable = || format!("cannot read plan {}", path.display());
        let text = prony_files::read_piped(path, Kind::Plan).with_context(unreadable)?;
        BenchOptions::parse(&text, path)
    }

    /// The options of a plan file's text. Paths in it are relative to the file.
    pub fn parse(text: &str, path: &Path) -> anyhow::Result<BenchOptions> {
        let mut options: BenchOptions = match toml::from_str(text) {
            Ok(options) => options,
            Err(error) => {
                let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
                let culprit = text.lines().nth(line - 1).unwrap_or_default().trim();
                bail!("{} line {line}: {} in `{culprit}`", path.display(), error.message().replace('\n', "; "));
            }
        };
        let base = path.parent().unwrap_or(Path::new(""));
        let anchor = |p: &mut PathBuf| *p = base.join(&*p);
        let anchor_model = |model: &mut String| *model = path_to_text(&base.join(path_from_text(model)));
        options.models.iter_mut().filter(|m| !m.starts_with("builtin-")).for_each(anchor_model);
        options.source.iter_mut().filter(|s| s.as_os_str() != "scenes").for_each(anchor);
        options.data.iter_mut().filter(|s| s.as_os_str() != "scenes").for_each(anchor);
        options.ids.iter_mut().for_each(anchor);
        options.images.iter_mut().for_each(anchor);
        options.input.iter_mut().for_each(anchor);
        options.out.iter_mut().for_each(anchor);
        options.baseline.iter_mut().for_each(anchor);
        options.home.iter_mut().for_each(anchor);
        options.library.iter_mut().map(|library| &mut library.path).for_each(anchor);
        options.trt_engine_cache.iter_mut().for_each(anchor);
        options.trt_timing_cache.iter_mut().for_each(anchor);
        options.trt_int8_table.iter_mut().for_each(anchor);
        options.engine.anchor(base);
        options.reference.iter_mut().filter(|m| !m.starts_with("builtin-")).for_each(anchor_model);
        Ok(options)
    }

    /// These options, with gaps filled from a file.
    pub fn or(self, file: BenchOptions) -> BenchOptions {
        // A source on the command line also beats an input in the file, and the other way round.
        let (input, source) = match (self.input, self.source) {
            (None, None) => (file.input, file.source),
            named => named,
        };
        let (gpu_mem_limit, gpu_mem_limit_gb) = match (self.gpu_mem_limit, self.gpu_mem_limit_gb) {
            (None, None) => (file.gpu_mem_limit, file.gpu_mem_limit_gb),
            named => named,
        };
        // Naming every field makes the compiler ask about a new one.
        BenchOptions {
            models: if self.models.is_empty() { file.models } else { self.models },
            backends: self.backends.or(file.backends),
            precision: self.precision.or(file.precision),
            tier: self.tier.or(file.tier),
            batch: self.batch.or(file.batch),
            device: self.device.or(file.device),
            threads: self.threads.or(file.threads),
            input,
            source,
            imgsz: self.imgsz.or(file.imgsz),
            frames: self.frames.or(file.frames),
            seed: self.seed.or(file.seed),
            data: self.data.or(file.data),
            limit: self.limit.or(file.limit),
            split: self.split.or(file.split),
            ids: self.ids.or(file.ids),
            images: self.images.or(file.images),
            only_scored: self.only_scored || file.only_scored,
            conf: self.conf.or(file.conf),
            iou: self.iou.or(file.iou),
            max_det: self.max_det.or(file.max_det),
            head: self.head.or(file.head),
            warmup: self.warmup.or(file.warmup),
            duration: self.duration.or(file.duration),
            samples: self.samples.or(file.samples),
            timeout: self.timeout.or(file.timeout),
            resident: self.resident.or(file.resident),
            gate: gate_options::merged(self.gate, file.gate),
            baseline: self.baseline.or(file.baseline),
            out: self.out.or(file.out),
            name: self.name.or(file.name),
            reference: self.reference.or(file.reference),
            library: if self.library.is_empty() { file.library } else { self.library },
            home: self.home.or(file.home),
            allow_fallback: self.allow_fallback || file.allow_fallback,
            gpu_mem_limit,
            gpu_mem_limit_gb,
            cuda_arena: self.cuda_arena.or(file.cuda_arena),
            trt_workspace: self.trt_workspace.or(file.trt_workspace),
            trt_engine_cache: self.trt_engine_cache.or(file.trt_engine_cache),
            trt_timing_cache: self.trt_timing_cache.or(file.trt_timing_cache),
            trt_profile_min: self.trt_profile_min.or(file.trt_profile_min),
            trt_profile_opt: self.trt_profile_opt.or(file.trt_profile_opt),
            trt_profile_max: self.trt_profile_max.or(file.trt_profile_max),
            trt_int8_table: self.trt_int8_table.or(file.trt_int8_table),
            openvino_device: self.openvino_device.or(file.openvino_device),
            force: self.force || file.force,
            blocking_wait: self.blocking_wait || file.blocking_wait,
            engine: self.engine.or(file.engine),
            strict: self.strict || file.strict,
            redact: self.redact || file.redact,
        }
    }
}

/// A ready-made matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// What is installed, in fp32, two seconds or 64 samples per cell, whichever is longer
    Quick,
    /// Also fp16 and int8, until the interval is narrow
    Core,
    /// Every precision, batches of 1, 4 and 8, up to a minute a cell
    Full,
}

/// What to know about more threads than there are CPUs for them.
pub fn too_many_threads(threads: Option<u32>, cpus: u32) -> Option<String> {
    let threads = threads.filter(|&threads| threads > cpus)?;
    let plural = if cpus == 1 { "CPU" } else { "CPUs" };
    Some(format!("--threads {threads} is more than the {cpus} {plural} that this process may use"))
}

/// Where a runtime is.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedLibrary {
    /// Which one.
    pub name: RuntimeName,
    /// Its file.
    pub path: PathBuf,
}

impl FromStr for NamedLibrary {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedLibrary, String> {
        let (name, path) = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=PATH"))?;
        let name = name.parse().map_err(|e: prony_types::UnknownName| e.to_string())?;
        if path.is_empty() {
            return Err(format!("`{text}` names no path"));
        }
        Ok(NamedLibrary { name, path: path_from_text(path) })
    }
}

impl<'de> Deserialize<'de> for NamedLibrary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NamedLibrary, D::Error> {
        from_text_or_number(deserializer)
    }
}

/// `batch = 4` and `batch = [1, 4]` are both fine.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u32>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a number or a list of numbers")]
    enum Raw {
        One(u32),
        Many(Vec<u32>),
    }
    Ok(Some(match Raw::deserialize(deserializer)? {
        Raw::One(n) => vec![n],
        Raw::Many(list) => list,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_are_seconds() {
        assert_eq!("10".parse(), Ok(Seconds(10.0)));
        assert_eq!("500ms".parse(), Ok(Seconds(0.5)));
        assert_eq!("2m".parse(), Ok(Seconds(120.0)));
        for bad in ["", "fast", "-1", "nan", "inf", "1e99"] {
            assert!(bad.parse::<Seconds>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_height_by_width() {
        assert_eq!("480x640".parse(), Ok(ImageSize([480, 640])));
        assert_eq!("320".parse(), Ok(ImageSize([320, 320])));
        for bad in ["0", "x", "640x", "-1", "99999"] {
            assert!(bad.parse::<ImageSize>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_of_memory_take_units() {
        assert_eq!("4GB".parse(), Ok(Size(4 << 30)));
        assert_eq!("512MiB".parse(), Ok(Size(512 << 20)));
        assert_eq!("1.5g".parse(), Ok(Size(3 << 29)));
        for bad in ["", "GB", "-1GB", "lots", "0", "4GBB", "4GIIB"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_library_is_a_known_name_and_a_path() {
        let library: NamedLibrary = "onnxruntime=/opt/libonnxruntime.so".parse().unwrap();
        assert_eq!((library.name, library.path), (RuntimeName::Onnxruntime, "/opt/libonnxruntime.so".into()));
        assert!("ort=/x".parse::<NamedLibrary>().unwrap_err().contains("known: onnxruntime"));
        assert!("onnxruntime".parse::<NamedLibrary>().is_err());
    }

    #[test]
    fn a_device_is_an_index_and_cpu_is_answered_with_what_chooses_one() {
        assert_eq!("1".parse(), Ok(DeviceIndex(1)));
        for word in ["cpu", "cuda:0", "-1", ""] {
            let error = word.parse::<DeviceIndex>().unwrap_err();
            assert!(error.contains("like 0 for the first GPU") && error.contains("with --backends"), "{error}");
        }
        let file: BenchOptions = toml::from_str("device = 1").unwrap();
        assert_eq!(file.device, Some(DeviceIndex(1)));
        assert!(toml::from_str::<BenchOptions>("device = 'cpu'").unwrap_err().message().contains("CPU backend"));
    }

    #[test]
    fn a_plan_takes_one_batch_or_several() {
        let one: BenchOptions = toml::from_str("batch = 4").unwrap();
        let many: BenchOptions = toml::from_str("batch = [1, 4]\ntier = 'quick'").unwrap();
        assert_eq!((one.batch, many.batch, many.tier), (Some(vec![4]), Some(vec![1, 4]), Some(Tier::Quick)));
    }

    #[test]
    fn an_unknown_key_is_an_error_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prony.toml");
        std::fs::write(&path, "duration = 5\nbackend = 'rten'\n").unwrap();
        let error = BenchOptions::read(&path).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("backend"), "{error}");
    }

    #[test]
    fn a_flag_beats_the_file_and_paths_are_relative_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prony.toml");
        std::fs::write(&path, "models = ['m.onnx', 'builtin-rgb']\nduration = '2s'\nimgsz = 640\nsource = 'photos'\n")
            .unwrap();
        let file = BenchOptions::read(&path).unwrap();
        let flags = BenchOptions { duration: Some(Seconds(9.0)), ..BenchOptions::default() };
        let merged = flags.or(file);
        assert_eq!(merged.duration, Some(Seconds(9.0)));
        assert_eq!(merged.imgsz, Some(ImageSize([640, 640])));
        assert_eq!(merged.source, Some(dir.path().join("photos")));
        assert_eq!(merged.models, [dir.path().join("m.onnx").to_string_lossy().into_owned(), "builtin-rgb".into()]);
    }
}
