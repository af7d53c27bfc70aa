//! The machines that binaries are built for.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::tools;

/// A machine with Linux and glibc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// PCs and servers.
    X86_64,
    /// Jetson and other 64-bit ARM.
    Aarch64,
}

impl Target {
    /// All of them.
    pub(crate) const ALL: [Target; 2] = [Target::X86_64, Target::Aarch64];

    /// As in file names.
    pub(crate) const fn arch(self) -> &'static str {
        match self {
            Target::X86_64 => "x86_64",
            Target::Aarch64 => "aarch64",
        }
    }

    /// As rustc calls it.
    pub(crate) const fn triple(self) -> &'static str {
        match self {
            Target::X86_64 => "x86_64-unknown-linux-gnu",
            Target::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// As the header of an ELF file calls it.
    pub(crate) const fn elf_machine(self) -> u16 {
        match self {
            Target::X86_64 => 62,
            Target::Aarch64 => 183,
        }
    }

    /// Sees to it that the toolchain has a standard library for this machine.
    pub(crate) fn ensure_installed(self) -> Result<()> {
        if self.has_standard_library()? {
            return Ok(());
        }
        let triple = self.triple();
        eprintln!("adding the standard library for {triple}");
        tools::run(Command::new("rustup").args(["target", "add", triple])).with_context(|| {
            format!("no standard library for {triple}, and rustup could not add it; install rustup, or Rust with that target")
        })?;
        ensure!(
            self.has_standard_library()?,
            "rustup added {triple}, but to another toolchain than cargo's; check `rustup show`"
        );
        Ok(())
    }

    fn has_standard_library(self) -> Result<bool> {
        let mut rustc = Command::new("rustc");
        rustc.args(["--print", "target-libdir", "--target", self.triple()]);
        let printed = rustc.output().context("rustc could not be started; install Rust")?;
        ensure!(printed.status.success(), "rustc does not know {}", self.triple());
        Ok(PathBuf::from(String::from_utf8(printed.stdout)?.trim()).is_dir())
    }
}
