//! The rooms of the house and what each may use. Upstream never calls downstream.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Every crate, with the crates of ours that it may use.
const ROOMS: &[(&str, &[&str])] = &[
    ("prony-types", &[]),
    ("prony-judge", &["prony-types"]),
    ("prony-model", &["prony-types"]),
    ("prony-vision", &["prony-types"]),
    ("prony-source", &["prony-types"]),
    ("prony-nvinfer", &[]),
    ("prony-backend", &["prony-types", "prony-model", "prony-nvinfer"]),
    ("prony-probe", &["prony-types"]),
    (
        "prony-forge",
        &[
            "prony-types",
            "prony-judge",
            "prony-model",
            "prony-vision",
            "prony-source",
            "prony-nvinfer",
            "prony-backend",
        ],
    ),
    ("prony-bench", &["prony-types", "prony-judge", "prony-vision", "prony-source", "prony-backend", "prony-forge"]),
    ("prony-store", &["prony-types"]),
    ("prony-report", &["prony-types"]),
    // For tests alone: damaged files for the readers.
    ("prony-fuzz", &["prony-types", "prony-model", "prony-source"]),
    // For tests alone: a stand-in for TensorRT.
    ("prony-standin", &[]),
];

fn metadata() -> Metadata {
    MetadataCommand::new().other_options(["--locked".to_owned(), "--offline".to_owned()]).exec().unwrap()
}

fn ours(package: &Package) -> BTreeSet<String> {
    let normal = package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal);
    normal.map(|d| d.name.clone()).filter(|name| name.starts_with("prony")).collect()
}

#[test]
fn no_room_uses_another_that_it_may_not() {
    let metadata = metadata();
    let mut rooms: Vec<&str> = Vec::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        // The binary may use every room; the chores of the repository are outside the house and no part of it.
        if name == "prony" || name == "xtask" {
            continue;
        }
        rooms.push(name);
        let allowed = ROOMS.iter().find(|(room, _)| *room == name);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{name} is not in the list of rooms"));
        for used in ours(package) {
            assert!(allowed.contains(&used.as_str()), "{name} must not use {used}");
        }
    }
    assert_eq!(rooms.len(), ROOMS.len(), "a room of the list is gone: {rooms:?}");
}

#[test]
fn the_contract_depends_on_serde_alone() {
    let metadata = metadata();
    let packages = metadata.workspace_packages();
    let types = packages.iter().find(|p| p.name.as_str() == "prony-types").unwrap();
    let normal = types.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal);
    assert_eq!(normal.map(|d| d.name.as_str()).collect::<Vec<_>>(), ["serde"]);
}

#[test]
fn dependencies_have_licences_we_accept() {
    let metadata = metadata();
    let deny: toml::Table = include_str!("../../../deny.toml").parse().unwrap();
    let allowed: Vec<&str> =
        deny["licenses"]["allow"].as_array().unwrap().iter().map(|licence| licence.as_str().unwrap()).collect();
    for package in &metadata.packages {
        let expression = package.license.clone().unwrap_or_else(|| panic!("{} names no licence", package.name));
        assert!(accepts(&expression, &allowed), "{}: {expression}", package.name);
    }
}

/// An SPDX expression of names, `OR`, `AND` and brackets (and the old `/` for `OR`).
fn accepts(expression: &str, allowed: &[&str]) -> bool {
    let expression = expression.replace('/', " OR ");
    let any = |text: &str| text.split(" OR ").any(|licence| allowed.contains(&licence.trim().trim_matches(['(', ')'])));
    expression.split(" AND ").all(any)
}

#[test]
fn a_licence_expression_is_read() {
    let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"];
    for good in ["MIT", "MIT OR GPL-3.0", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
        assert!(accepts(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "AGPL-3.0-only"] {
        assert!(!accepts(bad, &allowed), "{bad}");
    }
}
