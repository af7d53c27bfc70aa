//! NVIDIA's own lean runtimes on a machine without its driver: they are found and described, and nothing crashes or hangs.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use prony_types::{CellStatus, Environment, RuntimeName, RuntimeState};
use support::{Place, at_home, engine_plan, expect_code, has_gpu, prony, skip};

/// The lean runtime of a major version, which CI puts into `lean` of Prony's folder.
fn lean(major: u32) -> Option<PathBuf> {
    if has_gpu() {
        skip("there is a GPU here, so what these libraries do without one cannot be seen");
        return None;
    }
    let file = format!("libnvinfer_lean.so.{major}");
    let found = std::env::var_os("PRONY_HOME").and_then(|home| find(&Path::new(&home).join("lean"), &file));
    if found.is_none() {
        skip(&format!(
            "no {file}; `pip install --target $PRONY_HOME/lean/{major} tensorrt-lean-cu12-libs` (11: cu13) brings it"
        ));
    }
    found
}

fn find(folder: &Path, file: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    entries.iter().find_map(|path| match path.is_dir() {
        true => find(path, file),
        false => (path.file_name()? == file).then(|| path.clone()),
    })
}

#[test]
fn doctor_describes_a_lean_runtime() {
    for (major, version) in [(10, "10."), (11, "11.")] {
        let Some(library) = lean(major) else { return };
        let place = Place::new();
        let home = place.home(&[]).unwrap();
        let output =
            at_home(prony().args(["doctor", "--json"]), &home).env("PRONY_NVINFER_LEAN", &library).output().unwrap();
        expect_code(&output, 0);
        let environment: Environment = serde_json::from_slice(&output.stdout).unwrap();
        let found = environment.runtimes.iter().find(|runtime| runtime.name == RuntimeName::NvinferLean).unwrap();
        assert_eq!(found.state, RuntimeState::Ready, "{found:?}");
        assert!(found.version.as_ref().unwrap().starts_with(version), "{found:?}");
    }
}

#[test]
fn an_engine_on_a_lean_runtime_without_a_driver_is_a_failed_cell() {
    for (major, version) in [(10, [10, 16, 1, 11]), (11, [11, 4, 0, 106])] {
        let Some(library) = lean(major) else { return };
        let place = Place::new();
        let home = place.home(&[]).unwrap();
        let engine = place.path("a.engine");
        fs::write(&engine, engine_plan(version)).unwrap();
        let pointer = format!("nvinfer={}", library.display());
        let mut bench = place.bench(&[engine.to_str().unwrap(), "--library", &pointer, "--quiet"]);
        expect_code(&at_home(&mut bench, &home).output().unwrap(), 1);
        let record = place.record();
        let [cell] = &record.cells[..] else { panic!("{:?}", record.cells) };
        let reason = cell.reason.as_deref().unwrap();
        assert!(cell.status == CellStatus::Failed && reason.contains("libcuda.so.1"), "{major}: {reason}");
    }
}
