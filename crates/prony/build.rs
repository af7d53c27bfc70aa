//! Puts the commit into `--version`.
#![expect(clippy::disallowed_macros, reason = "what cargo reads")]

use std::path::Path;
use std::process::Command;

fn main() {
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|text| !text.is_empty())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let dirty = git(&["status", "--porcelain", "--untracked-files=no"]).is_some();
    let version = match commit {
        Some(commit) => format!("{version} ({commit}{})", if dirty { ", modified" } else { "" }),
        None => version,
    };
    println!("cargo:rustc-env=PRONY_VERSION={version}");
    // The branch's file changes with every commit; the index with every staged change.
    for file in ["HEAD", "index", "refs/heads"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file])
            && Path::new(&path).exists()
        {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
}
