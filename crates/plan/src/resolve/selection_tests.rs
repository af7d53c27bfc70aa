//! Machines with this and without that, and what is measured on them when nobody says.

use prony_types::{CellStatus, RuntimeSpec};

use super::super::Resolved;
use super::super::tests::resolve;
use super::*;
use crate::options::{DeviceIndex, NamedLibrary, Size};

/// A machine on which these backends are ready.
fn on(ready: &[BackendName], gpus: u32, options: BenchOptions) -> anyhow::Result<Resolved> {
    let runtime = |backend: BackendName| match backend {
        BackendName::Rten => Ok(None),
        backend if ready.contains(&backend) => {
            let mut spec = RuntimeSpec::new("/lib/x.so", "10.3.0");
            spec.companions.insert(RuntimeName::Nvonnxparser, "/lib/parser.so".into());
            Ok(Some(spec))
        }
        backend => Err(format!("{backend}: is not ready, at length")),
    };
    let absent = |backend: BackendName| match backend.on_gpu() && gpus == 0 {
        true => "no NVIDIA GPU".to_owned(),
        false => format!("install {backend}"),
    };
    let machine = Machine { runtime: &runtime, absent: &absent, gpus, cpus: 2, mem_available_bytes: None };
    resolve(options, &machine)
}

fn rgb() -> BenchOptions {
    BenchOptions { models: vec!["builtin-rgb".into()], ..BenchOptions::default() }
}

fn ids(resolved: &Resolved) -> Vec<&str> {
    resolved.plan.cells.iter().map(|cell| cell.id.strip_prefix("builtin-rgb:").unwrap_or(&cell.id)).collect()
}

const JETSON: [BackendName; 3] = [BackendName::Tensorrt, BackendName::OrtCuda, BackendName::OrtCpu];

#[test]
fn without_backends_a_jetson_measured_its_cpu_alone() {
    let resolved = on(&JETSON, 1, rgb()).unwrap();
    let expected = ["tensorrt:fp16", "tensorrt:fp32", "ort-cuda:fp16", "ort-cuda:fp32", "ort-cpu:fp32"];
    assert_eq!(ids(&resolved), expected);
    assert!(resolved.fates.is_empty() && resolved.plan.cells.iter().all(|cell| !cell.named));
    assert_eq!(resolved.plan.notes, ["not here: openvino (install openvino)"]);
    let by_word = BenchOptions { backends: Some(vec!["auto".into()]), ..rgb() };
    assert_eq!(ids(&on(&JETSON, 1, by_word).unwrap()), expected);
}

#[test]
fn a_machine_without_a_gpu_measures_every_cpu_library_in_fp32() {
    let resolved = on(&[BackendName::OrtCpu, BackendName::Openvino], 0, rgb()).unwrap();
    assert_eq!(ids(&resolved), ["openvino:fp32", "ort-cpu:fp32"]);
    assert_eq!(resolved.plan.notes, ["not here: tensorrt and ort-cuda (no NVIDIA GPU)"]);
}

#[test]
fn the_embedded_engine_is_measured_only_where_nothing_else_is() {
    let resolved = on(&[], 0, rgb()).unwrap();
    assert_eq!(ids(&resolved), ["rten:fp32"]);
    assert_eq!(
        resolved.plan.notes,
        [
            "measured on the embedded engine (rten), because nothing else is here: tensorrt and ort-cuda (no NVIDIA GPU); \
          openvino (install openvino); ort-cpu (install ort-cpu)"
        ]
    );
    let both = BenchOptions::default();
    assert_eq!(ids(&on(&[], 0, both).unwrap()), ["rten:fp32", "builtin-thermal:rten:fp32"]);
}

#[test]
fn auto_never_measures_a_library_twice() {
    let everything: Vec<BackendName> = BackendName::ALL.to_vec();
    let resolved = on(&everything, 1, rgb()).unwrap();
    let backends: Vec<BackendName> = resolved.plan.cells.iter().map(|cell| cell.backend).collect();
    for other in [BackendName::Trtexec, BackendName::OrtTensorrt, BackendName::OrtOpenvino, BackendName::Rten] {
        assert!(!backends.contains(&other), "{backends:?}");
    }
    assert_eq!(resolved.plan.notes, [""; 0]);
}

