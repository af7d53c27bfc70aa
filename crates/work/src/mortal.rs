//! A program that ends when its parent does, however that one ends. To be told by the kernel, the child itself must ask for
//! it: so this binary is started, asks, and becomes the program.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// First argument of the command line of a child that becomes a program.
pub const CHILD_VERB: &str = "child";

/// This binary: what is running, even if the file has been replaced meanwhile.
const SELF: &str = "/proc/self/exe";

/// A command for a program that ends with this process. To be started from the thread that lives longest: the kernel takes
/// that thread for the parent.
pub fn mortal(program: &Path) -> Command {
    let mut command = Command::new(SELF);
    command.arg(CHILD_VERB).arg(program);
    command
}

/// Has the kernel end this process with its parent. An error where that one is gone already.
pub fn die_with_parent() -> io::Result<()> {
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != parent {
        // It died before the line above.
        return Err(io::Error::other("nobody is there to work for"));
    }
    Ok(())
}

/// Becomes the program that the words name, after it was arranged that the kernel ends it with its parent. Returns only if
/// that fails.
pub fn run_child(words: impl Iterator<Item = OsString>) -> io::Error {
    let words: Vec<OsString> = words.collect();
    let Some((program, arguments)) = words.split_first() else {
        return io::Error::other("a child of Prony's, not a command");
    };
    if let Err(error) = die_with_parent() {
        return error;
    }
    // A bare name is looked for on PATH by the rules of this house: the kernel's would take the current folder for an empty entry.
    let program = match program.to_str().filter(|name| !name.contains('/')) {
        Some(name) => match prony_files::find_program(name) {
            Ok(program) => program,
            Err(error) => return error,
        },
        None => program.into(),
    };
    let path = prony_files::safe_path().map(|path| ("PATH", path));
    let error = Command::new(&program).args(arguments).envs(path).exec();
    io::Error::new(error.kind(), format!("cannot run {}: {error}", program.display()))
}

/// Becomes this very command again, with these variables in its environment. Returns only if that fails.
pub fn start_again(variables: impl IntoIterator<Item = (&'static str, OsString)>) -> io::Error {
    match std::env::current_exe() {
        Ok(program) => Command::new(program).args(std::env::args_os().skip(1)).envs(variables).exec(),
        Err(error) => error,
    }
}
