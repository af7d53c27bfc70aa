//! Prony's home: the one folder that it keeps things in between runs.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The home folder: the flag, else `PRONY_HOME`, else `prony` in the XDG data folder. It need not exist yet.
pub fn folder(flag: Option<&Path>) -> anyhow::Result<PathBuf> {
    let chosen = choose(flag, |name| env::var_os(name));
    let chosen = chosen.context("no home folder: none of PRONY_HOME, XDG_DATA_HOME and HOME is set; use --home DIR")?;
    std::path::absolute(&chosen).with_context(|| format!("cannot make {} absolute", chosen.display()))
}

/// Where installed runtimes are.
pub fn runtimes(home: &Path) -> PathBuf {
    home.join("runtimes")
}

/// Where caches are kept from run to run.
pub fn cache(home: &Path) -> PathBuf {
    home.join("cache")
}

/// Where artifacts are kept in a folder of caches.
pub fn artifacts(cache: &Path) -> PathBuf {
    cache.join("artifacts")
}

/// Where references are kept in a folder of caches.
pub fn references(cache: &Path) -> PathBuf {
    cache.join("reference")
}

fn choose(flag: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG specification has relative paths ignored.
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    flag.map(Path::to_owned)
        .or_else(|| variable("PRONY_HOME"))
        .or_else(|| Some(absolute("XDG_DATA_HOME")?.join("prony")))
        .or_else(|| Some(variable("HOME")?.join(".local/share/prony")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_wish_wins() {
        let all = [("PRONY_HOME", "/p"), ("XDG_DATA_HOME", "/x"), ("HOME", "/h")];
        let of = |known: &[(&str, &str)], flag: Option<&str>| {
            let value = |name: &str| known.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            choose(flag.map(Path::new), value).map(|path| path.display().to_string())
        };
        assert_eq!(of(&all, Some("/f")).as_deref(), Some("/f"));
        assert_eq!(of(&all, None).as_deref(), Some("/p"));
        assert_eq!(of(&all[1..], None).as_deref(), Some("/x/prony"));
        assert_eq!(of(&[("XDG_DATA_HOME", "x"), ("HOME", "/h")], None).as_deref(), Some("/h/.local/share/prony"));
        assert_eq!(of(&[("PRONY_HOME", ""), ("HOME", "/h")], None).as_deref(), Some("/h/.local/share/prony"));
        assert_eq!(of(&[], None), None);
    }
}
