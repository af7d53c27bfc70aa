//! Which libraries may be opened. The command line decides it once; everything that opens a library, runs a program or starts a
//! child that does so asks here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::bail;
use prony_files::{owner_problem, safe_path, search_folders};
use prony_types::RuntimeName;

use crate::discovery::{Candidate, Refusal};

/// Set where this process has started itself again with other search paths.
pub const STARTED_AGAIN: &str = "PRONY_STARTED_AGAIN";
/// The loader's variable.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// Which libraries and programs may be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Those that belong to root or the user, and that nobody else may write to.
    #[default]
    OwnOnly,
    /// Whoever owns them: `--trust-library`.
    TrustAll,
    /// None: `--no-libraries`.
    OpenNone,
}

/// Why a file is not opened, and what would change that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotOpened {
    /// Why.
    pub reason: String,
    /// What to do.
    pub remedy: String,
}

static POLICY: OnceLock<Policy> = OnceLock::new();

/// Decides for this process; once, by `main`.
pub fn set_policy(policy: Policy) {
    let _ = POLICY.set(policy);
}

/// What was decided.
pub fn policy() -> Policy {
    POLICY.get().copied().unwrap_or_default()
}

impl Policy {
    /// Whether a file may be opened; if only because it is trusted, what speaks against it.
    pub fn ruling(self, candidate: &Candidate) -> Result<Option<String>, NotOpened> {
        match (self, &candidate.refusal) {
            (Policy::OpenNone, _) => Err(NotOpened {
                reason: "--no-libraries was given".to_owned(),
                remedy: "leave --no-libraries out".to_owned(),
            }),
            (_, Some(Refusal::NotActivated)) => Err(NotOpened {
                reason: "found in an environment that is not activated".to_owned(),
                remedy: format!(
                    "activate the environment, or name the file with --library {}={}",
                    candidate.name,
                    candidate.path.display()
                ),
            }),
            (Policy::OwnOnly, Some(Refusal::Foreign(problem))) => {
                Err(NotOpened { reason: problem.clone(), remedy: remedy(candidate.name) })
            }
            (Policy::TrustAll, Some(Refusal::Foreign(problem))) => Ok(Some(problem.clone())),
            (_, None) => Ok(None),
        }
    }

    /// Folders that a child's loader may look in.
    pub fn folders(self, folders: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
        let allowed = |folder: &PathBuf| match (self, owner_problem(folder)) {
            (_, Ok(None)) => true,
            (Policy::TrustAll, Ok(Some(_))) => true,
            // One that is not there could be made by others later.
            _ => false,
        };
        folders.into_iter().filter(allowed).collect()
    }

    /// The flag that hands this on to a child.
    pub const fn flag(self) -> Option<&'static str> {
        match self {
            Policy::OwnOnly => None,
            Policy::TrustAll => Some("--trust-library"),
            Policy::OpenNone => Some("--no-libraries"),
        }
    }
}

fn remedy(name: RuntimeName) -> String {
    let what = if crate::discovery::is_program(name) { "program" } else { "library" };
    format!("let only root or you own and write it (chown, chmod), or trust this {what} with --trust-library")
}

/// Refuses plugins that others own or may write to: they are opened like any library.
pub fn check_plugins<'a>(plugins: impl IntoIterator<Item = &'a PathBuf>) -> anyhow::Result<()> {
    plugins.into_iter().try_for_each(|plugin| check_plugin(plugin))
}

fn check_plugin(path: &Path) -> anyhow::Result<()> {
    match owner_problem(path) {
        Ok(Some(problem)) if policy() != Policy::TrustAll => bail!(
            "plugin {} is not opened: {problem}; let only root or you own and write it (chown, chmod), or use --trust-library",
            path.display()
        ),
        // What cannot be looked at cannot be opened either, and whoever opens it says so.
        _ => Ok(()),
    }
}

/// Search paths for a child: `PATH` and the loader's, the latter with these folders behind what the user set. An entry that is
/// empty or relative means the current folder, and goes; so does a folder that others may write to.
pub fn search_paths(folders: &[PathBuf]) -> Vec<(&'static str, OsString)> {
    let mut variables: Vec<(&'static str, OsString)> = safe_path().map(|path| ("PATH", path)).into_iter().collect();
    let set = std::env::var_os(LIBRARY_PATH);
    let named = set.as_deref().map(search_folders).unwrap_or_default();
    let all = policy().folders(named.into_iter().chain(folders.iter().cloned()));
    if (set.is_some() || !all.is_empty())
        && let Ok(path) = std::env::join_paths(all)
    {
        variables.push((LIBRARY_PATH, path));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(refusal: Option<Refusal>) -> Candidate {
        let name = RuntimeName::Onnxruntime;
        Candidate { name, path: "/x/libonnxruntime.so".into(), found_by: "loader".into(), verdict: Ok(()), refusal }
    }

    #[test]
    fn trust_is_about_owners_and_never_about_the_current_folder() {
        let foreign = candidate(Some(Refusal::Foreign("/x is writable by everyone (mode 777)".to_owned())));
        let problem = Policy::OwnOnly.ruling(&foreign).unwrap_err();
        assert_eq!(problem.reason, "/x is writable by everyone (mode 777)");
        assert!(problem.remedy.contains("--trust-library"), "{}", problem.remedy);
        assert_eq!(Policy::TrustAll.ruling(&foreign), Ok(Some(problem.reason)));
        let inactive = candidate(Some(Refusal::NotActivated));
        for policy in [Policy::OwnOnly, Policy::TrustAll] {
            let problem = policy.ruling(&inactive).unwrap_err();
            assert!(problem.remedy.contains("--library onnxruntime=/x/libonnxruntime.so"), "{}", problem.remedy);
            assert_eq!(policy.ruling(&candidate(None)), Ok(None));
        }
        assert!(Policy::OpenNone.ruling(&candidate(None)).unwrap_err().reason.contains("--no-libraries"));
    }
}
