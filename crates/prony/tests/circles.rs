//! Top-level modules of a crate use each other in one direction, as crates do. A circle makes one module of them, whatever
//! the number of files.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

#[path = "circles/graph.rs"]
mod graph;
#[path = "circles/tokens.rs"]
mod tokens;

use graph::Graph;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The root files of every crate, from the root of the repository.
fn roots() -> Vec<(String, PathBuf)> {
    let crates = fs::read_dir(repository().join("crates")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = crates.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    let folders = names.into_iter().map(|name| (Path::new("crates").join(&name), name));
    let all = folders.chain([(PathBuf::from("xtask"), "xtask".to_owned())]);
    let files =
        all.flat_map(|(folder, name)| ["src/lib.rs", "src/main.rs"].map(|file| (name.clone(), folder.join(file))));
    files.filter(|(_, file)| repository().join(file).is_file()).collect()
}

#[test]
fn no_crate_has_modules_that_use_each_other_in_a_circle() {
    let read = |path: &Path| fs::read_to_string(repository().join(path)).ok();
    let mut circles = Vec::new();
    let roots = roots();
    assert!(roots.len() > 17, "{roots:?}");
    for (name, file) in &roots {
        let graph = Graph::read(file, &read);
        assert!(graph.unknown.is_empty(), "names that the root of {name} does not declare: {:#?}", graph.unknown);
        circles.extend(graph.circles().iter().map(|circle| format!("{name}: {}", graph.describe(circle))));
    }
    assert!(circles.is_empty(), "modules use each other in a circle:\n{}", circles.join("\n"));
}

/// The circles of a crate made of these files, as `a b` for one of two modules.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let read = |path: &Path| {
        let found = files.iter().find(|(name, _)| Path::new(name) == path)?;
        Some(found.1.to_owned())
    };
    let graph = Graph::read(Path::new(files[0].0), &read);
    assert!(graph.unknown.is_empty(), "{:?}", graph.unknown);
    graph.circles().iter().map(|circle| circle.join(" ")).collect()
}

#[test]
fn a_circle_of_two_and_one_of_three_are_found() {
    let root = ("lib.rs", "mod a;\nmod b;\nmod c;\n");
    let files = |a, b, c| [root, ("a.rs", a), ("b.rs", b), ("c.rs", c)];
    assert_eq!(circles_of(&files("use crate::b::B;", "fn f() { crate::a::g(); }", "")), ["a b"]);
    assert_eq!(
        circles_of(&files("use crate::b;", "use super::{c::C};", "use crate::{\n    a::{A, B},\n};")),
        ["a b c"]
    );
    assert_eq!(circles_of(&files("use crate::{b::B, c};", "use crate::c;", "use crate::c::D; use self::d;")), [""; 0]);
    let two = circles_of(&files("use crate::b;", "use crate::{a, c};", "use crate::b as d;"));
    assert_eq!(two, ["a b", "b c"]);
}

#[test]
fn modules_below_and_the_paths_from_them_count() {
    let files = |inner| {
        [("lib.rs", "mod a; mod b;"), ("a.rs", "mod inner;"), ("a/inner.rs", inner), ("b.rs", "use crate::a::A;")]
    };
    assert_eq!(circles_of(&files("use super::super::b::B;")), ["a b"]);
    assert_eq!(circles_of(&files("use super::{super::b, c};")), ["a b"]);
    assert_eq!(circles_of(&files("mod m { use super::super::super::b; }")), ["a b"]);
    assert_eq!(circles_of(&files("use super::b;")), [""; 0]);
    assert_eq!(circles_of(&files("mod $name { use super::*; }")), [""; 0]);
    let folder =
        [("lib.rs", "mod a; mod b;"), ("a/mod.rs", "mod c;"), ("a/c.rs", "crate::b::x()"), ("b.rs", "crate::a::y()")];
    assert_eq!(circles_of(&folder), ["a b"]);
}

#[test]
fn a_circle_through_a_re_export_is_found() {
    let files = |root, b| [("lib.rs", root), ("a.rs", "use crate::b::B;"), ("b.rs", b)];
    for root in
        ["mod a; mod b; pub use a::{A, X as Y};", "mod a; mod b; pub(crate) use self::a::{self, A, c::{X as Y}};"]
    {
        assert_eq!(circles_of(&files(root, "use crate::A;")), ["a b"]);
        assert_eq!(circles_of(&files(root, "use crate::Y;")), ["a b"]);
        assert_eq!(circles_of(&files(root, "use crate::*;")), ["a b"]);
    }
    // A name of another crate that the root imports is of no module.
    assert_eq!(circles_of(&files("mod a; mod b; use std::fs;", "use crate::fs;")), [""; 0]);
}

#[test]
fn the_root_file_is_a_module_too() {
    let files = |root, a| [("lib.rs", root), ("a.rs", a)];
    assert_eq!(circles_of(&files("mod a; use a::A; pub struct S(A);", "use crate::S;")), ["a lib.rs"]);
    assert_eq!(circles_of(&files("mod a; pub fn f() { a::g(); }", "use super::f;")), ["a lib.rs"]);
    assert_eq!(circles_of(&files("mod a; use a; pub const C: u8 = 1;", "use crate::C;")), ["a lib.rs"]);
    assert_eq!(circles_of(&files("mod a; pub use a::A; pub struct S;", "use crate::S;")), [""; 0]);
    assert_eq!(circles_of(&files("mod a; pub fn f() { a::g(); }", "fn g() {}")), [""; 0]);
}

#[test]
fn a_macro_of_the_root_is_a_use_without_a_path() {
    let files =
        |b| [("main.rs", "#[macro_use] mod a; mod b;"), ("a.rs", "macro_rules! say { } use crate::b;"), ("b.rs", b)];
    assert_eq!(circles_of(&files("say!(1)")), ["a b"]);
    assert_eq!(circles_of(&files("say(1)")), [""; 0]);
}

#[test]
fn comments_strings_and_tests_make_no_circle() {
    let files = |b| [("lib.rs", "mod a;\nmod b;\n"), ("a.rs", "use crate::b::B;"), ("b.rs", b)];
    for b in [
        "// use crate::a;",
        "/// [`A`](crate::a::A)\nstruct B;",
        "const TEXT: &str = \"crate::a::A\";",
        "#[cfg(test)]\nmod tests { use crate::a::A; }",
        "#[cfg(test)]\nmod tests;",
        "#[cfg(test)]\nuse crate::{a::A, b::C};",
        "use other::a; pub(crate) fn f() { x.a::<u8>(); ::a::b(); }",
    ] {
        assert_eq!(circles_of(&files(b)), [""; 0], "{b}");
    }
}
