use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::*;

/// A machine that has what a test puts there, and nothing else.
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

    fn places(&self, pointing_at: &Path) -> Places {
        Places {
            root: self.path("root"),
            home: self.path("home"),
            explicit: Vec::new(),
            binary: None,
            current: None,
            variables: BTreeMap::from([("PRONY_ONNXRUNTIME".into(), pointing_at.into())]),
        }
    }

    /// Compiles a library from C.
    fn compile(&self, file: &str, source: &str, more: &[&str]) -> PathBuf {
        let path = self.path(file);
        let c = self.path("source.c");
        fs::write(&c, source).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"]).arg(&path).arg(&c).args(more);
        let output = gcc.current_dir(self.path("")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        path
    }

    /// The one ONNX Runtime that `PRONY_ONNXRUNTIME` points at, after a search with real children.
    fn found(&self, library: &Path) -> RuntimeRecord {
        let found = search(&binary(), &self.places(library), RuntimeName::ALL, Policy::OwnOnly);
        let mut copies = found.runtimes.into_iter().filter(|record| record.name == RuntimeName::Onnxruntime);
        let record = copies.next().unwrap();
        assert_eq!(copies.next(), None);
        assert_eq!(record.found_by.as_deref(), Some("PRONY_ONNXRUNTIME"));
        record
    }

    #[track_caller]
    fn reason(&self, library: &Path) -> (String, String) {
        let record = self.found(library);
        assert_eq!(record.state, RuntimeState::Broken, "{record:?}");
        (record.reason.unwrap(), record.remedy.unwrap())
    }
}

/// The binary beside this test; `cargo test` builds it for the tests in `tests/`.
fn binary() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let binary = test.parent().unwrap().parent().unwrap().join("prony");
    assert!(binary.is_file(), "{} is not built; run `cargo build` first", binary.display());
    binary
}

#[test]
fn a_machine_with_nothing_has_a_line_for_everything() {
    let machine = Machine::new();
    let mut places = machine.places(Path::new(""));
    places.variables.clear();
    let found = search(&binary(), &places, RuntimeName::ALL, Policy::OwnOnly);
    let names: Vec<RuntimeName> = found.runtimes.iter().map(|record| record.name).collect();
    assert_eq!(names, RuntimeName::ALL);
    for record in &found.runtimes {
        assert_eq!(record.state, RuntimeState::Missing);
        assert!(record.remedy.is_some() && !record.looked.is_empty(), "{record:?}");
    }
    assert_eq!(found.gpus, []);
}

#[test]
fn a_text_file_is_not_opened() {
    let machine = Machine::new();
    let text = machine.path("libonnxruntime.so");
    fs::write(&text, "not a library\n").unwrap();
    let (reason, remedy) = machine.reason(&text);
    assert_eq!(reason, "a text file, not a library");
    assert!(remedy.contains("PRONY_ONNXRUNTIME"), "{remedy}");
}

#[test]
fn a_missing_dependency_is_named() {
    let machine = Machine::new();
    let stub = machine.compile("libcublasLt.so.12", "int stub(void) { return 1; }", &["-Wl,-soname,libcublasLt.so.12"]);
    let library = machine.compile("libonnxruntime.so", "int x;", &["-L.", "-l:libcublasLt.so.12"]);
    fs::remove_file(&stub).unwrap();
    let (reason, remedy) = machine.reason(&library);
    assert_eq!(reason, "libcublasLt.so.12: cannot open shared object file");
    assert!(remedy.starts_with("install the libraries of CUDA 12"), "{remedy}");
}

#[test]
fn a_missing_dependency_that_lies_elsewhere_is_pointed_out() {
    let machine = Machine::new();
    machine.compile("libcublasLt.so.12", "int stub(void) { return 1; }", &["-Wl,-soname,libcublasLt.so.12"]);
    let library = machine.compile("libonnxruntime.so", "int x;", &["-L.", "-l:libcublasLt.so.12"]);
    // A folder that holds libraries, but is none of those that a worker's loader is told of.
    let folder = machine.path("root/opt/intel/openvino_2026/runtime/lib/intel64");
    fs::create_dir_all(&folder).unwrap();
    fs::rename(machine.path("libcublasLt.so.12"), folder.join("libcublasLt.so.12")).unwrap();
    let (_, remedy) = machine.reason(&library);
    let expected = format!("add {} to LD_LIBRARY_PATH", folder.display());
    assert_eq!(remedy, expected);
}

