//! Programs by their name. A shell takes an empty or relative entry of `PATH` for the current folder, and runs what lies there.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::owner_problem;

/// The folders of a search path such as `PATH` or `LD_LIBRARY_PATH`, without those that depend on the current folder.
pub fn search_folders(value: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(value).filter(|folder| folder.is_absolute()).collect()
}

/// `PATH` without the entries that depend on the current folder, for programs that start others; `None` where it is not set.
pub fn safe_path() -> Option<OsString> {
    let value = std::env::var_os("PATH")?;
    // What was joined once can be joined again.
    std::env::join_paths(search_folders(&value)).ok()
}

/// The first program of this name on `PATH` that belongs to root or the user and that nobody else may write to: see
/// [`owner_problem`]. The error names what was passed over.
pub fn find_program(name: &str) -> io::Result<PathBuf> {
    find_in(&std::env::var_os("PATH").unwrap_or_default(), name)
}

fn find_in(path: &OsStr, name: &str) -> io::Result<PathBuf> {
    let mut passed_over = String::new();
    for program in search_folders(path).into_iter().map(|folder| folder.join(name)) {
        if !is_program(&program) {
            continue;
        }
        let problem = match owner_problem(&program) {
            Ok(None) => return Ok(program),
            Ok(Some(problem)) => problem,
            Err(error) => error.to_string(),
        };
        passed_over += &format!("; {} was passed over: {problem}", program.display());
    }
    Err(io::Error::new(io::ErrorKind::NotFound, format!("{name} was not found on PATH{passed_over}")))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn program(folder: &Path, name: &str, mode: u32) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn an_empty_entry_of_path_was_the_current_folder() {
        for (value, folders) in [
            ("", &[][..]),
            (":", &[]),
            (":/usr/bin", &["/usr/bin"]),
            ("/usr/bin:", &["/usr/bin"]),
            ("/a::/b", &["/a", "/b"]),
            (".:bin:../x:/a", &["/a"]),
        ] {
            let expected: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
            assert_eq!(search_folders(OsStr::new(value)), expected, "{value}");
        }
    }

    #[test]
    fn a_program_that_others_may_write_was_run() {
        let top = tempfile::tempdir().unwrap();
        let (open, plain, own) = (top.path().join("open"), top.path().join("plain"), top.path().join("own"));
        program(&open, "tool", 0o777);
        program(&plain, "tool", 0o644);
        let path = std::env::join_paths([&open, &plain, &own]).unwrap();
        let error = find_in(&path, "tool").unwrap_err().to_string();
        assert!(error.starts_with("tool was not found on PATH; ") && error.contains("writable by everyone"), "{error}");
        assert!(!error.contains("plain"), "{error}");
        let good = program(&own, "tool", 0o755);
        assert_eq!(find_in(&path, "tool").unwrap(), good);
    }
}
