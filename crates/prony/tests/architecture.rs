//! The rooms of the house as ARCHITECTURE.md has them, compared with the manifests. Upstream never calls downstream.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;
use prony_standin::skip;
use toml::{Table, Value};

fn read(path: &Path) -> Table {
    fs::read_to_string(path).unwrap().parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folders of all crates, by their short names: `types` is the package `prony-types`.
fn folders() -> BTreeMap<String, PathBuf> {
    let workspace = read(&root().join("Cargo.toml"));
    let members: Vec<&str> =
        workspace["workspace"]["members"].as_array().unwrap().iter().map(|member| member.as_str().unwrap()).collect();
    assert_eq!(members, ["crates/*", "xtask"], "another place for crates must be looked at here too");
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let all = crates.chain([root().join("xtask")]);
    all.map(|folder| (folder.file_name().unwrap().to_str().unwrap().to_owned(), folder)).collect()
}

/// The manifests of the workspace, by short name. Read as they are: cargo would want the crates of every platform for it.
fn manifests() -> BTreeMap<String, Table> {
    let manifest = |(name, folder): (String, PathBuf)| {
        let manifest = read(&folder.join("Cargo.toml"));
        let package = manifest["package"]["name"].as_str().unwrap();
        assert_eq!(short(package), name, "{package} is in the wrong folder");
        (name, manifest)
    };
    folders().into_iter().map(manifest).collect()
}

fn short(package: &str) -> &str {
    package.strip_prefix("prony-").unwrap_or(package)
}

/// What a crate itself uses, on whatever platform; not what its tests and build script do.
fn dependencies(manifest: &Table) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let tables = targets.map(|(_, target)| target.as_table().unwrap()).chain([manifest]);
    let all = tables.filter_map(|table| table.get("dependencies")?.as_table()).flatten();
    all.map(|(key, spec)| spec.get("package").and_then(Value::as_str).unwrap_or(key).to_owned()).collect()
}

/// Who uses whom: crates by their short names.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The crates of ours that each crate uses, by the manifests.
fn used() -> Uses {
    let ours = |manifest: &Table| {
        let all = dependencies(manifest);
        all.iter().filter_map(|package| package.strip_prefix("prony-")).map(str::to_owned).collect()
    };
    manifests().into_iter().map(|(name, manifest)| (name, ours(&manifest))).collect()
}

fn architecture() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// The table of crates: the first column and the last.
fn allowed(text: &str) -> Uses {
    let (_, table) = text.split_once("| crate | room | may use |\n").unwrap_or_else(|| panic!("no table of crates"));
    let rows = table.lines().take_while(|line| line.starts_with('|')).filter(|line| !line.starts_with("|---"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, _, uses] = cells[..] else { panic!("a row of the table has three cells: {line}") };
        let uses = uses.split(", ").filter(|&name| name != "-").map(str::to_owned).collect();
        (name.trim_matches('`').to_owned(), uses)
    };
    let rows: Vec<_> = rows.map(row).collect();
    let count = rows.len();
    let table: Uses = rows.into_iter().collect();
    assert_eq!(table.len(), count, "a crate has two rows");
    table
}

/// What the first has and the second has not, as `user uses used`.
fn missing(first: &Uses, second: &Uses) -> Vec<String> {
    let one = |(user, used): (&String, &BTreeSet<String>)| {
        let known = second.get(user);
        let alone = known.is_none().then(|| format!("{user} as a whole"));
        let more = used.iter().filter(|name| known.is_some_and(|known| !known.contains(*name)));
        alone.into_iter().chain(more.map(|name| format!("{user} uses {name}"))).collect::<Vec<_>>()
    };
    first.iter().flat_map(one).collect()
}

