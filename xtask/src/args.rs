//! The command line of the chores; too small for a library.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::target::Target;

/// What `--help` prints.
pub(crate) const HELP: &str = "\
Chores of the repository that cargo alone cannot do.

Usage: cargo xtask dist [--target x86_64|aarch64|all] [--out DIR] [--profile NAME]
       cargo xtask gpu [MODEL.onnx ...]

dist  Build release binaries that run wherever glibc is 2.31 or later (JetPack 5, Debian 11, Ubuntu 20.04), check that
      they do, and write DIR/prony-<version>-<arch>-linux and DIR/SHA256SUMS.

  --target LIST   What to build for [default: all]
  --out DIR       Where to put it [default: dist in the repository]
  --profile NAME  Profile of Cargo.toml to build with; `emulated` compiles faster and is for tests [default: release]

gpu   Build the release binary and check on this machine's NVIDIA GPU what CI cannot: stages on the device, placement,
      agreement, limits and fallbacks of ort-cuda (tools/gpu_check), and TensorRT and its engines
      (tools/gpu_check_tensorrt, tools/gpu_check_engines). Without a GPU it says that it was skipped.

dist needs python3 with venv or pip, which fetches cargo-zigbuild and ziglang into the target folder, and rustup where the
standard library of a target is not installed yet.

Examples:
  cargo xtask dist
  cargo xtask dist --target aarch64 --out /tmp/jetson
  cargo xtask gpu yolo11n.onnx
";

/// One chore with everything it needs to know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    /// Say what there is.
    Help,
    /// Build what is handed out.
    Dist(DistSpec),
    /// Check what needs a GPU, on these models too.
    Gpu(Vec<String>),
}

/// What to build and where to put it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DistSpec {
    /// In the order in which they are built, without repetition.
    pub(crate) targets: Vec<Target>,
    /// As typed; the repository's `dist` where it was not.
    pub(crate) out: Option<PathBuf>,
    /// As in Cargo.toml.
    pub(crate) profile: String,
}

/// Reads the words after `cargo xtask`.
pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Chore> {
    // `--flag=value` is `--flag value`.
    let mut words = words.flat_map(|word| match word.split_once('=') {
        Some((flag, value)) if flag.starts_with("--") => vec![flag.to_owned(), value.to_owned()],
        _ => vec![word],
    });
    match words.next().as_deref() {
        Some("dist") => {}
        Some("gpu") => return gpu(words.collect()),
        Some("--help" | "-h" | "help") => return Ok(Chore::Help),
        Some(other) => bail!("`{other}` is no chore; there are `dist` and `gpu`"),
        None => bail!("name a chore; there are `dist` and `gpu`"),
    }
    let mut spec = DistSpec { targets: Target::ALL.to_vec(), out: None, profile: "release".to_owned() };
    while let Some(flag) = words.next() {
        let mut value = || words.next().with_context(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--help" | "-h" => return Ok(Chore::Help),
            "--target" => spec.targets = targets(&value()?)?,
            "--out" => spec.out = Some(PathBuf::from(value()?)),
            "--profile" => spec.profile = value()?,
            other => bail!("`{other}` is not an option of dist"),
        }
    }
    Ok(Chore::Dist(spec))
}

fn gpu(models: Vec<String>) -> Result<Chore> {
    if models.iter().any(|word| word == "--help" || word == "-h") {
        return Ok(Chore::Help);
    }
    match models.iter().find(|word| word.starts_with('-')) {
        Some(flag) => bail!("`{flag}` is not an option of gpu"),
        None => Ok(Chore::Gpu(models)),
    }
}

fn targets(list: &str) -> Result<Vec<Target>> {
    let mut targets = Vec::new();
    for name in list.split(',') {
        let named = Target::ALL.into_iter().filter(|target| name == "all" || name == target.arch());
        let before = targets.len();
        targets.extend(named);
        if targets.len() == before {
            bail!("`{name}` is no target; there are x86_64, aarch64 and all");
        }
    }
    targets.sort_unstable();
    targets.dedup();
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Chore> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn targets_folder_and_profile_are_read() {
        let both = vec![Target::X86_64, Target::Aarch64];
        let dist = |targets: &[Target], out: Option<&str>, profile: &str| {
            Chore::Dist(DistSpec {
                targets: targets.to_vec(),
                out: out.map(PathBuf::from),
                profile: profile.to_owned(),
            })
        };
        assert_eq!(read("dist").unwrap(), dist(&both, None, "release"));
        assert_eq!(read("dist --target aarch64 --out x").unwrap(), dist(&[Target::Aarch64], Some("x"), "release"));
        assert_eq!(read("dist --target=aarch64,all").unwrap(), dist(&both, None, "release"));
        assert_eq!(read("dist --profile emulated").unwrap(), dist(&both, None, "emulated"));
        assert_eq!(read("dist --target x86_64 -h").unwrap(), Chore::Help);
        assert_eq!(read("--help").unwrap(), Chore::Help);
        assert_eq!(read("gpu a.onnx").unwrap(), Chore::Gpu(vec!["a.onnx".into()]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, name) in [
            ("", "name a chore"),
            ("deploy", "`deploy`"),
            ("dist --target riscv64", "`riscv64`"),
            ("dist --target", "--target needs a value"),
            ("dist --taget all", "`--taget`"),
            ("dist extra", "`extra`"),
            ("gpu --fast", "`--fast`"),
        ] {
            let message = read(line).unwrap_err().to_string();
            assert!(message.contains(name), "{line}: {message}");
        }
    }
}
