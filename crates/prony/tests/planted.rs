//! Libraries and programs that others planted. Each writes down the process that runs it, so that 0 lines mean it was not opened.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use prony_standin::impossible;
use prony_types::{CellStatus, Environment, RuntimeRecord, RuntimeState};
use support::{Place, SHORT, engine_plan, expect_code, has_tool, installed, prony, skip, stderr, stdout};

/// Where Python packages keep ONNX Runtime.
const IN_SITE: &str = "lib/python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.30.0";

/// Commands that look for libraries.
const LOOKING: [&[&str]; 3] = [&["doctor"], &["inspect", "builtin-rgb"], &["bench", "--dry-run"]];

/// A folder to stand in, a log, and an otherwise empty machine as far as the environment decides that.
struct Trap {
    place: Place,
}

impl Trap {
    /// None, with the reason told, where there is no compiler.
    fn new() -> Option<Trap> {
        if !has_tool("gcc") {
            return None;
        }
        let trap = Trap { place: Place::new() };
        for folder in ["nothing", "project/deep"] {
            fs::create_dir_all(trap.path(folder)).unwrap();
        }
        let source = trap.path("trap.c");
        let text = "#include <stdio.h>\n#include <unistd.h>\n__attribute__((constructor)) static void opened(void) {\n\
                    FILE *log = fopen(LOG, \"a\"); if (log) { fprintf(log, \"%d\\n\", (int)getpid()); fclose(log); } }\n";
        fs::write(&source, text).unwrap();
        trap.compile(&trap.path("trap.so"), &[]);
        Some(trap)
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.place.dir.path()).unwrap().join(name)
    }

    fn compile(&self, to: &Path, more: &[&str]) {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let log = format!("-DLOG=\"{}\"", self.path("log").display());
        let mut gcc = Command::new("gcc");
        gcc.args(["-shared", "-fPIC", "-Wl,--no-as-needed", &log, "-o"]).arg(to).arg(self.path("trap.c")).args(more);
        expect_code(&gcc.current_dir(to.parent().unwrap()).output().unwrap(), 0);
    }

    /// Puts a library there.
    fn library(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(self.path("trap.so"), &path).unwrap();
        path
    }

    /// Puts a program there.
    fn program(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\necho $$ >> {}\nexit 1\n", self.path("log").display())).unwrap();
        mode(&path, 0o755);
        path
    }

    /// A command that stands in the project.
    fn prony(&self, args: &[&str]) -> Command {
        let mut command = prony();
        command.args(args).env_clear().current_dir(self.path("project/deep"));
        command.env("PATH", "/usr/bin:/bin").env("PRONY_TEST_STATE", self.path("state"));
        command.env("HOME", self.path("nothing")).env("PRONY_HOME", self.path("nothing"));
        command
    }

    /// Processes in which something was opened since the last time.
    fn opened(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        let _ = fs::remove_file(self.path("log"));
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    #[track_caller]
    fn expect_nothing_opened(&self, mut command: Command) -> Output {
        let output = command.output().unwrap();
        let opened = self.opened();
        assert_eq!(opened, [0; 0], "{command:?} opened what it must not\n{}{}", stdout(&output), stderr(&output));
        output
    }

    #[track_caller]
    fn expect_opened_in_a_child(&self, mut command: Command) -> Output {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let parent = child.id();
        let output = child.wait_with_output().unwrap();
        let opened = self.opened();
        assert!(!opened.is_empty(), "{command:?} did not open it\n{}{}", stdout(&output), stderr(&output));
        assert!(!opened.contains(&parent), "{command:?} opened it in its own process");
        output
    }

    /// What doctor says of a file.
    #[track_caller]
    fn record(&self, doctor: Command, path: &Path) -> RuntimeRecord {
        let mut doctor = doctor;
        let output = doctor.arg("--json").output().unwrap();
        expect_code(&output, 0);
        let found: Environment = serde_json::from_slice(&output.stdout).unwrap();
        let of_file = |record: &RuntimeRecord| record.path.as_deref() == path.to_str();
        found.runtimes.iter().find(|record| of_file(record)).cloned().unwrap_or_else(|| panic!("{:?}", found.runtimes))
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Text as it was before it was wrapped.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        impossible("only root can give files to another user");
    }
    root
}