#[test]
fn precisions_that_are_given_are_those_of_every_backend() {
    let asked = BenchOptions { precision: Some(vec![Precision::Fp16]), ..rgb() };
    let resolved = on(&JETSON, 1, asked).unwrap();
    assert_eq!(ids(&resolved), ["tensorrt:fp16", "ort-cuda:fp16", "ort-cpu:fp16"]);
}

#[test]
fn a_file_that_is_not_in_fp32_is_measured_as_it_is() {
    let as_shipped = Precisions::AsShipped;
    let mut info = prony_model::ModelFile::builtin(prony_types::SceneKind::Rgb).unwrap().info;
    assert_eq!(as_shipped.of(BackendName::Tensorrt, Some(&info)), [Precision::Fp16, Precision::Fp32]);
    info.quantised = Some(Precision::Int8);
    for backend in [BackendName::Tensorrt, BackendName::OrtCpu, BackendName::Rten] {
        assert_eq!(as_shipped.of(backend, Some(&info)), [Precision::Int8]);
    }
}

#[test]
fn auto_stands_alone_and_all_lists_everything_with_reasons() {
    let with = |list: &[&str]| BenchOptions { backends: Some(list.iter().map(ToString::to_string).collect()), ..rgb() };
    let error = on(&[], 0, with(&["auto", "rten"])).unwrap_err().to_string();
    assert_eq!(error, "--backends auto must be given alone; leave the others out");
    let resolved = on(&[BackendName::OrtCpu], 0, with(&["all"])).unwrap();
    assert_eq!(resolved.plan.cells.len(), BackendName::ALL.len());
    assert_eq!(resolved.fates["builtin-rgb:openvino:fp32"].reason, "openvino: is not ready, at length");
    assert_eq!(resolved.plan.notes, [""; 0]);
}

#[test]
fn an_engine_goes_to_tensorrt_and_has_failed_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.engine");
    let mut bytes = vec![0x5a; 4096];
    bytes[..8].copy_from_slice(b"ftrt\0\0\0\0");
    bytes[16..24].copy_from_slice(&4096u64.to_le_bytes());
    bytes[24..28].copy_from_slice(&[10, 3, 0, 0]);
    std::fs::write(&path, bytes).unwrap();
    let engine = || BenchOptions { models: vec![path.display().to_string()], ..BenchOptions::default() };
    let resolved = on(&JETSON, 1, engine()).unwrap();
    assert_eq!(ids(&resolved), ["a:tensorrt:native"]);
    assert!(resolved.plan.notes.is_empty() && resolved.plan.standby.is_empty(), "{:?}", resolved.plan.notes);
    let without = on(&[BackendName::OrtCpu], 0, engine()).unwrap();
    assert_eq!(without.fates["a:tensorrt:native"].status, CellStatus::Failed);
}

#[test]
fn a_flag_of_one_backend_works_where_that_one_is_ready() {
    let limited = || BenchOptions { gpu_mem_limit: Some(Size(1 << 30)), ..rgb() };
    let resolved = on(&JETSON, 1, limited()).unwrap();
    assert_eq!(resolved.plan.cells[0].provider.gpu_mem_limit_bytes, Some(1 << 30));
    let error = on(&[BackendName::OrtCpu], 0, limited()).unwrap_err().to_string();
    assert!(error.starts_with("--gpu-mem-limit is for ") && error.contains("(no NVIDIA GPU)"), "{error}");
}

#[test]
fn a_cell_that_auto_chose_and_that_cannot_run_is_skipped() {
    // The second GPU is there, and no second CPU.
    let second = BenchOptions { device: Some(DeviceIndex(1)), ..rgb() };
    let resolved = on(&JETSON, 2, second.clone()).unwrap();
    assert_eq!(resolved.fates.len(), 1);
    assert_eq!(resolved.fates["builtin-rgb:ort-cpu:fp32"].status, CellStatus::Skipped);
    let error = on(&[BackendName::OrtCpu], 0, second).unwrap_err().to_string();
    assert!(error.contains("--device 1 does not exist: ort-cpu has 1 device"), "{error}");
}

