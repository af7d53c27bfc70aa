//! The rooms of the house and what each may use. Upstream never calls downstream.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;
use prony_standin::skip;
use toml::{Table, Value};

/// Every crate, with the crates of ours that it may use.
const ROOMS: &[(&str, &[&str])] = &[
    ("prony-types", &[]),
    ("prony-files", &[]),
    ("prony-judge", &["prony-types"]),
    ("prony-model", &["prony-types", "prony-files"]),
    ("prony-vision", &["prony-types"]),
    ("prony-source", &["prony-types", "prony-files"]),
    ("prony-nvinfer", &[]),
    ("prony-backend", &["prony-types", "prony-files", "prony-model", "prony-nvinfer"]),
    ("prony-probe", &["prony-types", "prony-files"]),
    (
        "prony-forge",
        &[
            "prony-types",
            "prony-files",
            "prony-judge",
            "prony-model",
            "prony-vision",
            "prony-source",
            "prony-nvinfer",
            "prony-backend",
            "prony-probe",
        ],
    ),
    (
        "prony-bench",
        &["prony-types", "prony-files", "prony-judge", "prony-vision", "prony-source", "prony-backend", "prony-forge"],
    ),
    ("prony-store", &["prony-types", "prony-files"]),
    ("prony-report", &["prony-types"]),
    ("prony-runtimes", &["prony-files"]),
    ("prony-plan", &["prony-types", "prony-files", "prony-source"]),
    // For tests alone: damaged files for the readers.
    (
        "prony-fuzz",
        &[
            "prony-types",
            "prony-files",
            "prony-model",
            "prony-source",
            "prony-store",
            "prony-report",
            "prony-forge",
            "prony-plan",
            "prony-runtimes",
        ],
    ),
    // For tests alone: a stand-in for TensorRT.
    ("prony-standin", &[]),
];

fn read(path: &Path) -> Table {
    fs::read_to_string(path).unwrap().parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The manifests of the workspace, by name. Read as they are: cargo would want the crates of every platform for it.
fn manifests() -> Vec<(String, Table)> {
    let workspace = read(&root().join("Cargo.toml"));
    let members: Vec<&str> =
        workspace["workspace"]["members"].as_array().unwrap().iter().map(|member| member.as_str().unwrap()).collect();
    assert_eq!(members, ["crates/*", "xtask"], "another place for crates must be looked at here too");
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let all = crates.chain([root().join("xtask")]).map(|folder| read(&folder.join("Cargo.toml")));
    all.map(|manifest| (manifest["package"]["name"].as_str().unwrap().to_owned(), manifest)).collect()
}

/// What a crate itself uses, on whatever platform; not what its tests and build script do.
fn dependencies(manifest: &Table) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let tables = targets.map(|(_, target)| target.as_table().unwrap()).chain([manifest]);
    let all = tables.filter_map(|table| table.get("dependencies")?.as_table()).flatten();
    all.map(|(key, spec)| spec.get("package").and_then(Value::as_str).unwrap_or(key).to_owned()).collect()
}

#[test]
fn no_room_uses_another_that_it_may_not() {
    let mut rooms: Vec<String> = Vec::new();
    for (name, manifest) in manifests() {
        // The binary may use every room; the chores of the repository are outside the house and no part of it.
        if name == "prony" || name == "xtask" {
            continue;
        }
        let allowed = ROOMS.iter().find(|(room, _)| *room == name);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{name} is not in the list of rooms"));
        for used in dependencies(&manifest).iter().filter(|used| used.starts_with("prony")) {
            assert!(allowed.contains(&used.as_str()), "{name} must not use {used}");
        }
        rooms.push(name);
    }
    assert_eq!(rooms.len(), ROOMS.len(), "a room of the list is gone: {rooms:?}");
}

#[test]
fn the_contract_depends_on_serde_alone() {
    let manifests = manifests();
    let (_, types) = manifests.iter().find(|(name, _)| name == "prony-types").unwrap();
    assert_eq!(dependencies(types), BTreeSet::from(["serde".to_owned()]));
}

#[test]
fn dependencies_are_read_from_every_table() {
    let manifest = "[dependencies]\na.workspace = true\nb = { package = \"prony-b\", path = \"b\" }\n[dev-dependencies]\nc = '1'\n\
                    [target.'cfg(unix)'.dependencies]\nd = '1'\n";
    assert_eq!(dependencies(&manifest.parse().unwrap()), ["a", "d", "prony-b"].map(str::to_owned).into());
}

/// The platforms that are shipped, and the licences that are accepted.
fn accepted() -> (Vec<String>, Vec<String>) {
    let deny = read(&root().join("deny.toml"));
    let strings =
        |list: &Value| list.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect();
    (strings(&deny["graph"]["targets"]), strings(&deny["licenses"]["allow"]))
}

/// Looks at everything that is built for a platform. Without a network, cargo knows what it fetched for this build.
fn check_licences(target: &str, allowed: &[String], network: bool) {
    let offline = (!network).then(|| "--offline".to_owned());
    let options = ["--locked".to_owned(), format!("--filter-platform={target}")].into_iter().chain(offline);
    let metadata = MetadataCommand::new().other_options(options.collect::<Vec<_>>()).exec().unwrap();
    assert!(metadata.packages.len() > 100, "{target}: {} packages", metadata.packages.len());
    for package in &metadata.packages {
        let expression = package.license.clone().unwrap_or_else(|| panic!("{} names no licence", package.name));
        assert!(accepts(&expression, allowed), "{}: {expression}", package.name);
    }
}

#[test]
fn dependencies_have_licences_we_accept() {
    let (targets, allowed) = accepted();
    let here = targets.iter().find(|target| target.starts_with(std::env::consts::ARCH)).unwrap();
    check_licences(here, &allowed, false);
}

#[test]
fn dependencies_of_other_platforms_have_licences_we_accept() {
    if std::env::var_os("PRONY_TEST_REQUIRE").is_none() {
        skip("needs a network for crates of other platforms; PRONY_TEST_REQUIRE=1 demands it");
        return;
    }
    let (targets, allowed) = accepted();
    targets.iter().for_each(|target| check_licences(target, &allowed, true));
}

/// An SPDX expression of names, `OR`, `AND` and brackets (and the old `/` for `OR`).
fn accepts(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace('/', " OR ");
    let any = |text: &str| {
        text.split(" OR ").any(|licence| allowed.iter().any(|one| one == licence.trim().trim_matches(['(', ')'])))
    };
    expression.split(" AND ").all(any)
}

#[test]
fn a_licence_expression_is_read() {
    let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned);
    for good in ["MIT", "MIT OR GPL-3.0", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
        assert!(accepts(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "AGPL-3.0-only"] {
        assert!(!accepts(bad, &allowed), "{bad}");
    }
}