#[test]
fn libraries_of_the_current_folder_and_of_those_above_it_were_opened() {
    let Some(trap) = Trap::new() else { return };
    let planted = [
        trap.library(&format!("project/deep/.venv/{IN_SITE}")),
        trap.library(&format!("project/deep/venv/{IN_SITE}")),
        trap.library("project/deep/.pixi/envs/default/lib/libopenvino_c.so"),
        trap.library("project/.pixi/envs/test/lib/libcuda.so.1"),
        trap.program("project/.pixi/envs/test/bin/ffmpeg"),
    ];
    // Nobody looks for these, whatever they are called.
    trap.library("project/deep/libonnxruntime.so");
    trap.library("project/deep/libcuda.so.1");
    trap.library("project/deep/lib/libnvinfer.so.10");
    for verb in LOOKING {
        expect_code(&trap.expect_nothing_opened(trap.prony(verb)), 0);
        // Trust is about owners; what is not activated was not meant.
        let mut trusting = trap.prony(verb);
        trusting.arg("--trust-library");
        expect_code(&trap.expect_nothing_opened(trusting), 0);
    }
    for path in planted {
        let record = trap.record(trap.prony(&["doctor"]), &path);
        assert_eq!((record.state, record.found_by.as_deref()), (RuntimeState::NotOpened, Some("not activated")));
        assert_eq!(record.reason.as_deref(), Some("found in an environment that is not activated"));
        let remedy = record.remedy.unwrap();
        let flag = format!("--library {}={}", record.name, path.display());
        assert!(remedy.contains("activate") && remedy.contains(&flag), "{remedy}");
    }
    let output = trap.prony(&["bench", "--dry-run", "--backends", "ort-cpu"]).output().unwrap();
    let said = stdout(&output) + &stderr(&output);
    assert!(said.contains("not opened: found in an environment that is not activated"), "{said}");
}

#[test]
fn what_is_activated_or_named_is_opened_in_a_child_only() {
    let Some(trap) = Trap::new() else { return };
    let venv = trap.library(&format!("project/deep/.venv/{IN_SITE}"));
    trap.library("project/deep/.pixi/envs/default/lib/libonnxruntime.so");
    trap.library("conda/lib/libonnxruntime.so");
    trap.library("user/.local/lib/python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.30.0");
    trap.library("home/runtimes/onnxruntime/1.30.0/libonnxruntime.so");
    let ways: [(&str, OsString); 9] = [
        ("VIRTUAL_ENV", trap.path("project/deep/.venv").into()),
        ("VIRTUAL_ENV", ".venv".into()),
        ("PIXI_PROJECT_ROOT", trap.path("project/deep").into()),
        ("CONDA_PREFIX", trap.path("conda").into()),
        ("LD_LIBRARY_PATH", trap.path("conda/lib").into()),
        ("PRONY_ONNXRUNTIME", trap.path("conda/lib/libonnxruntime.so").into()),
        ("ORT_DYLIB_PATH", trap.path("conda/lib/libonnxruntime.so").into()),
        ("HOME", trap.path("user").into()),
        ("PRONY_HOME", trap.path("home").into()),
    ];
    for (variable, value) in &ways {
        let mut doctor = trap.prony(&["doctor"]);
        doctor.env(variable, value);
        expect_code(&trap.expect_opened_in_a_child(doctor), 0);
    }
    let flag = format!("onnxruntime={}", venv.display());
    for verb in LOOKING {
        let named = |more: &[&str]| trap.prony(&[verb, &["--library", &flag], more].concat());
        expect_code(&trap.expect_opened_in_a_child(named(&[])), 0);
        expect_code(&trap.expect_nothing_opened(named(&["--no-libraries"])), 0);
    }
    let record = trap.record(trap.prony(&["doctor", "--no-libraries", "--library", &flag]), &venv);
    assert_eq!((record.state, record.reason.as_deref()), (RuntimeState::NotOpened, Some("--no-libraries was given")));
}

