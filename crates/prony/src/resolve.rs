//! From options to a plan in which everything is decided. What is wrong is said here, before anything runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use prony_backend::backend;
use prony_model::{ModelFile, sha256_hex};
use prony_source::folder;
use prony_types::{
    BackendName, BudgetSpec, CellSpec, CellStatus, Dim, HeadChoice, InputSpec, ModelInfo, ModelSource, ModelSpec, Plan,
    PostSpec, Precision, ProviderSpec, SceneKind, SourceSpec,
};

use crate::options::{BenchOptions, Seconds};

/// Without `--duration`, a cell is given up at this many measured seconds.
const LIMIT_S: f64 = 20.0;
/// Distinct frames kept resident, so that caches and NMS see real variety.
const FRAMES: u32 = 32;

const NO_IMAGES: &str =
    "a model that is not a detector takes no --source; give its tensors with --input x.npz, or nothing for random ones";

/// A plan, and what is already known about cells that will not run.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) plan: Plan,
    /// By cell id: why it is skipped or failed without being tried.
    pub(crate) fates: BTreeMap<String, Fate>,
    pub(crate) out: PathBuf,
    pub(crate) redact: bool,
}

/// The end of a cell that never began.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fate {
    pub(crate) status: CellStatus,
    pub(crate) reason: String,
}

/// Decides everything.
pub(crate) fn resolve(options: BenchOptions) -> anyhow::Result<Resolved> {
    let post = PostSpec {
        conf: share("--conf", options.conf.unwrap_or(0.25))?,
        iou: share("--iou", options.iou.unwrap_or(0.45))?,
        max_det: within("--max-det", options.max_det.unwrap_or(300), 1, 100_000)?,
    };
    let batch = within("--batch", options.batch.unwrap_or(1), 1, 1024)?;
    let threads = options.threads.map(|n| within("--threads", n, 1, 1024)).transpose()?;
    let budget = budget(&options)?;
    let (backends, backends_named) = backends(options.backends.as_deref())?;
    let precisions = options.precision.clone().unwrap_or_else(|| vec![Precision::Fp32]);
    let named = backends_named || options.precision.is_some();
    let device = options.device.unwrap_or(0);
    ensure!(!precisions.is_empty(), "--precision is empty");
    let name = options.name.clone().unwrap_or_else(|| "bench".to_owned());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    ensure!(
        !name.is_empty() && name.len() <= 64 && name.chars().all(plain) && !name.starts_with('.'),
        "--name `{name}` must be 1 to 64 letters, digits, `-`, `_` or `.`"
    );
    let input = InputSpec { source: source(&options)?, seed: options.seed.unwrap_or(7), frames: FRAMES };
    let head = match options.head {
        None if matches!(input.source, SourceSpec::Tensor(_)) => HeadChoice::None,
        Some(head) if head != HeadChoice::None && matches!(input.source, SourceSpec::Tensor(_)) => {
            bail!("--input is for models that are not detectors; it does not go with --head {head}")
        }
        head => head.unwrap_or(HeadChoice::Auto),
    };
    if head == HeadChoice::None {
        let boxes = [
            ("--conf", options.conf.is_some()),
            ("--iou", options.iou.is_some()),
            ("--max-det", options.max_det.is_some()),
        ];
        if let Some((flag, _)) = boxes.into_iter().find(|&(_, given)| given) {
            bail!("{flag} is about boxes; it does not go with a model that has no head");
        }
        ensure!(!matches!(input.source, SourceSpec::Dir(_)), "{NO_IMAGES}");
    }

    let mut names = options.models;
    if names.is_empty() {
        names = SceneKind::ALL.iter().map(|kind| format!("builtin-{kind}")).collect();
    }
    let mut cells = Vec::new();
    let mut fates = Vec::new();
    let mut broken = Vec::new();
    for name in &names {
        let model = model(name);
        if let Err(error) = &model {
            broken.push(format!("{error:#}"));
        }
        for &backend_name in &backends {
            for &precision in &precisions {
                let (spec, fate) = match &model {
                    Ok((spec, info)) => {
                        let head = classifier_has_no_head(head, info);
                        let imgsz = match (&input.source, head) {
                            (SourceSpec::Dir(_), HeadChoice::None) => Err(NO_IMAGES.to_owned()),
                            _ => fits(backend_name, device, batch, info)
                                .and_then(|()| image_size(&options.imgsz.map(|size| size.0), head, info)),
                        };
                        let able = backend(backend_name).supports(precision, info);
                        let fate = match (&imgsz, able) {
                            (Err(reason), _) => {
                                broken.push(format!("{}: {reason}", spec.name));
                                Some(Fate { status: CellStatus::Failed, reason: reason.clone() })
                            }
                            (_, Err(reason)) if named => Some(Fate { status: CellStatus::Failed, reason }),
                            (_, Err(reason)) => Some(Fate { status: CellStatus::Skipped, reason }),
                            (Ok(_), Ok(())) => None,
                        };
                        ((spec.clone(), head, imgsz.ok().flatten()), fate)
                    }
                    Err(error) => {
                        let source = ModelSource::File(PathBuf::from(name));
                        let spec = ModelSpec { name: stem(Path::new(name)), source, sha256: String::new() };
                        let fate = Fate { status: CellStatus::Failed, reason: format!("{error:#}") };
                        ((spec, head, None), Some(fate))
                    }
                };
                let (model, head, imgsz) = spec;
                let id = format!("{}:{backend_name}:{precision}", model.name);
                cells.push(CellSpec {
                    id,
                    model,
                    backend: backend_name,
                    precision,
                    imgsz,
                    head,
                    batch,
                    device,
                    threads,
                    runtime: None,
                    provider: ProviderSpec::default(),
                    named,
                });
                fates.push(fate);
            }
        }
    }
    // A model that cannot be read is bad input when there is nothing else to measure.
    if let Some(first) = broken.first()
        && fates.iter().all(Option::is_some)
    {
        bail!("{first}");
    }
    make_ids_unique(&mut cells);
    let fates = cells.iter().zip(fates).filter_map(|(cell, fate)| Some((cell.id.clone(), fate?))).collect();
    let plan = Plan { name, cells, input, post, budget, reference: None, strict: options.strict };
    Ok(Resolved { plan, fates, out: options.out.unwrap_or_else(|| "runs".into()), redact: options.redact })
}

