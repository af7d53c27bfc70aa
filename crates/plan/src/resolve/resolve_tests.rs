//! Plans on machines with this and without that.

use prony_types::{HeadChoice, Precision, SceneKind, SourceSpec};
use prony_work::Silent;

use super::*;
use crate::options::{BenchOptions, DeviceIndex, Seconds};

/// A plan on a machine, without a cache.
pub(super) fn resolve(options: BenchOptions, machine: &Machine<'_>) -> anyhow::Result<Resolved> {
    Request::new(options)?.open(None, &Silent)?.plan(machine)
}

fn nothing(name: BackendName) -> Result<Option<RuntimeSpec>, String> {
    if name == BackendName::Rten { Ok(None) } else { Err(format!("{name}: not here")) }
}

fn bare() -> Machine<'static> {
    Machine { runtime: &nothing, absent: &|_| "not here".to_owned(), gpus: 0, cpus: 2, mem_available_bytes: None }
}

fn full() -> Machine<'static> {
    Machine { runtime: &everything, gpus: 1, ..bare() }
}

fn everything(name: BackendName) -> Result<Option<RuntimeSpec>, String> {
    let library = RuntimeSpec::new("/lib/x.so", "1");
    Ok((name != BackendName::Rten).then_some(library))
}

fn on_bare(options: BenchOptions) -> anyhow::Result<Resolved> {
    resolve(options, &bare())
}

fn options(models: &[&str]) -> BenchOptions {
    BenchOptions { models: models.iter().map(|&m| m.into()).collect(), ..BenchOptions::default() }
}

fn ids(resolved: &Resolved) -> Vec<&str> {
    resolved.plan.cells.iter().map(|cell| cell.id.as_str()).collect()
}

#[test]
fn without_arguments_both_built_in_models_are_measured() {
    let resolved = on_bare(options(&[])).unwrap();
    assert_eq!(ids(&resolved), ["builtin-rgb:rten:fp32", "builtin-thermal:rten:fp32"]);
    assert_eq!(resolved.plan.cells[0].imgsz, Some([320, 320]));
    assert!(resolved.fates.is_empty());
}

#[test]
fn the_same_cell_twice_gets_a_number() {
    let resolved = on_bare(options(&["builtin-rgb", "builtin-rgb"])).unwrap();
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
    let cells = on_bare(asked).unwrap().plan.cells;
    assert_ne!(cells[0].slug(), cells[1].slug());
}

#[test]
fn a_flag_that_would_be_ignored_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let scene = prony_source::scenes::scene(SceneKind::Rgb, 1, 0);
    std::fs::write(dir.path().join("a.png"), prony_source::png::encode_png(&scene.image).unwrap()).unwrap();
    let none = || BenchOptions { head: Some(HeadChoice::None), ..options(&["builtin-rgb"]) };
    let with_images = BenchOptions { source: Some(dir.path().to_owned()), ..none() };
    assert!(on_bare(with_images).unwrap_err().to_string().contains("--source"));
    let with_conf = BenchOptions { conf: Some(0.5), ..none() };
    assert!(on_bare(with_conf).unwrap_err().to_string().contains("--conf"));
}

#[test]
fn a_precision_that_cannot_be_made_fails_that_cell_alone() {
    let asked = BenchOptions { precision: Some(vec![Precision::Fp32, Precision::Fp8]), ..options(&["builtin-rgb"]) };
    let resolved = on_bare(asked).unwrap();
    assert_eq!(ids(&resolved), ["builtin-rgb:rten:fp32", "builtin-rgb:rten:fp8"]);
    assert_eq!(resolved.fates.len(), 1);
    assert_eq!(resolved.fates["builtin-rgb:rten:fp8"].status, CellStatus::Failed);
}

#[test]
fn a_precision_that_the_file_does_not_bring_is_made() {
    let machine = full();
    let asked = |models: &[&str], precision| BenchOptions {
        backends: Some(["rten", "ort-cpu", "openvino", "tensorrt"].map(String::from).to_vec()),
        precision: Some(vec![precision]),
        ..options(models)
    };
    let rewrites =
        |resolved: &Resolved| -> Vec<bool> { resolved.plan.cells.iter().map(|cell| cell.rewrite.is_some()).collect() };
    let int8 = resolve(asked(&["builtin-rgb"], Precision::Int8), &machine).unwrap();
    assert_eq!(rewrites(&int8), [true, true, true, false], "TensorRT calibrates by itself");
    let calibration = int8.plan.cells[1].rewrite.as_ref().unwrap().calibration().unwrap();
    assert_eq!((&calibration.source, calibration.seed), (&SourceSpec::Scenes, 1007));
    let fp16 = resolve(asked(&["builtin-rgb"], Precision::Fp16), &machine).unwrap();
    assert_eq!(rewrites(&fp16), [false, true, false, false], "OpenVINO has it by a hint");
    assert!(fp16.fates["builtin-rgb:rten:fp16"].reason.starts_with("rten executes fp32 and int8 files"));
}

