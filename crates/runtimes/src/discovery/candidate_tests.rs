use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;

/// A made-up machine.
struct Machine {
    dir: TempDir,
}

impl Machine {
    fn new() -> Machine {
        Machine { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A file with the header of a library for this very machine: that of this test.
    fn library(&self, name: &str) -> PathBuf {
        self.write(name, &own_header())
    }

    fn places(&self) -> Places {
        Places {
            root: self.path(""),
            home: self.path("home"),
            explicit: Vec::new(),
            binary: Some(self.path("opt/prony")),
            current: Some(self.path("project/deep")),
            variables: std::collections::BTreeMap::new(),
        }
    }

    fn places_with(&self, variable: &str, value: impl Into<std::ffi::OsString>) -> Places {
        let mut places = self.places();
        places.variables.insert(variable.into(), value.into());
        places
    }
}

fn own_header() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let exe = fs::File::open(std::env::current_exe().unwrap()).unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&exe, &mut bytes, 0).unwrap();
    bytes
}

fn onnxruntimes(places: &Places) -> Vec<(PathBuf, String, Result<(), String>)> {
    let found =
        candidates(places, RuntimeName::ALL).into_iter().filter(|candidate| candidate.name == RuntimeName::Onnxruntime);
    found.map(|candidate| (candidate.path, candidate.found_by, candidate.verdict)).collect()
}