fn within<T: PartialOrd + Copy + std::fmt::Display>(flag: &str, value: T, low: T, high: T) -> anyhow::Result<T> {
    ensure!(low <= value && value <= high, "{flag} {value} must lie between {low} and {high}");
    Ok(value)
}

fn share(flag: &str, value: f32) -> anyhow::Result<f32> {
    ensure!((0.0..=1.0).contains(&value), "{flag} {value} must lie between 0 and 1");
    Ok(value)
}

fn budget(options: &BenchOptions) -> anyhow::Result<BudgetSpec> {
    let at_least = |flag: &str, value: Option<Seconds>, low: f64| -> anyhow::Result<Option<f64>> {
        value.map(|s| within(flag, s.0, low, 86_400.0).with_context(|| format!("{flag} is in seconds"))).transpose()
    };
    Ok(BudgetSpec {
        warmup_s: options.warmup.map(|s| s.0),
        duration_s: at_least("--duration", options.duration, 0.1)?,
        samples: options.samples.map(|n| within("--samples", n, 1, 100_000_000)).transpose()?,
        limit_s: LIMIT_S,
        timeout_s: at_least("--timeout", options.timeout, 1.0)?.unwrap_or(120.0),
    })
}

/// The backends, and whether they were named one by one.
fn backends(list: Option<&[String]>) -> anyhow::Result<(Vec<BackendName>, bool)> {
    match list {
        None => Ok((vec![BackendName::Rten], false)),
        Some([all]) if all == "all" => Ok((BackendName::ALL.to_vec(), false)),
        Some(names) => {
            let mut found = Vec::new();
            for name in names {
                let backend: BackendName = name.trim().parse().map_err(|e| anyhow::anyhow!("{e}, all"))?;
                if !found.contains(&backend) {
                    found.push(backend);
                }
            }
            ensure!(!found.is_empty(), "--backends is empty");
            Ok((found, true))
        }
    }
}

