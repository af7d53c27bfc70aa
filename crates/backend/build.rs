//! Passes the version of the embedded engine on, so that records name what really ran.
#![expect(clippy::disallowed_macros, reason = "what cargo reads")]

use std::path::Path;
use std::{env, fs};

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let lock = Path::new(&root).join("../../Cargo.lock");
    println!("cargo:rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(&lock).unwrap_or_default();
    let version = text
        .split("[[package]]")
        .find(|package| package.contains("\nname = \"rten\"\n"))
        .and_then(|package| package.lines().find_map(|line| line.strip_prefix("version = ")))
        .map_or("unknown", |version| version.trim_matches('"'));
    println!("cargo:rustc-env=PRONY_RTEN_VERSION={version}");
}
