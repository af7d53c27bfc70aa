//! Packages in made-up prefixes.

use super::*;
use crate::fixture::Fixture;

fn listed(root: &Path, hints: &Hints) -> Vec<(String, String)> {
    packages(root, hints).into_iter().map(|package| (package.name, package.version)).collect()
}

fn pair(name: &str, version: &str) -> (String, String) {
    (name.to_owned(), version.to_owned())
}

#[test]
fn metadata_beats_the_folder_name_and_strangers_are_left_out() {
    let fixture = Fixture::new();
    let site = "usr/lib/python3/dist-packages";
    let metadata =
        "Metadata-Version: 2.1\nName: onnxruntime_gpu\nVersion: 1.23.0\n\nVersion: 9 is what the text says\n";
    fixture.write(&format!("{site}/onnxruntime_gpu-1.23.dist-info/METADATA"), metadata);
    fixture.write(&format!("{site}/requests-2.0.dist-info/METADATA"), "Name: requests\nVersion: 2.0\n");
    fixture.write(&format!("{site}/onnx_graphsurgeon-0.5.dist-info/METADATA"), "Name: onnx-graphsurgeon\n");
    // No metadata: the name of the folder.
    fixture.write(&format!("{site}/nvidia_modelopt-0.29.0.dist-info/RECORD"), "");
    fixture.write(
        &format!("{site}/tensorrt_cu12-10.9.0.34.dist-info/METADATA"),
        "Name: tensorrt-cu12\nVersion: 10.9.0.34\n",
    );
    // Debian's: a file, and a folder with PKG-INFO.
    fixture.write(&format!("{site}/numpy-1.21.5.egg-info"), "Name: numpy\nVersion: 1.21.5\n");
    fixture.write(&format!("{site}/Polygraphy-0.49.egg-info/PKG-INFO"), "Name: Polygraphy\nVersion: 0.49.9\n");
    fixture.write(&format!("{site}/jetson_stats-4.3.2-py3.10.egg-info/top_level.txt"), "jtop\n");
    let found = packages(fixture.root(), &Hints::default());
    let names: Vec<(&str, &str)> = found.iter().map(|p| (p.name.as_str(), p.version.as_str())).collect();
    let want = [
        ("jetson-stats", "4.3.2"),
        ("numpy", "1.21.5"),
        ("nvidia-modelopt", "0.29.0"),
        ("onnxruntime-gpu", "1.23.0"),
        ("polygraphy", "0.49.9"),
        ("tensorrt-cu12", "10.9.0.34"),
    ];
    assert_eq!(names, want);
    let site = fs::canonicalize(fixture.root()).unwrap().join(site).display().to_string();
    assert!(found.iter().all(|package| package.place == site), "{found:?}");
}

#[test]
fn every_place_is_looked_into_the_nearest_first() {
    let fixture = Fixture::new();
    let add = |site: &str, version: &str| {
        fixture.write(
            &format!("{site}/numpy-{version}.dist-info/METADATA"),
            &format!("Name: numpy\nVersion: {version}\n"),
        );
    };
    add("active/lib/python3.12/site-packages", "1");
    add("active/lib64/python3.9/site-packages", "2");
    add("also/lib/python3.12/site-packages", "3");
    add("opt/py/lib/python3.11/site-packages", "4");
    add("home/.local/lib/python3.10/site-packages", "5");
    add("usr/local/lib/python3.10/dist-packages", "6");
    add("usr/lib/python3/dist-packages", "7");
    add("usr/lib/python2.7/dist-packages", "8");
    fixture.write("opt/py/bin/python3", "#!/bin/false\n");
    let at = |name: &str| fixture.root().join(name);
    let hints = Hints {
        active: vec![at("active"), at("also")],
        home: Some(at("home")),
        path: Some(std::env::join_paths([at("nowhere"), at("opt/py/bin")]).unwrap()),
    };
    let versions: Vec<String> = listed(fixture.root(), &hints).into_iter().map(|(_, version)| version).collect();
    assert_eq!(versions, ["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(listed(fixture.root(), &Hints::default()), [pair("numpy", "6"), pair("numpy", "7")]);
}

#[test]
fn a_python_behind_links_and_one_behind_shims_are_found() {
    let fixture = Fixture::new();
    let at = |name: &str| fixture.root().join(name);
    fixture.write("opt/real/bin/python3.11", "");
    fixture
        .write("opt/real/lib/python3.11/site-packages/torch-2.7.0.dist-info/METADATA", "Name: torch\nVersion: 2.7.0\n");
    fixture.write("env/lib/python3.11/site-packages/onnx-1.18.0.dist-info/METADATA", "Name: onnx\nVersion: 1.18.0\n");
    fs::create_dir_all(at("env/bin")).unwrap();
    std::os::unix::fs::symlink(at("opt/real/bin/python3.11"), at("env/bin/python3")).unwrap();
    // A link between the two must not list a place twice.
    std::os::unix::fs::symlink(at("env/lib"), at("env/lib64")).unwrap();
    let hints = Hints { path: Some(at("env/bin").into()), ..Hints::default() };
    assert_eq!(listed(fixture.root(), &hints), [pair("onnx", "1.18.0"), pair("torch", "2.7.0")]);
    fixture.write("pyenv/shims/python3", "#!/bin/sh\n");
    fixture.write(
        "pyenv/versions/3.12.1/lib/python3.12/site-packages/numpy-2.2.0.dist-info/METADATA",
        "Name: numpy\nVersion: 2.2.0\n",
    );
    let hints = Hints { path: Some(at("pyenv/shims").into()), ..Hints::default() };
    assert_eq!(listed(fixture.root(), &hints), [pair("numpy", "2.2.0")]);
}

#[test]
fn names_are_told_apart_in_their_normal_form() {
    assert_eq!(normal("OpenCV_Python.-Headless"), "opencv-python-headless");
    assert!(matters("tensorrt-lean-cu13") && matters("tensorrt"));
    assert!(!matters("torch-cu") && !matters("tensorrt-cu12-libs") && !matters("numpy-financial"));
}