#[test]
fn an_empty_entry_of_a_search_path_meant_the_current_folder() {
    let Some(trap) = Trap::new() else { return };
    for name in ["ffmpeg", "trtexec", "gst-launch-1.0", "python3", "bin/ffmpeg", "bin/trtexec"] {
        trap.program(&format!("project/deep/{name}"));
    }
    for path in ["", ":", ".", "/usr/bin:", ":/usr/bin", "/usr/bin::/bin", "bin:/usr/bin", "./bin"] {
        for verb in LOOKING {
            let mut command = trap.prony(verb);
            command.env("PATH", path);
            expect_code(&trap.expect_nothing_opened(command), 0);
        }
    }
    // A library that may be opened needs one that must not be: the loader finds it by the same rule.
    trap.library("project/deep/libplanted.so");
    trap.library("project/deep/lib/libplanted.so");
    let needy = trap.path("own/libonnxruntime.so");
    let source = trap.path("own/empty.c");
    fs::create_dir_all(needy.parent().unwrap()).unwrap();
    fs::write(&source, "int nothing;\n").unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"]).arg(&needy).arg(&source);
    gcc.arg("-L").arg(trap.path("project/deep")).arg("-lplanted");
    expect_code(&gcc.output().unwrap(), 0);
    for path in [":", ".", "/usr/lib:", ":/usr/lib", "/usr/lib::/lib", "lib", "./lib:/usr/lib"] {
        for verb in [&["doctor"][..], &["bench", "--dry-run"], &["run", "builtin-rgb", "--backend", "ort-cpu"]] {
            let mut command = trap.prony(verb);
            command.env("LD_LIBRARY_PATH", path).env("PRONY_ONNXRUNTIME", &needy);
            trap.expect_nothing_opened(command);
        }
    }
    let mut named = trap.prony(&["doctor"]);
    named.env("LD_LIBRARY_PATH", trap.path("project/deep/lib")).env("PRONY_ONNXRUNTIME", &needy);
    trap.expect_opened_in_a_child(named);
}

#[test]
fn a_library_that_everyone_may_replace_was_opened() {
    let Some(trap) = Trap::new() else { return };
    let library = trap.library("shared/env/lib/libonnxruntime.so");
    let ways: [(&str, OsString); 4] = [
        ("PRONY_ONNXRUNTIME", library.clone().into()),
        ("CONDA_PREFIX", trap.path("shared/env").into()),
        ("LD_LIBRARY_PATH", trap.path("shared/env/lib").into()),
        ("TRT_HOME", trap.path("shared/env").into()),
    ];
    trap.library("shared/env/lib/libnvinfer.so.10");
    for (name, bits) in [("shared/env/lib", 0o777), ("shared", 0o757), ("shared/env", 0o2777)] {
        let path = trap.path(name);
        mode(&path, bits);
        let expected = format!("{} is writable by everyone (mode {bits:o})", path.display());
        for (variable, value) in &ways {
            let command = |args: &[&str]| {
                let mut command = trap.prony(args);
                command.env(variable, value);
                command
            };
            for verb in LOOKING {
                trap.expect_nothing_opened(command(verb));
            }
            trap.expect_opened_in_a_child(command(&["doctor", "--trust-library"]));
        }
        let mut doctor = trap.prony(&["doctor"]);
        doctor.env("PRONY_ONNXRUNTIME", &library);
        let record = trap.record(doctor, &library);
        assert_eq!((record.state, record.reason.as_deref()), (RuntimeState::NotOpened, Some(&*expected)));
        let mut doctor = trap.prony(&["doctor", "--trust-library"]);
        doctor.env("PRONY_ONNXRUNTIME", &library);
        assert_eq!(trap.record(doctor, &library).trusted.as_deref(), Some(&*expected));
        trap.opened();
        mode(&path, 0o755);
    }
    // As /tmp is.
    mode(&trap.path("shared"), 0o1777);
    let mut doctor = trap.prony(&["doctor"]);
    doctor.env("PRONY_ONNXRUNTIME", &library);
    trap.expect_opened_in_a_child(doctor);
}

#[test]
fn a_library_of_another_user_was_opened() {
    if !is_root() {
        return;
    }
    let Some(trap) = Trap::new() else { return };
    let library = trap.library("theirs/lib/libonnxruntime.so");
    symlink(trap.library("own/libonnxruntime.so"), trap.path("link.so")).unwrap();
    let cases: [(&str, &Path); 4] = [
        ("theirs/lib/libonnxruntime.so", &library),
        ("theirs/lib", &library),
        ("theirs", &library),
        ("link.so", &trap.path("link.so")),
    ];
    for (name, library) in cases {
        std::os::unix::fs::lchown(trap.path(name), Some(65534), None).unwrap();
        let pointing = |args: &[&str]| {
            let mut command = trap.prony(args);
            command.env("PRONY_ONNXRUNTIME", library);
            command
        };
        for verb in LOOKING {
            trap.expect_nothing_opened(pointing(verb));
        }
        trap.expect_opened_in_a_child(pointing(&["doctor", "--trust-library"]));
        // Who called sudo may have root open what is theirs; any other user may not.
        let mut sudo = pointing(&["doctor"]);
        sudo.env("SUDO_UID", "65534");
        trap.expect_opened_in_a_child(sudo);
        let mut sudo = pointing(&["doctor"]);
        sudo.env("SUDO_UID", "65533");
        let said = in_one_line(&stdout(&trap.expect_nothing_opened(sudo)));
        assert!(said.contains("not opened") && said.contains("65534"), "{said}");
        std::os::unix::fs::lchown(trap.path(name), Some(0), None).unwrap();
    }
    // A group with somebody else in it.
    chown(trap.path("theirs/lib"), None, Some(65534)).unwrap();
    mode(&trap.path("theirs/lib"), 0o775);
    let mut doctor = trap.prony(&["doctor"]);
    doctor.env("PRONY_ONNXRUNTIME", &library);
    trap.expect_nothing_opened(doctor);
}