#[test]
fn a_dependency_in_cudas_own_folder_is_found_without_help() {
    let machine = Machine::new();
    machine.compile("libcublasLt.so.12", "int stub(void) { return 1; }", &["-Wl,-soname,libcublasLt.so.12"]);
    let library = machine.compile("libonnxruntime.so", "int x;", &["-L.", "-l:libcublasLt.so.12"]);
    let folder = machine.path("root/usr/local/cuda-12.2/lib64");
    fs::create_dir_all(&folder).unwrap();
    fs::rename(machine.path("libcublasLt.so.12"), folder.join("libcublasLt.so.12")).unwrap();
    let (reason, _) = machine.reason(&library);
    assert!(reason.contains("OrtGetApiBase"), "opened, and found to be no ONNX Runtime: {reason}");
}

#[test]
fn a_library_that_crashes_or_exits_when_opened_is_a_finding() {
    let machine = Machine::new();
    let constructor = |body: &str| {
        let source = format!(
            "#include <stdio.h>\n#include <stdlib.h>\n\
             __attribute__((constructor)) static void begin(void) {{ {body} }}"
        );
        machine.reason(&machine.compile("libonnxruntime.so", &source, &[])).0
    };
    assert_eq!(constructor("*(volatile int *)0 = 1;"), "opening it killed the process (SIGSEGV)");
    let last_words = constructor("fputs(\"out of luck\\n\", stderr); abort();");
    assert_eq!(last_words, "opening it killed the process (SIGABRT): out of luck");
    assert_eq!(constructor("exit(3);"), "opening it ended the process with status 3");
}

#[test]
fn a_library_that_hangs_is_given_up() {
    let machine = Machine::new();
    let source = "#include <unistd.h>\nconst void *OrtGetApiBase(void) { for (;;) pause(); }";
    let library = machine.compile("libonnxruntime.so", source, &[]);
    let limit = Duration::from_millis(300);
    let answer = child::ask_within(&binary(), RuntimeName::Onnxruntime, &library, &[], limit);
    assert_eq!(answer, Err("gave no answer within 0.3 s".to_owned()));
}

#[test]
fn a_library_of_another_kind_is_told_by_its_symbols() {
    let machine = Machine::new();
    let library = machine.compile("libonnxruntime.so", "int x;", &[]);
    assert_eq!(machine.reason(&library).0, "does not export OrtGetApiBase, so it is not libonnxruntime");
}

#[test]
fn a_library_that_is_too_old_says_its_version() {
    let machine = Machine::new();
    let source = r#"
        static const void *api(unsigned version) { return 0; }
        static const char *version(void) { return "1.16.3"; }
        static const struct { const void *(*api)(unsigned); const char *(*version)(void); } base = { api, version };
        const void *OrtGetApiBase(void) { return &base; }"#;
    let (reason, remedy) = machine.reason(&machine.compile("libonnxruntime.so.1.16.3", source, &[]));
    assert_eq!(reason, "too old: 1.16.3, Prony needs 1.17 or later");
    assert!(remedy.contains("prony runtime install onnxruntime"), "{remedy}");
}

#[test]
fn a_chatty_library_and_its_prints_do_not_reach_the_answers() {
    let machine = Machine::new();
    let source = r#"
        #include <stdio.h>
        int getInferLibVersion(void) {
            puts("{\"event\":\"discovered\"}");
            for (int i = 0; i < 100000; i++) fputs("warning: no driver\n", stderr);
            fflush(stdout);
            return 101600;
        }"#;
    let library = machine.compile("libnvinfer.so.10", source, &[]);
    let answer = child::ask(&binary(), RuntimeName::Nvinfer, &library, &[]).unwrap();
    assert_eq!(answer, Answer { version: Some("10.16.0".to_owned()), ..Answer::default() });
}