#[test]
fn no_room_uses_another_that_it_may_not_and_none_may_what_it_does_not() {
    let (allowed, used) = (allowed(&architecture()), used());
    assert!(used.len() > 15, "{used:?}");
    let forbidden = missing(&used, &allowed);
    assert!(forbidden.is_empty(), "not in the table of ARCHITECTURE.md: {forbidden:?}");
    let idle = missing(&allowed, &used);
    assert!(idle.is_empty(), "in the table of ARCHITECTURE.md, but not in the manifests: {idle:?}");
}

#[test]
fn a_table_of_crates_is_read_and_compared_in_both_directions() {
    let text = "# A\n\n| crate | room | may use |\n|---|---|---|\n| `a` | x \\| y | b, c |\n| `b` | z | - |\n\n| `d` | e | - |\n";
    let table = allowed(text);
    let uses = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(table, BTreeMap::from([("a".to_owned(), uses(&["b", "c"])), ("b".to_owned(), uses(&[]))]));
    let other = BTreeMap::from([("a".to_owned(), uses(&["b", "e"])), ("f".to_owned(), uses(&[]))]);
    assert_eq!(missing(&table, &other), ["a uses c", "b as a whole"]);
    assert_eq!(missing(&other, &table), ["a uses e", "f as a whole"]);
}

#[test]
fn no_manifest_names_a_room_that_the_code_does_not_use() {
    let (folders, used) = (folders(), used());
    let mut idle = Vec::new();
    for (user, names) in &used {
        let code = code_in(&folders[user].join("src"));
        let unused = names.iter().filter(|name| !code.contains(&format!("prony_{name}")));
        idle.extend(unused.map(|name| format!("{user}: prony-{name}")));
    }
    assert!(idle.is_empty(), "take these out of the manifests: {idle:?}");
}

/// The picture of the crates: its layers from top to bottom, and its arrows.
#[derive(Debug, Default)]
struct Picture {
    layers: Vec<BTreeSet<String>>,
    arrows: Vec<(String, String)>,
}

impl Picture {
    /// The one picture of a text in Mermaid's language.
    fn read(text: &str) -> Picture {
        let pictures: Vec<&str> = text.split("```mermaid\n").skip(1).collect();
        let [picture] = pictures[..] else { panic!("expected one picture, found {}", pictures.len()) };
        let mut found = Picture::default();
        let names = |text: &str| text.split(" & ").map(|name| name.trim().to_owned()).collect::<Vec<_>>();
        for line in picture.lines().map(str::trim).take_while(|line| *line != "```") {
            if line.starts_with("flowchart ") || line == "end" || line.is_empty() {
            } else if line.starts_with("subgraph ") {
                found.layers.push(BTreeSet::new());
            } else if let Some((from, to)) = line.split_once(" --> ") {
                let pairs =
                    names(from).into_iter().flat_map(|from| names(to).into_iter().map(move |to| (from.clone(), to)));
                found.arrows.extend(pairs);
            } else {
                let layer = found.layers.last_mut().unwrap_or_else(|| panic!("{line} is in no layer"));
                layer.extend(names(line));
            }
        }
        found
    }

    /// Number of a crate's layer, 0 at the top.
    fn layer(&self, name: &str) -> usize {
        let layer = self.layers.iter().position(|layer| layer.contains(name));
        layer.unwrap_or_else(|| panic!("{name} is in no layer"))
    }

    /// What is wrong with it, where the crates use each other so.
    fn problems(&self, uses: &Uses) -> Vec<String> {
        let mut problems = Vec::new();
        let drawn: Vec<&String> = self.layers.iter().flatten().collect();
        let twice = drawn.iter().filter(|name| drawn.iter().filter(|other| other == name).count() > 1);
        problems.extend(twice.map(|name| format!("{name} is in two layers")));
        problems.extend(uses.keys().filter(|name| !drawn.contains(name)).map(|name| format!("{name} is missing")));
        problems
            .extend(drawn.iter().filter(|name| !uses.contains_key(**name)).map(|name| format!("{name} is no crate")));
        for (from, to) in &self.arrows {
            if self.layer(from) >= self.layer(to) {
                problems.push(format!("{from} --> {to} does not go down"));
            }
            if !uses.get(from).is_some_and(|used| used.contains(to)) {
                problems.push(format!("{from} --> {to} is no use"));
            }
        }
        // What a crate uses by way of another needs no arrow of its own.
        for (from, used) in uses {
            let hidden = used.iter().filter(|to| !self.leads(from, to));
            problems.extend(hidden.map(|to| format!("no arrows lead from {from} to {to}")));
        }
        problems
    }