#[test]
fn what_a_library_brings_along_was_not_looked_at() {
    let Some(trap) = Trap::new() else { return };
    let pointing = |args: &[&str]| {
        let mut command = trap.prony(args);
        command.env("PRONY_ONNXRUNTIME", trap.path("own/libonnxruntime.so"));
        command
    };
    trap.compile(&trap.path("own/libpart.so"), &[]);
    let link = ["-L.", "-lpart"];
    trap.compile(&trap.path("own/libonnxruntime.so"), &[&link[..], &["-Wl,-rpath,$ORIGIN"]].concat());
    trap.expect_opened_in_a_child(pointing(&["doctor"]));
    for (file, bits) in [("own/libpart.so", 0o777), ("own/libonnxruntime_providers_shared.so", 0o666)] {
        let path = trap.library(file);
        mode(&path, bits);
        let said = in_one_line(&stdout(&trap.expect_nothing_opened(pointing(&["doctor"]))));
        assert!(said.contains("is writable by everyone"), "{said}");
        fs::remove_file(path).unwrap();
        trap.library("own/libpart.so");
    }
    // The loader would take these from wherever prony is started.
    for folders in ["-Wl,-rpath,lib", "-Wl,-rpath,$ORIGIN:", "-Wl,-rpath,./lib:/usr/lib"] {
        trap.compile(&trap.path("own/libonnxruntime.so"), &[&link[..], &[folders]].concat());
        let said = in_one_line(&stdout(&trap.expect_nothing_opened(pointing(&["doctor"]))));
        assert!(said.contains("looks for libraries in the current folder"), "{folders}: {said}");
    }
}

