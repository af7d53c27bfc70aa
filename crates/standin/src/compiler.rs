//! Compiles the libraries, once for each version and state of the sources.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::layout;

/// The sources, as they were when this crate was compiled.
const SOURCES: &[(&str, &str)] = &[
    ("base.h", include_str!("../cpp/base.h")),
    ("graph.h", include_str!("../cpp/graph.h")),
    ("onnx.h", include_str!("../cpp/onnx.h")),
    ("plan.h", include_str!("../cpp/plan.h")),
    ("memory.h", include_str!("../cpp/memory.h")),
    ("context.h", include_str!("../cpp/context.h")),
    ("engine.h", include_str!("../cpp/engine.h")),
    ("builder.h", include_str!("../cpp/builder.h")),
    ("nvinfer.cpp", include_str!("../cpp/nvinfer.cpp")),
    ("onnxparser.cpp", include_str!("../cpp/onnxparser.cpp")),
    ("plugin.cpp", include_str!("../cpp/plugin.cpp")),
    ("cuda.cpp", include_str!("../cpp/cuda.cpp")),
];

/// Nothing of one stand-in may be found by another that is loaded beside it.
const FLAGS: &[&str] = &[
    "-std=c++17",
    "-fPIC",
    "-shared",
    "-pthread",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-non-virtual-dtor",
    "-Wno-overloaded-virtual",
    "-fvisibility=hidden",
    "-fno-gnu-unique",
    "-Wl,-Bsymbolic",
];

/// Name of the compiler: `CXX`, or `g++`.
fn compiler() -> String {
    std::env::var("CXX").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "g++".to_owned())
}

/// Why there can be no stand-in, if the compiler is missing.
pub(crate) fn missing() -> Option<String> {
    let name = compiler();
    let answers = Command::new(&name).arg("--version").output().is_ok_and(|output| output.status.success());
    (!answers).then(|| format!("no C++ compiler `{name}`; install g++ or name one in CXX"))
}

/// A folder with the libraries of a version: made now or by an earlier test.
pub(crate) fn libraries(version: &str) -> PathBuf {
    let layout = layout::header(version);
    let mut hasher = DefaultHasher::new();
    (SOURCES, FLAGS, &layout, compiler()).hash(&mut hasher);
    let all = std::env::current_exe().expect("a test knows its own path");
    let all = all.parent().expect("a test is in a folder").join("standin");
    let folder = all.join(format!("{version}-{:016x}", hasher.finish()));
    if folder.is_dir() {
        return folder;
    }
    fs::create_dir_all(&all).expect("the target folder can be written");
    // Tests of one binary start together, and so may binaries: one compiles and the others wait for it.
    let lock = fs::File::create(all.join(format!("{version}.lock"))).expect("the target folder can be written");
    lock.lock().expect("a file that can be locked");
    if !folder.is_dir() {
        let work = tempfile::tempdir_in(&all).expect("the target folder can be written");
        compile_all(work.path(), version, &layout);
        fs::rename(work.keep(), &folder).expect("the target folder can be written");
    }
    folder
}

fn compile_all(folder: &Path, version: &str, layout: &str) {
    for (name, text) in SOURCES.iter().chain([&("layout.h", layout)]) {
        fs::write(folder.join(name), text).expect("the target folder can be written");
    }
    let major = version.split('.').next().unwrap_or_default();
    let libraries = [
        ("nvinfer.cpp", format!("libnvinfer.so.{major}"), None),
        ("nvinfer.cpp", format!("libnvinfer_lean.so.{major}"), Some("-DLEAN")),
        ("onnxparser.cpp", format!("libnvonnxparser.so.{major}"), None),
        ("plugin.cpp", format!("libnvinfer_plugin.so.{major}"), None),
        ("cuda.cpp", "libcuda.so.1".to_owned(), None),
    ];
    thread::scope(|scope| {
        for (source, library, extra) in &libraries {
            scope.spawn(|| compile(folder, source, library, *extra));
        }
    });
}

fn compile(folder: &Path, source: &str, library: &str, extra: Option<&str>) {
    let output = Command::new(compiler())
        .current_dir(folder)
        .args(FLAGS)
        .args(extra)
        .arg(format!("-Wl,-soname,{library}"))
        .args(["-o", library, source, "-ldl"])
        .output()
        .expect("the compiler was there a moment ago");
    assert!(output.status.success(), "{library}: {}", String::from_utf8_lossy(&output.stderr));
}
