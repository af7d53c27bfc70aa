//! The cross linker: cargo-zigbuild and zig, fetched as Python packages into the target folder. Nothing is installed
//! outside it, and the versions are fixed, so that two machines build with the same tools.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The packages, exactly.
const PACKAGES: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.16.0"];
/// Says, with the packages as its text, that an installation ran to its end.
const STAMP: &str = "installed";

/// Where the tools are.
#[derive(Debug)]
pub(crate) struct Tools {
    folder: PathBuf,
    zigbuild: PathBuf,
    zig: PathBuf,
}

impl Tools {
    /// Finds the tools in `folder`, or puts them there.
    pub(crate) fn ensure(folder: &Path) -> Result<Tools> {
        let wanted = PACKAGES.join("\n");
        if fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == wanted) {
            return Tools::find(folder);
        }
        eprintln!("fetching {} with pip (about 100 MB)", PACKAGES.join(" and "));
        // What another version, or an installation that was cut short, has left.
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        install(folder)?;
        let tools = Tools::find(folder)?;
        fs::write(folder.join(STAMP), wanted)?;
        Ok(tools)
    }

    fn find(folder: &Path) -> Result<Tools> {
        let zigbuild = folder.join("bin/cargo-zigbuild");
        let zig = package_folders(folder).map(|packages| packages.join("ziglang/zig")).find(|zig| zig.is_file());
        match zig {
            Some(zig) if zigbuild.is_file() => Ok(Tools { folder: folder.to_owned(), zigbuild, zig }),
            _ => bail!("cargo-zigbuild or zig is missing in {}; remove that folder and try again", folder.display()),
        }
    }

    /// `cargo zigbuild`, ready for more arguments.
    pub(crate) fn zigbuild(&self) -> Command {
        let mut command = Command::new(&self.zigbuild);
        command.arg("zigbuild");
        command.env("CARGO_ZIGBUILD_ZIG_PATH", &self.zig);
        // Both would otherwise write into the home folder.
        command.env("CARGO_ZIGBUILD_CACHE_DIR", self.folder.join("cache"));
        command.env("ZIG_GLOBAL_CACHE_DIR", self.folder.join("cache/zig"));
        command
    }
}

/// Where packages may lie: in the folder itself, or in that of a virtual environment.
fn package_folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let versions = fs::read_dir(folder.join("lib")).into_iter().flatten().flatten();
    let environment = versions.map(|version| version.path().join("site-packages"));
    std::iter::once(folder.to_owned()).chain(environment)
}

/// Into a virtual environment; where Python comes without (Debian packs it apart), with its pip into a plain folder.
fn install(folder: &Path) -> Result<()> {
    let python = || Command::new("python3");
    if !succeeds(python().args(["-c", ""])) {
        bail!("python3 was not found, and cargo-zigbuild and zig are fetched with it; install python3 and python3-pip");
    }
    if succeeds(python().args(["-c", "import venv, ensurepip"])) {
        run(python().args(["-m", "venv"]).arg(folder))?;
        return run(Command::new(folder.join("bin/python3")).args(["-m", "pip", "install"]).args(PACKAGES));
    }
    if succeeds(python().args(["-m", "pip", "--version"])) {
        return run(python().args(["-m", "pip", "install", "--target"]).arg(folder).args(PACKAGES));
    }
    bail!("python3 has neither venv nor pip, and cargo-zigbuild and zig are fetched with it; install python3-pip")
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Runs a command to its end with its output on stderr; an error names it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let status = command.stdout(Stdio::from(io::stderr())).status();
    let status = status.with_context(|| format!("{name} could not be started"))?;
    if !status.success() {
        bail!("{name} failed ({status}); its own words are above");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    #[test]
    fn tools_are_found_in_both_layouts() {
        for layout in ["ziglang/zig", "lib/python3.11/site-packages/ziglang/zig"] {
            let folder = tempfile::tempdir().unwrap();
            touch(&folder.path().join("bin/cargo-zigbuild"));
            let message = Tools::find(folder.path()).unwrap_err().to_string();
            assert!(message.contains("remove that folder"), "{message}");
            touch(&folder.path().join(layout));
            assert_eq!(Tools::find(folder.path()).unwrap().zig, folder.path().join(layout));
        }
    }

    #[test]
    fn a_command_that_fails_is_named() {
        let failed = run(&mut Command::new("false")).unwrap_err().to_string();
        assert!(failed.starts_with("false failed (exit status: 1)"), "{failed}");
        let missing = run(&mut Command::new("/nowhere/zigbuild")).unwrap_err().to_string();
        assert_eq!(missing, "zigbuild could not be started");
    }
}