    fn leads(&self, from: &str, to: &str) -> bool {
        let mut next = self.arrows.iter().filter(|(start, _)| start == from);
        next.any(|(_, end)| end == to || self.layer(end) > self.layer(from) && self.leads(end, to))
    }
}

#[test]
fn the_picture_shows_the_crates_and_their_uses_from_top_to_bottom() {
    let text = architecture();
    let problems = Picture::read(&text).problems(&allowed(&text));
    assert!(problems.is_empty(), "the picture in ARCHITECTURE.md: {problems:#?}");
}

#[test]
fn a_picture_that_is_wrong_is_told_from_one_that_is_right() {
    let uses = |rows: &[(&str, &[&str])]| -> Uses {
        rows.iter().map(|(name, used)| ((*name).to_owned(), used.iter().map(|&one| one.to_owned()).collect())).collect()
    };
    let house = uses(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[]), ("d", &[])]);
    let draw = |layers: &str, arrows: &str| format!("x\n```mermaid\nflowchart TD\n{layers}\n{arrows}\n```\ny\n");
    let layers = "subgraph top\na\nend\nsubgraph middle\nb\nend\nsubgraph bottom\nc & d\nend";
    let problems = |text: &str| Picture::read(text).problems(&house);
    assert_eq!(problems(&draw(layers, "a --> b\nb --> c")), [""; 0]);
    assert_eq!(problems(&draw(layers, "a --> b & c\nb --> c")), [""; 0]);
    assert_eq!(problems(&draw(layers, "a --> b")), ["no arrows lead from a to c", "no arrows lead from b to c"]);
    assert_eq!(problems(&draw(layers, "a --> b\nb --> c & d")), ["b --> d is no use"]);
    assert_eq!(problems(&draw(layers, "a --> b\nb --> c\nc --> b")), ["c --> b does not go down", "c --> b is no use"]);
    let flat = "subgraph top\na\nend\nsubgraph bottom\nb & c & e\nend";
    let expected = ["d is missing", "e is no crate", "b --> c does not go down"];
    assert_eq!(problems(&draw(flat, "a --> b\nb --> c")), expected);
}

/// The Rust files in a folder, one after the other.
fn code_in(folder: &Path) -> String {
    let of_entry = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => code_in(&path),
        Some(ending) if ending == "rs" => fs::read_to_string(&path).unwrap(),
        _ => String::new(),
    };
    fs::read_dir(folder).unwrap().map(|entry| of_entry(entry.unwrap().path())).collect()
}

/// A crate that grows beyond this is several. `forge` has a file for each module of a checkpoint and each operator.
#[test]
fn no_crate_is_too_large() {
    let limit = |name: &str| match name {
        "forge" => usize::MAX,
        "prony" => 7_000,
        _ => 10_000,
    };
    let sizes = folders().into_iter().map(|(name, folder)| (code_in(&folder.join("src")).lines().count(), name));
    let large = sizes.filter(|(size, name)| *size > limit(name));
    let large: Vec<String> =
        large.map(|(size, name)| format!("{name}: {size} lines, limit {}", limit(&name))).collect();
    assert!(large.is_empty(), "split these, see ARCHITECTURE.md: {large:?}");
}

#[test]
fn the_contract_depends_on_serde_alone() {
    let manifests = manifests();
    assert_eq!(dependencies(&manifests["types"]), BTreeSet::from(["serde".to_owned()]));
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