#[test]
fn report_and_compare_and_their_like_open_no_library() {
    let Some(trap) = Trap::new() else { return };
    let run = |args: &[&str]| {
        let mut command = trap.prony(args);
        let library = trap.library("own/libonnxruntime.so");
        trap.library("own/libcuda.so.1");
        trap.library("own/libnvidia-ml.so.1");
        command.env("PRONY_ONNXRUNTIME", library).env("LD_LIBRARY_PATH", trap.path("own"));
        command
    };
    let bench = [&["bench", "builtin-rgb", "--backends", "rten", "--out", "runs"], &SHORT[..]].concat();
    let output = trap.expect_opened_in_a_child(run(&bench));
    assert!([0, 3, 4].contains(&output.status.code().unwrap()), "{}", stderr(&output));
    let runs = fs::read_dir(trap.path("project/deep/runs")).unwrap();
    let folder = runs.map(|entry| entry.unwrap().path()).next().unwrap();
    let folder = folder.to_str().unwrap();
    for format in ["text", "html", "md", "csv", "json"] {
        expect_code(&trap.expect_nothing_opened(run(&["report", folder, "--format", format])), 0);
    }
    for words in [&["compare", folder, folder][..], &["cache", "list"], &["runtime", "list"], &["man"]] {
        let output = trap.expect_nothing_opened(run(words));
        assert_ne!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn the_report_says_what_was_trusted() {
    let Some(folder) = installed("onnxruntime", None) else { return };
    let place = Place::new();
    let shared = fs::canonicalize(place.dir.path()).unwrap().join("shared");
    fs::create_dir(&shared).unwrap();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_name().to_string_lossy().contains(".so") && !entry.path().is_symlink() {
            fs::copy(entry.path(), shared.join(entry.file_name())).unwrap();
        }
    }
    mode(&shared, 0o777);
    let flag = format!("onnxruntime={}", shared.display());
    let args = [&["builtin-rgb", "--backends", "ort-cpu", "--library", &flag], &SHORT[..]].concat();
    let refused = place.bench(&args).output().unwrap();
    expect_code(&refused, 1);
    let problem = format!("{} is writable by everyone (mode 777)", shared.display());
    assert!(stderr(&refused).contains(&format!("not opened: {problem}")), "{}", stderr(&refused));
    fs::remove_dir_all(place.runs()).unwrap();

    let output = place.bench(&args).arg("--trust-library").output().unwrap();
    assert!([0, 3, 4].contains(&output.status.code().unwrap()), "{}", stderr(&output));
    let record = place.record();
    assert_eq!(record.cells[0].status, CellStatus::Completed);
    let trusted = record.environment.runtimes.iter().find_map(|runtime| runtime.trusted.as_deref());
    assert_eq!(trusted, Some(&*problem));
    assert!(stdout(&output).contains("opened because of --trust-library"), "{}", stdout(&output));
    for file in ["report.md", "report.html", "env_report.txt"] {
        let text = fs::read_to_string(place.run().join(file)).unwrap();
        assert!(text.contains("--trust-library"), "{file}");
    }
}

#[test]
fn a_plugin_that_everyone_may_replace_was_opened() {
    let Some(trap) = Trap::new() else { return };
    let plugin = trap.library("libplugin.so");
    mode(&plugin, 0o777);
    fs::write(trap.path("net.engine"), engine_plan([10, 3, 0, 26])).unwrap();
    let (plugin, engine) = (plugin.to_str().unwrap().to_owned(), trap.path("net.engine"));
    for words in [
        &["build", "builtin-rgb"][..],
        &["bench", "builtin-rgb", "--backends", "tensorrt", "--dry-run"],
        &["inspect", engine.to_str().unwrap()],
        &["run", engine.to_str().unwrap()],
    ] {
        let output = trap.expect_nothing_opened(trap.prony(&[words, &["--plugin", &plugin]].concat()));
        expect_code(&output, 2);
        assert!(stderr(&output).contains("is writable by everyone"), "{}", stderr(&output));
    }
}

#[test]
fn pip_took_its_modules_from_the_current_folder() {
    let Some(trap) = Trap::new() else { return };
    if !has_tool("python3") {
        return;
    }
    let log = trap.path("log");
    let module = format!("import os\nopen({:?}, 'a').write('%d\\n' % os.getpid())\n", log.to_str().unwrap());
    for name in
        ["pip.py", "runpy.py", "sitecustomize.py", "usercustomize.py", "pip/__main__.py", "pip/__init__.py", "site.py"]
    {
        let path = trap.path("project/deep").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &module).unwrap();
    }
    trap.program("project/deep/python3");
    trap.program("project/deep/pip3");
    let path = std::env::var("PATH").unwrap();
    let here = trap.path("project/deep");
    // Nobody listens there, so pip gives up soon; that it says so shows that it ran.
    let nobody = [("PIP_INDEX_URL", "http://127.0.0.1:9/"), ("PIP_RETRIES", "1"), ("PIP_TIMEOUT", "1")];
    let surroundings: [&[(&str, OsString)]; 2] = [
        &[("PATH", format!(":{path}").into()), ("VIRTUAL_ENV", "".into()), ("PYTHONPATH", here.clone().into())],
        &[
            ("PATH", format!(".:{path}:").into()),
            ("PYTHONSTARTUP", here.join("pip.py").into()),
            ("PYTHONUSERBASE", here.clone().into()),
            ("PIP_PYTHON", here.join("python3").into()),
        ],
    ];
    for variables in surroundings {
        let mut install = trap.prony(&["runtime", "install", "onnxruntime@1.30.0", "--home"]);
        install.arg(trap.path("home")).envs(nobody).envs(variables.iter().map(|(name, value)| (name, value)));
        let output = trap.expect_nothing_opened(install);
        expect_code(&output, 1);
        let said = stderr(&output);
        if said.contains("no pip found") {
            skip("python3 has no pip");
            return;
        }
        assert!(said.contains("pip could not download onnxruntime==1.30.0"), "{said}");
    }
    // A Python that others may replace is passed over by name, activated or not.
    let open = trap.program("env/bin/python3");
    fs::copy(&open, trap.path("env/bin/python")).unwrap();
    mode(&trap.path("env/bin"), 0o777);
    let mut install = trap.prony(&["runtime", "install", "onnxruntime"]);
    install.env("PATH", trap.path("env/bin")).env("VIRTUAL_ENV", trap.path("env"));
    let said = stderr(&trap.expect_nothing_opened(install));
    assert_eq!(said.matches("env/bin is writable by everyone").count(), 2, "{said}");
}
