//! Where the journal of changes to the machine lies. It is about the machine and not about a home, so it lies where every
//! later command looks, whatever home that one is given.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Root's, which is where nearly every journal lies: what is changed takes root. Nobody else may write there, so that root
/// undoes nothing that someone else made up.
const OF_ROOT: &str = "/var/lib/prony";

/// Where this user's journal is made.
pub fn folder() -> anyhow::Result<PathBuf> {
    own(is_root(), |name| env::var_os(name))
        .context("no place for the journal of --prepare: neither XDG_STATE_HOME nor HOME is set")
}

/// Where a journal may lie that this user can undo, or should know of.
pub fn folders() -> Vec<PathBuf> {
    let own = folder().ok();
    let of_root = Some(PathBuf::from(OF_ROOT)).filter(|root| told().is_none() && own.as_ref() != Some(root));
    own.into_iter().chain(of_root).collect()
}

fn own(root: bool, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // The XDG specification has relative paths ignored.
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    told()
        .or_else(|| root.then(|| Path::new(OF_ROOT).to_owned()))
        .or_else(|| Some(absolute("XDG_STATE_HOME")?.join("prony")))
        .or_else(|| Some(absolute("HOME")?.join(".local/state/prony")))
}

/// Debug builds can be told of another folder: tests have no business in this machine's.
fn told() -> Option<PathBuf> {
    let told = if cfg!(debug_assertions) { env::var_os("PRONY_TEST_STATE") } else { None };
    told.map(PathBuf::from)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_one_place_and_everybody_else_their_own() {
        let of = |root: bool, known: &[(&str, &str)]| {
            let value = |name: &str| known.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            own(root, value).map(|path| path.display().to_string())
        };
        let all = [("XDG_STATE_HOME", "/s"), ("HOME", "/h"), ("PRONY_HOME", "/p")];
        assert_eq!(of(true, &all).as_deref(), Some("/var/lib/prony"), "whatever sudo keeps of the environment");
        assert_eq!(of(false, &all).as_deref(), Some("/s/prony"));
        assert_eq!(of(false, &all[1..]).as_deref(), Some("/h/.local/state/prony"));
        assert_eq!(of(false, &[("XDG_STATE_HOME", "s")]), None);
    }
}
