//! The binaries that are handed out: built against an old glibc, checked, with checksums beside them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::args::DistSpec;
use crate::glibc::{self, Glibc};
use crate::hardening;
use crate::target::Target;
use crate::tools::{self, Tools};

/// The oldest glibc that must do: JetPack 5's.
const FLOOR: Glibc = Glibc::new(2, 31);
const VERSION: &str = env!("CARGO_PKG_VERSION");
const SUMS: &str = "SHA256SUMS";

/// Builds every target, checks it and only then puts it where it can be taken from.
pub(crate) fn run(spec: &DistSpec) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies outside a repository")?;
    let build = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let build = std::path::absolute(build)?;
    let out = spec.out.clone().unwrap_or_else(|| root.join("dist"));
    fs::create_dir_all(&out).with_context(|| format!("{} cannot be made", out.display()))?;
    let tools = Tools::ensure(&build.join("dist-tools"))?;
    for &target in &spec.targets {
        let built = compile(&tools, root, &build, target, &spec.profile)?;
        let bytes = fs::read(&built).with_context(|| format!("cargo left no {}", built.display()))?;
        let highest = glibc::check(&bytes, target.elf_machine(), FLOOR)
            .and_then(|highest| hardening::check(&bytes).map(|()| highest))
            .with_context(|| format!("{} is not fit to hand out", built.display()))?;
        let path = out.join(file_name(target));
        place(&built, &path)?;
        let mib = bytes.len() as f64 / (1 << 20) as f64;
        println!("{}: {mib:.1} MiB, needs glibc {highest} (at most {FLOOR}); PIE, full RELRO", path.display());
    }
    write_sums(&out)
}

fn file_name(target: Target) -> String {
    format!("prony-{VERSION}-{}-linux", target.arch())
}

/// A build with a profile; the path of the binary.
fn compile(tools: &Tools, root: &Path, build: &Path, target: Target, profile: &str) -> Result<PathBuf> {
    target.ensure_installed()?;
    let triple = target.triple();
    eprintln!("building prony for {triple} and glibc {FLOOR}");
    let mut command = tools.zigbuild();
    command.current_dir(root);
    command.args(["--profile", profile, "--locked", "--package", "prony", "--bin", "prony"]);
    command.arg("--target").arg(format!("{triple}.{FLOOR}")).arg("--target-dir").arg(build);
    // Names of functions stay, for the backtrace in a report from the field; line tables would be most of the file.
    // (zig strips names too when asked to strip debug information alone, so none is made.)
    command.env("CARGO_PROFILE_RELEASE_DEBUG", "none").env("CARGO_PROFILE_RELEASE_STRIP", "none");
    // `-C target-cpu=native` in someone's shell must not end up in a binary for everyone.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    tools::run(&mut command).with_context(|| format!("prony was not built for {triple}"))?;
    // cargo's one exception.
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(build.join(triple).join(folder).join("prony"))
}

/// Copies under another name first: what lies in the folder under its own name is always whole.
fn place(from: &Path, to: &Path) -> Result<()> {
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    let copied = fs::copy(from, &part).map(drop).and_then(|()| fs::rename(&part, to));
    copied.with_context(|| format!("{} cannot be written", to.display()))
}

/// Checksums of every binary of this version in the folder, those of an earlier call included, as `sha256sum -c`
/// reads them.
fn write_sums(folder: &Path) -> Result<()> {
    let mut sums = String::new();
    for name in Target::ALL.map(file_name) {
        let path = folder.join(&name);
        if path.exists() {
            let bytes = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            writeln!(sums, "{}  {name}", hex(&Sha256::digest(bytes)))?;
        }
    }
    let path = folder.join(SUMS);
    fs::write(&path, sums).with_context(|| format!("{} cannot be written", path.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_the_binaries_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("built");
        fs::write(&source, "abc").unwrap();
        let name = file_name(Target::Aarch64);
        place(&source, &folder.path().join(&name)).unwrap();
        write_sums(folder.path()).unwrap();
        // The well-known digest of "abc".
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(fs::read_to_string(folder.path().join(SUMS)).unwrap(), format!("{digest}  {name}\n"));
    }

    #[test]
    fn a_binary_that_cannot_be_placed_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("prony-x");
        let message = format!("{:#}", place(&folder.path().join("missing"), &to).unwrap_err());
        assert!(message.contains("prony-x cannot be written"), "{message}");
    }
}