#[track_caller]
fn only(places: &Places) -> (PathBuf, String, Result<(), String>) {
    let found = onnxruntimes(places);
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

#[test]
fn an_empty_machine_has_nothing_and_says_where_it_was_looked_for() {
    let machine = Machine::new();
    assert_eq!(candidates(&machine.places(), RuntimeName::ALL), []);
    let looked = looked(&machine.places(), RuntimeName::Onnxruntime);
    assert_eq!(looked[..2], ["PRONY_ONNXRUNTIME", "ORT_DYLIB_PATH"]);
    let usual = machine.path("usr/lib").display().to_string();
    assert!(looked.contains(&usual), "{looked:?}");
    assert!(looked.iter().any(|place| place.ends_with("site-packages/onnxruntime/capi")), "{looked:?}");
}

#[test]
fn every_place_is_searched_in_order_and_a_file_is_listed_once() {
    let machine = Machine::new();
    let explicit = machine.library("mine/libonnxruntime.so.1.30.0");
    let by_variable = machine.library("variable/libonnxruntime.so");
    let newest = machine.library("home/runtimes/onnxruntime/1.23.2/lib/libonnxruntime.so.1.23.2");
    let older = machine.library("home/runtimes/onnxruntime/1.9.0/libonnxruntime.so.1.9.0");
    let gpu = machine.library("home/runtimes/onnxruntime-gpu/1.31.1/libonnxruntime.so.1.31.1");
    machine.library("home/runtimes/onnxruntime/.partial/libonnxruntime.so");
    let beside = machine.library("opt/prony/libonnxruntime.so");
    let loaders = machine.library("ld/libonnxruntime.so");
    machine.write("etc/ld.so.conf.d/x.conf", b"# comment\n/odd/place\n");
    let configured = machine.library("odd/place/libonnxruntime.so.1");
    let system = machine.library("usr/lib/libonnxruntime.so.1.20.0");
    symlink(&system, machine.path("usr/lib/libonnxruntime.so")).unwrap();
    machine.library("usr/lib/libonnxruntime_providers_shared.so");
    let conda = machine.library("conda/lib/libonnxruntime.so");
    let pixi = machine.library("project/.pixi/envs/default/lib/libonnxruntime.so");
    let newer_python = machine.library("venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.31.1");
    let python = machine.library("venv/lib/python3.9/site-packages/onnxruntime/capi/libonnxruntime.so.1.16.0");

    let mut places = machine.places_with("PRONY_ONNXRUNTIME", by_variable.clone());
    places.explicit.push((RuntimeName::Onnxruntime, explicit.clone()));
    places.variables.insert("LD_LIBRARY_PATH".into(), machine.path("ld").into());
    places.variables.insert("CONDA_PREFIX".into(), machine.path("conda").into());
    places.variables.insert("VIRTUAL_ENV".into(), machine.path("venv").into());
    places.variables.insert("PIXI_PROJECT_ROOT".into(), machine.path("project").into());

    let found = onnxruntimes(&places);
    assert!(found.iter().all(|(_, _, verdict)| verdict.is_ok()), "{found:?}");
    let found: Vec<(PathBuf, &str)> = found.iter().map(|(path, by, _)| (path.clone(), by.as_str())).collect();
    let expected = [
        (explicit, "explicit"),
        (by_variable, "PRONY_ONNXRUNTIME"),
        (newest, "PRONY_HOME"),
        (older, "PRONY_HOME"),
        (gpu, "PRONY_HOME"),
        (beside, "beside prony"),
        (loaders, "LD_LIBRARY_PATH"),
        (configured, "loader"),
        (system, "loader"),
        (conda, "conda"),
        (pixi, "pixi"),
        (newer_python, "python"),
        (python, "python"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_record_of_an_installed_runtime_names_its_library() {
    let machine = Machine::new();
    let library = machine.library("home/runtimes/onnxruntime/1.23.2/a/b/c/d/odd-name.so");
    machine.write("home/runtimes/onnxruntime/1.23.2/runtime.json", br#"{"main": "a/b/c/d/odd-name.so"}"#);
    assert_eq!(only(&machine.places()), (library.clone(), "PRONY_HOME".to_owned(), Ok(())));
    fs::remove_file(library).unwrap();
    let reason = only(&machine.places()).2.unwrap_err();
    assert_eq!(reason, "its runtime.json names a/b/c/d/odd-name.so, which is not there");
}

#[test]
fn what_someone_points_at_is_never_ignored() {
    let machine = Machine::new();
    let verdict = |path: &Path| only(&machine.places_with("PRONY_ONNXRUNTIME", path)).2;
    assert_eq!(verdict(&machine.path("nowhere.so")), Err("does not exist".to_owned()));
    assert_eq!(verdict(&machine.path("")), Err("a folder without libonnxruntime.so".to_owned()));
    assert_eq!(verdict(&machine.write("empty.so", b"")), Err("an empty file, not a library".to_owned()));
    let text = machine.write("text/libonnxruntime.so", b"INPUT(libonnxruntime.so.1)\n");
    assert_eq!(verdict(&text), Err("a text file, not a library".to_owned()));
    assert_eq!(verdict(&machine.write("short.so", b"\x7fELF\x02\x01")), Err("cut off after 6 bytes".to_owned()));
    symlink(machine.path("gone"), machine.path("link.so")).unwrap();
    assert_eq!(verdict(&machine.path("link.so")), Err("a symbolic link that leads nowhere".to_owned()));
    // A folder is searched.
    let inside = machine.library("sdk/lib/libonnxruntime.so.1.22.0");
    let found = only(&machine.places_with("ORT_DYLIB_PATH", machine.path("sdk")));
    assert_eq!(found, (inside, "ORT_DYLIB_PATH".to_owned(), Ok(())));
}

#[test]
fn a_relative_path_is_one_from_the_current_folder() {
    let machine = Machine::new();
    let library = machine.library("project/deep/lib/libonnxruntime.so");
    assert_eq!(only(&machine.places_with("PRONY_ONNXRUNTIME", "lib")).0, library);
}

#[test]
fn a_library_for_another_machine_is_named_as_such() {
    let machine = Machine::new();
    let patched = |at: usize, value: u8| {
        let mut bytes = own_header();
        bytes[at] = value;
        let path = machine.write("lib/libonnxruntime.so", &bytes);
        only(&machine.places_with("PRONY_ONNXRUNTIME", path)).2.unwrap_err()
    };
    let here = std::env::consts::ARCH;
    let (other, machine_number) = if here == "x86_64" { ("aarch64", 183) } else { ("x86_64", 62) };
    assert_eq!(patched(18, machine_number), format!("built for {other}, this machine is {here}"));
    assert_eq!(patched(4, 1), "a 32-bit file, Prony is 64-bit");
    assert_eq!(patched(16, 2), "a program, not a shared library");
    assert_eq!(patched(16, 1), "an object file, not a shared library");
}

#[test]
fn jetpack_and_tensorrt_are_found_where_they_usually_are() {
    let machine = Machine::new();
    machine.library("usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1");
    machine.library("usr/local/cuda-12.2/targets/aarch64-linux/lib/libcudart.so.12.2.140");
    machine.library("usr/local/cuda-12.2/lib64/stubs/libcuda.so");
    machine.library("trt/lib/libnvinfer.so.10.3.0");
    machine.library("trt/lib/libnvinfer_builder_resource.so.10.3.0");
    let trtexec = machine.library("usr/src/tensorrt/bin/trtexec");
    fs::set_permissions(&trtexec, fs::Permissions::from_mode(0o755)).unwrap();
    machine.library("user/.local/lib/python3.10/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
    let mut places = machine.places_with("TENSORRT_HOME", machine.path("trt"));
    places.variables.insert("HOME".into(), machine.path("user").into());
    let found: Vec<(RuntimeName, String)> = candidates(&places, RuntimeName::ALL)
        .into_iter()
        .map(|candidate| (candidate.name, candidate.found_by))
        .collect();
    let expected = [
        (RuntimeName::Nvinfer, "TENSORRT_HOME"),
        (RuntimeName::Trtexec, "vendor's folder"),
        (RuntimeName::Cuda, "vendor's folder"),
        (RuntimeName::Cudart, "vendor's folder"),
        (RuntimeName::Cudnn, "python"),
    ];
    assert_eq!(found, expected.map(|(name, by)| (name, by.to_owned())));
}

#[test]
fn a_program_is_found_on_the_path_and_must_be_executable() {
    let machine = Machine::new();
    let ffmpeg = machine.write("bin/ffmpeg", b"#!/bin/sh\n");
    let places = machine.places_with("PATH", machine.path("bin"));
    let verdict = || candidates(&places, RuntimeName::ALL).into_iter().next().unwrap().verdict;
    assert_eq!(verdict(), Err("may not be executed; chmod +x it".to_owned()));
    fs::set_permissions(&ffmpeg, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(verdict(), Ok(()));
    fs::write(&ffmpeg, "echo no first line\n").unwrap();
    assert_eq!(verdict(), Err("a text file, not a program".to_owned()));
}

#[test]
fn packages_of_the_python_on_the_path_are_found_without_running_it() {
    let machine = Machine::new();
    let python = machine.write("env/bin/python3", b"exit 1");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let own = machine.library("env/lib/python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.30.0");
    let base = machine.library("base/lib/python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.20.0");
    let places = machine.places_with("PATH", machine.path("env/bin"));
    let settings = |shared: bool| {
        format!("home = {}\ninclude-system-site-packages = {shared}\n", machine.path("base/bin").display())
    };
    machine.write("env/pyvenv.cfg", settings(false).as_bytes());
    assert_eq!(only(&places).0, own);
    machine.write("env/pyvenv.cfg", settings(true).as_bytes());
    let found: Vec<PathBuf> = onnxruntimes(&places).into_iter().map(|(path, _, _)| path).collect();
    assert_eq!(found, [own, base]);
    assert_eq!(places.site_packages().len(), 2);
}

#[test]
fn what_a_library_needs_is_read_without_opening_it() {
    let needs = elf::needs(&std::env::current_exe().unwrap()).unwrap();
    assert!(needs.needed.iter().any(|name| name.starts_with("libc.so")), "{needs:?}");
    let machine = Machine::new();
    assert_eq!(elf::needs(&machine.library("headless.so")), None);
}

#[test]
fn environments_that_nobody_activated_were_opened() {
    let machine = Machine::new();
    let inside = "lib/python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.30.0";
    let planted = [
        machine.library("project/deep/.pixi/envs/default/lib/libonnxruntime.so"),
        machine.library("project/.pixi/envs/test/lib/libonnxruntime.so"),
        machine.library(&format!("project/deep/.venv/{inside}")),
        machine.library(&format!("project/deep/venv/{inside}")),
    ];
    let found = candidates(&machine.places(), RuntimeName::ALL);
    let paths: Vec<&PathBuf> = found.iter().map(|candidate| &candidate.path).collect();
    assert_eq!(paths, planted.iter().collect::<Vec<_>>());
    for candidate in &found {
        assert_eq!((candidate.refusal.as_ref(), &*candidate.found_by), (Some(&Refusal::NotActivated), "not activated"));
    }
    for (variable, folder, allowed) in [
        ("VIRTUAL_ENV", machine.path("project/deep/.venv"), 2),
        ("VIRTUAL_ENV", PathBuf::from("venv"), 3),
        ("CONDA_PREFIX", machine.path("project/.pixi/envs/test"), 1),
        ("PIXI_PROJECT_ROOT", machine.path("project/deep"), 0),
    ] {
        let found = candidates(&machine.places_with(variable, &folder), RuntimeName::ALL);
        let open: Vec<&PathBuf> =
            found.iter().filter(|candidate| candidate.refusal.is_none()).map(|candidate| &candidate.path).collect();
        assert_eq!(open, [&planted[allowed]], "{variable}={}", folder.display());
        assert_eq!(found.len(), planted.len());
    }
}

#[test]
fn a_record_named_a_library_outside_of_its_folder() {
    let machine = Machine::new();
    let planted = machine.library("planted.so");
    machine.library("home/runtimes/onnxruntime/1.23.2/libonnxruntime.so");
    for named in ["../../../../planted.so", planted.to_str().unwrap(), "a/../../../../../planted.so"] {
        machine.write(
            "home/runtimes/onnxruntime/1.23.2/runtime.json",
            serde_json::json!({ "main": named }).to_string().as_bytes(),
        );
        let reason = only(&machine.places()).2.unwrap_err();
        assert_eq!(reason, format!("its runtime.json names {named}, which is outside its folder"));
    }
}

#[test]
fn a_library_that_others_may_write_to_was_opened_wherever_it_was_found() {
    let machine = Machine::new();
    let library = machine.library("mine/lib/libonnxruntime.so");
    let companion = machine.library("mine/lib/libonnxruntime_providers_cuda.so");
    let refusal = |places: &Places| {
        let found = candidates(places, &[RuntimeName::Onnxruntime]);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].refusal.clone()
    };
    let ways = [
        machine.places_with("PRONY_ONNXRUNTIME", &library),
        machine.places_with("ORT_DYLIB_PATH", machine.path("mine")),
        machine.places_with("LD_LIBRARY_PATH", machine.path("mine/lib")),
        machine.places_with("CONDA_PREFIX", machine.path("mine")),
        Places { explicit: vec![(RuntimeName::Onnxruntime, library.clone())], ..machine.places() },
    ];
    assert!(ways.iter().all(|places| refusal(places).is_none()));
    for (path, mode) in [(&companion, 0o666), (&library, 0o646), (&machine.path("mine"), 0o777)] {
        let before = fs::metadata(path).unwrap().permissions();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let expected = format!("{} is writable by everyone (mode {mode:o})", path.display());
        for places in &ways {
            assert_eq!(refusal(places), Some(Refusal::Foreign(expected.clone())), "{:?}", places.variables);
        }
        fs::set_permissions(path, before).unwrap();
    }
}

#[test]
fn a_script_was_run_by_an_interpreter_from_the_current_folder() {
    let machine = Machine::new();
    let places = machine.places_with("PATH", machine.path("bin"));
    for (first_line, good) in
        [("#!/bin/sh", true), ("#! /bin/sh -e", true), ("#!sh", false), ("#! ./sh", false), ("#!", false)]
    {
        let path = machine.write("bin/ffmpeg", format!("{first_line}\n").as_bytes());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let verdict = candidates(&places, &[RuntimeName::Ffmpeg]).remove(0).verdict;
        assert_eq!(verdict.is_ok(), good, "{first_line}: {verdict:?}");
    }
}