/// Where frames come from; a folder is looked into now, so that an empty one is found before anything runs.
fn source(options: &BenchOptions) -> anyhow::Result<SourceSpec> {
    if let Some(path) = &options.input {
        let known = path.extension().is_some_and(|e| e == "npy" || e == "npz");
        ensure!(known, "--input {} must end in .npy or .npz", path.display());
        std::fs::metadata(path).with_context(|| format!("cannot read --input {}", path.display()))?;
        return Ok(SourceSpec::Tensor(std::path::absolute(path)?));
    }
    match &options.source {
        None => Ok(SourceSpec::Scenes),
        Some(word) if word.as_os_str() == "scenes" => Ok(SourceSpec::Scenes),
        Some(dir) => {
            let files = folder::images(dir)?;
            let mut last = None;
            let readable = files.iter().any(|path| folder::load(path).map_err(|e| last = Some(e)).is_ok());
            if !readable && let Some(error) = last {
                bail!("none of the {} images in {} can be read; the last one: {error}", files.len(), dir.display());
            }
            Ok(SourceSpec::Dir(std::path::absolute(dir)?))
        }
    }
}

fn model(name: &str) -> anyhow::Result<(ModelSpec, ModelInfo)> {
    let builtin = name.strip_prefix("builtin-").filter(|_| !Path::new(name).exists());
    let source = match builtin {
        Some(kind) => ModelSource::Builtin(kind.parse().map_err(|_| {
            anyhow::anyhow!("there is no model `{name}`; built in are builtin-rgb and builtin-thermal")
        })?),
        None => ModelSource::File(std::path::absolute(name)?),
    };
    let file = ModelFile::open(&source)?;
    let name = match &source {
        ModelSource::Builtin(kind) => format!("builtin-{kind}"),
        ModelSource::File(path) => stem(path),
    };
    Ok((ModelSpec { name, source, sha256: file.sha256 }, file.info))
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "model".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// A classifier that says so is timed as it is; anything else is looked at when its outputs are there.
fn classifier_has_no_head(asked: HeadChoice, info: &ModelInfo) -> HeadChoice {
    let classifier = info.metadata.task.as_deref() == Some("classify");
    if asked == HeadChoice::Auto && classifier { HeadChoice::None } else { asked }
}

/// Whether device and batch are there at all.
fn fits(name: BackendName, device: u32, batch: u32, info: &ModelInfo) -> Result<(), String> {
    let devices = 1;
    if device >= devices {
        let plural = if devices == 1 { "device, number 0" } else { "devices, numbered from 0" };
        return Err(format!("--device {device} is not there: {name} has {devices} {plural}"));
    }
    match info.inputs[0].dims[..] {
        [Dim::Fixed(n), _, _, _] if n != u64::from(batch) => {
            Err(format!("its batch is fixed at {n}, so --batch {batch} does not fit; use --batch {n}"))
        }
        _ => Ok(()),
    }
}

/// Height and width of a detector's input: asked for, fixed by the file, or what its exporter wrote; else 640.
fn image_size(asked: &Option<[u32; 2]>, head: HeadChoice, info: &ModelInfo) -> Result<Option<[u32; 2]>, String> {
    let dims = match &info.inputs[0].dims[..] {
        [_, _, height, width] => [height, width],
        _ if head == HeadChoice::None => return Ok(None),
        _ => {
            return Err(format!(
                "takes {}, not one image [N,3,H,W]; use --head none to time it as it is",
                info.inputs[0]
            ));
        }
    };
    let fixed = dims.map(|dim| match dim {
        Dim::Fixed(n) => u32::try_from(*n).ok(),
        Dim::Named(_) => None,
    });
    let default = info.metadata.imgsz.unwrap_or([640, 640]);
    let mut size = [0; 2];
    for axis in 0..2 {
        size[axis] = match (asked.map(|size| size[axis]), fixed[axis]) {
            (Some(asked), Some(fixed)) if asked != fixed => {
                return Err(format!(
                    "its input is fixed at {}x{}, so --imgsz {asked} does not fit; leave it out or export the model anew",
                    dims[0], dims[1]
                ));
            }
            (_, Some(fixed)) => fixed,
            (Some(asked), None) => asked,
            (None, None) => default[axis],
        };
    }
    Ok(Some(size))
}

/// Where two cells would share an id, a short hash of the spec tells them apart; where even that is the same, a number.
fn make_ids_unique(cells: &mut [CellSpec]) {
    let counts = |cells: &[CellSpec]| {
        cells.iter().fold(BTreeMap::<String, u32>::new(), |mut counts, cell| {
            *counts.entry(cell.id.clone()).or_default() += 1;
            counts
        })
    };
    let specs_differ = |cells: &[CellSpec], id: &str| {
        let mut same = cells.iter().filter(|cell| cell.id == id);
        let first = same.next();
        same.any(|cell| Some(cell) != first)
    };
    for (id, _) in counts(cells).into_iter().filter(|&(_, n)| n > 1) {
        if specs_differ(cells, &id) {
            for cell in cells.iter_mut().filter(|cell| cell.id == id) {
                let spec = serde_json::to_vec(cell).unwrap_or_default();
                cell.id = format!("{id}@{}", &sha256_hex(&spec)[..6]);
            }
        }
    }
    for (id, _) in counts(cells).into_iter().filter(|&(_, n)| n > 1) {
        for (nth, cell) in cells.iter_mut().filter(|cell| cell.id == id).enumerate().skip(1) {
            cell.id = format!("{id}#{}", nth + 1);
        }
    }
    // Two ids may still share a folder: `a+b` and `a_b`.
    let mut slugs = BTreeSet::new();
    for cell in cells {
        if !slugs.insert(cell.slug()) {
            cell.id = format!("{}@{}", cell.id, &sha256_hex(cell.id.as_bytes())[..6]);
            slugs.insert(cell.slug());
        }
    }
}

/// Why a cell of an earlier run cannot run now either, if so. A model that had a hash was read again just before.
pub(crate) fn fate_again(spec: &CellSpec, earlier: CellStatus) -> Option<Fate> {
    let status = if earlier == CellStatus::Skipped { CellStatus::Skipped } else { CellStatus::Failed };
    let reason = if spec.model.sha256.is_empty() {
        let unread = || "the model could not be read when the run began; start a new run".to_owned();
        ModelFile::open(&spec.model.source).map_or_else(|error| error.to_string(), |_| unread())
    } else {
        return None;
    };
    Some(Fate { status, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(models: &[&str]) -> BenchOptions {
        BenchOptions { models: models.iter().map(|&m| m.into()).collect(), ..BenchOptions::default() }
    }

    fn ids(resolved: &Resolved) -> Vec<&str> {
        resolved.plan.cells.iter().map(|cell| cell.id.as_str()).collect()
    }

    #[test]
    fn without_arguments_both_built_in_models_are_measured() {
        let resolved = resolve(options(&[])).unwrap();
        assert_eq!(ids(&resolved), ["builtin-rgb:rten:fp32", "builtin-thermal:rten:fp32"]);
        assert_eq!(resolved.plan.cells[0].imgsz, Some([320, 320]));
        assert!(resolved.fates.is_empty());
    }

    #[test]
    fn the_same_cell_twice_gets_a_number() {
        let resolved = resolve(options(&["builtin-rgb", "builtin-rgb"])).unwrap();
        assert_eq!(ids(&resolved), ["builtin-rgb:rten:fp32", "builtin-rgb:rten:fp32#2"]);
    }

    #[test]
    fn two_names_that_look_alike_do_not_share_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let model = |name: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, prony_model::builtin(SceneKind::Rgb)).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let asked = BenchOptions { models: vec![model("a+b.onnx"), model("a_b.onnx")], ..BenchOptions::default() };
        let cells = resolve(asked).unwrap().plan.cells;
        assert_ne!(cells[0].slug(), cells[1].slug());
    }

    #[test]
    fn a_flag_that_would_be_ignored_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let scene = prony_source::scenes::scene(SceneKind::Rgb, 1, 0);
        std::fs::write(dir.path().join("a.png"), prony_source::png::encode_png(&scene.image).unwrap()).unwrap();
        let none = || BenchOptions { head: Some(HeadChoice::None), ..options(&["builtin-rgb"]) };
        let with_images = BenchOptions { source: Some(dir.path().to_owned()), ..none() };
        assert!(resolve(with_images).unwrap_err().to_string().contains("--source"));
        let with_conf = BenchOptions { conf: Some(0.5), ..none() };
        assert!(resolve(with_conf).unwrap_err().to_string().contains("--conf"));
    }

    #[test]
    fn a_precision_that_cannot_be_made_fails_that_cell_alone() {
        let asked =
            BenchOptions { precision: Some(vec![Precision::Fp32, Precision::Int8]), ..options(&["builtin-rgb"]) };
        let resolved = resolve(asked).unwrap();
        assert_eq!(ids(&resolved), ["builtin-rgb:rten:fp32", "builtin-rgb:rten:int8"]);
        assert_eq!(resolved.fates.len(), 1);
        assert_eq!(resolved.fates["builtin-rgb:rten:int8"].status, CellStatus::Failed);
    }

    #[test]
    fn a_broken_model_beside_a_good_one_is_a_failed_cell() {
        let resolved = resolve(options(&["/etc/passwd", "builtin-rgb"])).unwrap();
        assert!(resolved.fates["passwd:rten:fp32"].reason.contains("not an ONNX model"));
        let error = resolve(options(&["/etc/passwd"])).unwrap_err();
        assert!(error.to_string().contains("not an ONNX model"), "{error}");
    }

    #[test]
    fn absurd_values_are_refused_by_name() {
        let refused = |options: BenchOptions, flag: &str| {
            let error = format!("{:#}", resolve(options).unwrap_err());
            assert!(error.contains(flag), "{error}");
        };
        refused(BenchOptions { conf: Some(1.5), ..options(&[]) }, "--conf");
        refused(BenchOptions { iou: Some(f32::NAN), ..options(&[]) }, "--iou");
        refused(BenchOptions { batch: Some(0), ..options(&[]) }, "--batch");
        refused(BenchOptions { threads: Some(0), ..options(&[]) }, "--threads");
        refused(BenchOptions { device: Some(1), ..options(&[]) }, "--device 1 is not there");
        refused(BenchOptions { samples: Some(0), ..options(&[]) }, "--samples");
        refused(BenchOptions { duration: Some(Seconds(0.0)), ..options(&[]) }, "--duration");
        refused(BenchOptions { name: Some("../up".into()), ..options(&[]) }, "--name");
        refused(BenchOptions { backends: Some(vec!["nosuch".into()]), ..options(&[]) }, "nosuch");
        refused(BenchOptions { source: Some("/nonexistent".into()), ..options(&[]) }, "/nonexistent");
    }

    #[test]
    fn a_size_that_does_not_fit_the_file_is_bad_input() {
        let asked = BenchOptions { imgsz: Some("640".parse().unwrap()), ..options(&["builtin-rgb"]) };
        let error = resolve(asked).unwrap_err().to_string();
        assert!(error.contains("fixed at 320x320") && error.contains("--imgsz 640"), "{error}");
    }
}