#[test]
fn what_no_ready_backend_can_run_is_left_to_the_embedded_engine() {
    let resolved = on(&JETSON, 1, rgb()).unwrap();
    assert_eq!(resolved.plan.standby.iter().map(|cell| &*cell.id).collect::<Vec<_>>(), ["builtin-rgb:rten:fp32"]);
    // A TensorRT without its parser builds nothing from an ONNX file.
    let lean = |backend: BackendName| match backend {
        BackendName::Rten => Ok(None),
        BackendName::Tensorrt => Ok(Some(RuntimeSpec::new("/lib/libnvinfer_lean.so", "10.3.0"))),
        other => Err(format!("{other}: not here")),
    };
    let absent = |_| "not here".to_owned();
    let machine = Machine { runtime: &lean, absent: &absent, gpus: 1, cpus: 2, mem_available_bytes: None };
    let resolved = resolve(rgb(), &machine).unwrap();
    assert_eq!(ids(&resolved), ["tensorrt:fp16", "tensorrt:fp32", "rten:fp32"]);
    assert!(resolved.fates.values().all(|fate| fate.status == CellStatus::Skipped) && resolved.fates.len() == 2);
    assert!(resolved.plan.standby.is_empty());
    let said = resolved.plan.notes.join("\n");
    assert!(said.contains("no other backend that is here can run builtin-rgb"), "{said}");
}

#[test]
fn a_library_that_someone_pointed_at_and_that_is_no_good_is_not_passed_over() {
    let pointed = BenchOptions {
        library: vec![NamedLibrary { name: RuntimeName::Onnxruntime, path: "/nowhere.so".into() }],
        ..rgb()
    };
    let resolved = on(&[BackendName::Openvino], 0, pointed).unwrap();
    assert_eq!(ids(&resolved), ["openvino:fp32", "ort-cpu:fp32"]);
    assert_eq!(resolved.fates["builtin-rgb:ort-cpu:fp32"].status, CellStatus::Failed);
}

#[test]
fn more_threads_than_cpus_are_said_to_be_more() {
    let threads = |n| BenchOptions { threads: Some(n), ..rgb() };
    let cpu = [BackendName::OrtCpu, BackendName::Openvino];
    let said = on(&cpu, 0, threads(99)).unwrap().plan.notes.join("\n");
    assert!(said.contains("--threads 99 is more than the 2 CPUs that this process may use"), "{said}");
    assert!(!on(&cpu, 0, threads(2)).unwrap().plan.notes.join("\n").contains("--threads"));
    assert!(on(&cpu, 0, threads(1025)).unwrap_err().to_string().contains("between 1 and 1024"));
}

#[test]
fn one_misspelt_model_beside_a_good_one_is_bad_input() {
    let models = |names: &[&str]| BenchOptions { models: names.iter().map(|&n| n.into()).collect(), ..rgb() };
    for name in ["/no/such/yolo.onnx", "builtin-rbg", "/etc"] {
        let error = on(&[], 0, models(&["builtin-rgb", name])).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    // A file that is there and broken is a failed cell.
    let resolved = on(&JETSON, 1, models(&["/etc/passwd", "builtin-rgb"])).unwrap();
    assert_eq!(resolved.fates.len(), 1, "said once: {:?}", resolved.fates);
}

#[test]
fn a_drop_in_accuracy_needs_something_to_drop_from() {
    let gated = |backends: &str| BenchOptions {
        backends: Some(backends.split(',').map(str::to_owned).collect()),
        gate: vec!["map_drop_max=1".parse().unwrap()],
        data: Some("scenes".into()),
        ..rgb()
    };
    let error = on(&JETSON, 1, gated("ort-cpu")).unwrap_err().to_string();
    assert!(error.contains("builtin-rgb would have only one row; give --baseline RUN"), "{error}");
    assert!(on(&JETSON, 1, gated("ort-cpu,rten")).is_ok());
    let int8 = BenchOptions { precision: Some(vec![Precision::Int8]), ..gated("ort-cpu,rten") };
    assert!(on(&JETSON, 1, int8).unwrap_err().to_string().contains("none in fp32"));
}