#[test]
fn int8_without_data_is_skipped_and_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.onnx");
    std::fs::write(&path, prony_model::builtin(SceneKind::Rgb)).unwrap();
    let asked = BenchOptions { precision: Some(vec![Precision::Int8]), ..options(&[path.to_str().unwrap()]) };
    let fate = on_bare(asked.clone()).unwrap().fates["mine:rten:int8"].clone();
    assert_eq!(fate.status, CellStatus::Skipped);
    assert!(fate.reason.starts_with("rten: int8 needs ranges: give --calib"), "{}", fate.reason);
    let with_data = BenchOptions { data: Some("scenes".into()), ..asked.clone() };
    assert!(on_bare(with_data).unwrap().fates.is_empty());
    let mut with_calib = asked;
    with_calib.engine.calibration = Some("scenes".into());
    assert!(on_bare(with_calib).unwrap().fates.is_empty());
}

#[test]
fn a_broken_model_beside_a_good_one_is_a_failed_cell() {
    let resolved = on_bare(options(&["/etc/passwd", "builtin-rgb"])).unwrap();
    assert!(resolved.fates["passwd:rten:fp32"].reason.contains("not an ONNX model"));
    let error = on_bare(options(&["/etc/passwd"])).unwrap_err();
    assert!(error.to_string().contains("not an ONNX model"), "{error}");
}

#[test]
fn absurd_values_are_refused_by_name() {
    let refused = |options: BenchOptions, flag: &str| {
        let error = format!("{:#}", on_bare(options).unwrap_err());
        assert!(error.contains(flag), "{error}");
    };
    refused(BenchOptions { conf: Some(1.5), ..options(&[]) }, "--conf");
    refused(BenchOptions { iou: Some(f32::NAN), ..options(&[]) }, "--iou");
    refused(BenchOptions { batch: Some(vec![0]), ..options(&[]) }, "--batch");
    refused(BenchOptions { threads: Some(0), ..options(&[]) }, "--threads");
    refused(BenchOptions { device: Some(DeviceIndex(1)), ..options(&[]) }, "--device 1 does not exist");
    refused(BenchOptions { samples: Some(0), ..options(&[]) }, "--samples");
    refused(BenchOptions { duration: Some(Seconds(0.0)), ..options(&[]) }, "--duration");
    refused(BenchOptions { name: Some("../up".into()), ..options(&[]) }, "--name");
    refused(BenchOptions { backends: Some(vec!["nosuch".into()]), ..options(&[]) }, "nosuch");
    refused(BenchOptions { source: Some("/nonexistent".into()), ..options(&[]) }, "/nonexistent");
}

#[test]
fn a_size_that_does_not_fit_the_file_is_bad_input() {
    let asked = BenchOptions { imgsz: Some("640".parse().unwrap()), ..options(&["builtin-rgb"]) };
    let error = on_bare(asked).unwrap_err().to_string();
    assert!(error.contains("fixed at 320x320") && error.contains("--imgsz 640"), "{error}");
}

#[test]
fn what_came_from_all_is_skipped_and_what_was_named_has_failed() {
    let all = BenchOptions { backends: Some(vec!["all".into()]), ..options(&["builtin-rgb"]) };
    let resolved = on_bare(all.clone()).unwrap();
    assert_eq!(resolved.plan.cells.len(), BackendName::ALL.len());
    assert!(resolved.fates.values().all(|fate| fate.status == CellStatus::Skipped));
    assert_eq!(resolved.fates["builtin-rgb:ort-cuda:fp32"].reason, "ort-cuda: not here");
    let named = BenchOptions { backends: Some(vec!["rten".into(), "ort-cuda".into()]), ..all };
    let resolved = on_bare(named).unwrap();
    assert_eq!(resolved.fates["builtin-rgb:ort-cuda:fp32"].status, CellStatus::Failed);
}

#[test]
fn a_named_precision_that_nothing_can_execute_has_failed_everywhere() {
    let asked = BenchOptions {
        backends: Some(vec!["all".into()]),
        precision: Some(vec![Precision::Fp32, Precision::Nvfp4]),
        ..options(&["builtin-rgb"])
    };
    let resolved = on_bare(asked).unwrap();
    let status = |id: &str| resolved.fates[id].status;
    assert_eq!(status("builtin-rgb:rten:nvfp4"), CellStatus::Failed);
    assert_eq!(status("builtin-rgb:ort-cpu:fp32"), CellStatus::Skipped, "rten does fp32");
}

#[test]
fn a_tier_expands_and_a_flag_beats_it() {
    let machine = Machine { mem_available_bytes: Some(64 << 30), ..full() };
    let quick = BenchOptions { tier: Some(crate::options::Tier::Quick), ..options(&["builtin-rgb"]) };
    let resolved = resolve(quick.clone(), &machine).unwrap();
    assert_eq!(resolved.plan.cells.len(), BackendName::ALL.len());
    assert_eq!(resolved.plan.budget.duration_s, Some(2.0));
    let longer = BenchOptions { duration: Some(Seconds(9.0)), precision: Some(vec![Precision::Native]), ..quick };
    let resolved = resolve(longer, &machine).unwrap();
    assert_eq!(resolved.plan.budget.duration_s, Some(9.0));
    assert!(resolved.plan.cells.iter().all(|cell| cell.precision == Precision::Native));
    assert_eq!(resolved.plan.reference.backend, BackendName::OrtCpu);
}

#[test]
fn batches_are_in_the_id_where_there_are_several() {
    let asked = BenchOptions { batch: Some(vec![1, 4]), ..options(&["builtin-rgb"]) };
    let resolved = on_bare(asked).unwrap();
    assert_eq!(ids(&resolved), ["builtin-rgb:rten:fp32@b1", "builtin-rgb:rten:fp32@b4"]);
    assert!(resolved.fates.is_empty(), "the built-in models take any batch");
}