#[test]
fn a_driver_without_a_device_says_so_in_its_own_words() {
    let machine = Machine::new();
    let answer = child::ask(&binary(), RuntimeName::Cuda, &machine.compile("libcuda.so.1", &driver(100), &[]), &[]);
    let expected = "cuInit failed: 100 CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected";
    assert_eq!(answer, Err(expected.to_owned()));
}

#[test]
fn the_gpus_of_a_driver_are_listed() {
    let machine = Machine::new();
    let lib = machine.path("root/usr/lib");
    fs::create_dir_all(&lib).unwrap();
    machine.compile("root/usr/lib/libcuda.so.1", &driver(0), &[]);
    let mut places = machine.places(Path::new(""));
    places.variables.clear();
    let found = search(&binary(), &places, RuntimeName::ALL, Policy::OwnOnly);
    let gpu = GpuRecord {
        name: "Stub GPU".to_owned(),
        compute: Some("8.7".to_owned()),
        sms: Some(16),
        mem_total_bytes: Some(8 << 30),
        integrated: Some(true),
        clock_khz: Some(1_300_000),
        ..GpuRecord::default()
    };
    assert_eq!(found.gpus, [gpu]);
    let cuda = found.runtimes.iter().find(|record| record.name == RuntimeName::Cuda).unwrap();
    assert_eq!((cuda.state, cuda.version.as_deref()), (RuntimeState::Ready, Some("12.2")));
}

/// A driver in C, with the signatures of cuda.h, whose `cuInit` returns a number.
fn driver(init: i32) -> String {
    format!(
        r#"
        #include <stddef.h>
        #include <string.h>
        int cuInit(unsigned flags) {{ return flags ? 1 : {init}; }}
        int cuDriverGetVersion(int *version) {{ *version = 12020; return 0; }}
        int cuDeviceGetCount(int *count) {{ *count = 1; return 0; }}
        int cuDeviceGet(int *device, int ordinal) {{ *device = ordinal + 40; return 0; }}
        int cuDeviceGetName(char *name, int length, int device) {{
            if (device != 40) return 101;
            strncpy(name, "Stub GPU", (size_t)length);
            return 0;
        }}
        int cuDeviceGetAttribute(int *value, int attribute, int device) {{
            if (device != 40) return 101;
            *value = attribute == 13 ? 1300000 : attribute == 16 ? 16 : attribute == 18 ? 1 : attribute == 75 ? 8 : attribute == 76 ? 7 : -1;
            return *value < 0;
        }}
        int cuDeviceTotalMem_v2(size_t *bytes, int device) {{ *bytes = (size_t)8 << 30; return device != 40; }}
        int cuGetErrorName(int error, const char **text) {{ *text = "CUDA_ERROR_NO_DEVICE"; return 0; }}
        int cuGetErrorString(int error, const char **text) {{
            *text = "no CUDA-capable device is detected";
            return 0;
        }}"#
    )
}

#[test]
fn a_library_that_others_may_write_to_is_listed_and_not_opened() {
    use std::os::unix::fs::PermissionsExt as _;

    let machine = Machine::new();
    let log = machine.path("opened");
    let source = format!(
        "#include <stdio.h>\n__attribute__((constructor)) static void begin(void) {{ fclose(fopen(\"{}\", \"a\")); }}",
        log.display()
    );
    let folder = machine.path("shared");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let library = machine.compile("shared/libonnxruntime.so", &source, &[]);
    let record = machine.found(&library);
    assert_eq!(record.state, RuntimeState::NotOpened);
    let expected = format!("{} is writable by everyone (mode 777)", folder.display());
    assert_eq!(record.reason.as_deref(), Some(&*expected));
    assert!(record.remedy.unwrap().contains("--trust-library"));
    let none = search(&binary(), &machine.places(&library), RuntimeName::ALL, Policy::OpenNone);
    assert!(none.runtimes.iter().all(|record| record.state != RuntimeState::Ready && record.trusted.is_none()));
    assert!(!log.exists(), "it was opened");
    let trusted = search(&binary(), &machine.places(&library), &[RuntimeName::Onnxruntime], Policy::TrustAll);
    assert_eq!(trusted.runtimes[0].trusted.as_deref(), Some(&*expected));
    assert!(log.exists());
}
