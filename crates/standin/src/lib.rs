//! For tests only: libraries that stand in for TensorRT, its ONNX parser, its plugins and the driver; and [`skip`], for what
//! has no stand-in.
//!
//! The libraries are C++, compiled in the test with the classes of one version in their places (`cpp/base.h` says why), so what
//! is driven through them is the real code to the last call. Each [`Standin`] is a folder of its own: libraries in it are
//! loaded apart from those of any other, also in one process.

mod compiler;
mod layout;
pub mod onnx;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Says which test is skipped, and why. Where `PRONY_TEST_REQUIRE` is set, that fails the test instead.
#[track_caller]
pub fn skip(why: &str) {
    assert!(std::env::var_os("PRONY_TEST_REQUIRE").is_none(), "{why}");
    let thread = std::thread::current();
    // The harness names a thread after its test.
    let test = thread.name().unwrap_or("a test");
    // Past the harness, which would swallow what a passing test prints.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// Says which test cannot run here, and why: what it needs of the machine is nothing that can be installed (root, a control
/// group, a mount namespace). That fails no test, not even where `PRONY_TEST_REQUIRE` is set.
pub fn impossible(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "not possible here: {test}: {why}");
}

/// One version of each layout, the two that have only bindings among them.
pub const VERSIONS: [&str; 5] = ["8.2.1", "8.4.3", "8.6.1", "10.3.0", "11.1.0"];

/// A TensorRT that is none, in a folder that goes with it.
#[derive(Debug)]
pub struct Standin {
    folder: TempDir,
    major: String,
}

impl Standin {
    /// The libraries of a version. None where there is no C++ compiler: that is said, or fails the test if
    /// `PRONY_TEST_REQUIRE` is set.
    pub fn new(version: &str) -> Option<Standin> {
        if let Some(why) = compiler::missing() {
            skip(&why);
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        for file in fs::read_dir(compiler::libraries(version)).expect("the libraries were made") {
            let file = file.expect("the libraries can be listed");
            if file.file_name().to_string_lossy().starts_with("lib") {
                fs::copy(file.path(), folder.path().join(file.file_name())).expect("a temporary folder");
            }
        }
        let major = version.split('.').next().unwrap_or_default().to_owned();
        Some(Standin { folder, major })
    }

    /// The folder with all of them.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `libnvinfer`.
    pub fn library(&self) -> PathBuf {
        self.named("libnvinfer")
    }

    /// `libnvinfer_lean`, which cannot build.
    pub fn lean(&self) -> PathBuf {
        self.named("libnvinfer_lean")
    }

    /// `libnvonnxparser`.
    pub fn parser(&self) -> PathBuf {
        self.named("libnvonnxparser")
    }

    /// `libnvinfer_plugin`.
    pub fn plugins(&self) -> PathBuf {
        self.named("libnvinfer_plugin")
    }

    /// `libcuda.so.1`, with a device whose memory is the host's.
    pub fn driver(&self) -> PathBuf {
        self.folder().join("libcuda.so.1")
    }

    fn named(&self, stem: &str) -> PathBuf {
        self.folder().join(format!("{stem}.so.{}", self.major))
    }

    /// Makes it misbehave from now on: `create-runtime`, `create-builder` or `create-parser` (`null`, or an address such
    /// as `0x228`), `parse=refuse`, `build=fail`, `build=hang`, `deserialize=crash`, `plugins=fail`, `int8=ignored`, `device=NAME`,
    /// `other-device=warn` (an engine of another device is loaded, with a warning), `version=NUMBER`, `cuInit=CODE`,
    /// `devices=COUNT`, `driver=NUMBER`, `memory=BYTES`, `sms=COUNT`, `compute=86`, `integrated=1`, `capture=unsupported`.
    pub fn set(&self, key: &str, value: &str) {
        let path = self.folder().join("standin.conf");
        let before = fs::read_to_string(&path).unwrap_or_default();
        let others = before.lines().filter(|line| line.split('=').next() != Some(key)).map(|line| format!("{line}\n"));
        fs::write(path, others.collect::<String>() + &format!("{key}={value}\n")).expect("a temporary folder");
    }

    /// What was seen: objects that came (`+ IRuntime`) and went (`- IRuntime`), and breaches of the rules (`! ...`).
    pub fn journal(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder().join("standin.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// What is wrong with how it was used: breaches of the rules, and objects that are still there.
    pub fn complaints(&self) -> Vec<String> {
        let journal = self.journal();
        let mut out: Vec<String> = journal.iter().filter(|line| line.starts_with('!')).cloned().collect();
        let mut kinds: Vec<&str> = journal.iter().filter_map(|line| line.strip_prefix("+ ")).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let count = |sign: &str| journal.iter().filter(|line| **line == format!("{sign} {kind}")).count();
            if count("+") != count("-") {
                out.push(format!("{} of {} {kind} destroyed", count("-"), count("+")));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_compiles() {
        for version in VERSIONS {
            let Some(standin) = Standin::new(version) else { return };
            for library in [standin.library(), standin.lean(), standin.parser(), standin.plugins(), standin.driver()] {
                assert!(library.is_file(), "{version}: {}", library.display());
            }
            assert_eq!(standin.journal(), [""; 0], "nothing was called");
        }
    }

    #[test]
    fn what_is_left_over_or_out_of_order_is_a_complaint() {
        let standin = Standin { folder: tempfile::tempdir().unwrap(), major: "8".to_owned() };
        fs::write(standin.folder().join("standin.log"), "+ A\n+ B\n+ A\n- A\n! A went first\n- B\n").unwrap();
        assert_eq!(standin.complaints(), ["! A went first", "1 of 2 A destroyed"]);
        standin.set("build", "fail");
        standin.set("device", "other");
        standin.set("build", "");
        assert_eq!(fs::read_to_string(standin.folder().join("standin.conf")).unwrap(), "device=other\nbuild=\n");
    }
}
