//! Whether code from a path may be run: the file and every folder above it must belong to root or to the user, and nobody else
//! may write to them: a folder above a library that others may write to lets them put another library in its place.
//!
//! POSIX ACLs are read; the ACLs of NFSv4 and the rules of a server behind a network file system are not.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::accounts::Accounts;
use crate::acl::{self, Writer};

/// Links on the way to a file before it counts as a loop, as the kernel counts.
const MOST_LINKS: usize = 40;
const STICKY: u32 = 0o1000;
const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Who but root and the user owns a file or may write to it, to a folder above it, or to a link on the way to it. `None` where
/// nobody does. Under sudo the invoking user counts as the user. The error is that of a path that cannot be looked at.
pub fn owner_problem(path: &Path) -> io::Result<Option<String>> {
    Owners::here().problem(path)
}

/// Root, who may do anything anyway, the user, and under sudo the user who called it.
pub(crate) fn trusted_users() -> Vec<u32> {
    let user = rustix::process::geteuid().as_raw();
    let sudo = std::env::var("SUDO_UID").ok().filter(|_| user == 0).and_then(|uid| uid.parse().ok());
    [0, user].into_iter().chain(sudo).collect()
}

/// Those whose files are trusted.
struct Owners<'a> {
    trusted: Vec<u32>,
    /// The user's own group, by the kernel: in a container the user may have no entry in `/etc/passwd`.
    own_group: (u32, u32),
    accounts: &'a dyn Fn() -> &'a Accounts,
}

impl Owners<'_> {
    fn here() -> Owners<'static> {
        let own_group = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Owners { trusted: trusted_users(), own_group, accounts: &Accounts::here }
    }

    /// Walks the path as the kernel does, so that every folder and every link that decides where it leads is looked at.
    fn problem(&self, path: &Path) -> io::Result<Option<String>> {
        let path = std::path::absolute(path)?;
        let mut left: Vec<OsString> = parts(&path);
        let mut here = PathBuf::from("/");
        let mut links = 0;
        if let Some(problem) = self.problem_of(&here, &fs::symlink_metadata(&here)?) {
            return Ok(Some(problem));
        }
        while let Some(part) = left.pop() {
            if part == ".." {
                here.pop();
                continue;
            }
            let next = here.join(&part);
            let about = fs::symlink_metadata(&next)?;
            if let Some(problem) = self.problem_of(&next, &about) {
                return Ok(Some(problem));
            }
            if !about.is_symlink() {
                here = next;
                continue;
            }
            links += 1;
            if links > MOST_LINKS {
                return Err(io::Error::other("too many symbolic links"));
            }
            let target = fs::read_link(&next)?;
            if target.is_absolute() {
                here = PathBuf::from("/");
            }
            left.extend(parts(&target));
        }
        Ok(None)
    }

    fn problem_of(&self, path: &Path, about: &Metadata) -> Option<String> {
        let shown = path.display();
        let (owner, mode) = (about.uid(), about.mode());
        if !self.trusted.contains(&owner) {
            return Some(format!("{shown} belongs to {}", self.accounts().user(owner)));
        }
        // The mode of a link means nothing. In a sticky folder nobody can replace what is somebody else's.
        if about.is_symlink() || (about.is_dir() && mode & STICKY != 0) {
            return None;
        }
        let bits = mode & 0o7777;
        if mode & OTHERS_WRITE != 0 {
            return Some(format!("{shown} is writable by everyone (mode {bits:o})"));
        }
        // With an ACL these bits are its mask: without them it lets nobody write.
        if mode & GROUP_WRITE == 0 {
            return None;
        }
        let shared = |group: u32| !self.is_own_group(group, owner);
        match acl::writers(path) {
            Err(error) => Some(format!("{shown} has an ACL that cannot be read: {error}")),
            Ok(None) => shared(about.gid()).then(|| {
                format!("{shown} is writable by group {} (mode {bits:o})", self.accounts().group(about.gid()))
            }),
            Ok(Some(writers)) => writers.into_iter().find_map(|writer| match writer {
                Writer::User(user) if !self.trusted.contains(&user) => {
                    Some(format!("{shown} is writable by {} (ACL)", self.accounts().user(user)))
                }
                Writer::OwningGroup if shared(about.gid()) => {
                    Some(format!("{shown} is writable by group {} (ACL)", self.accounts().group(about.gid())))
                }
                Writer::Group(group) if shared(group) => {
                    Some(format!("{shown} is writable by group {} (ACL)", self.accounts().group(group)))
                }
                _ => None,
            }),
        }
    }

    fn accounts(&self) -> &Accounts {
        (self.accounts)()
    }

    /// Whether a group is the owner's own, with nobody else in it.
    fn is_own_group(&self, group: u32, owner: u32) -> bool {
        let accounts = self.accounts();
        let others =
            accounts.members(group).iter().any(|member| !member.is_some_and(|uid| self.trusted.contains(&uid)));
        let own =
            self.own_group == (owner, group) || accounts.is_primary(group, owner) || accounts.is_namesake(group, owner);
        // Debian gives /usr/local to root and this group, for those whom root lets install there: as a rule nobody.
        let staff = owner == 0 && accounts.group_name(group) == Some("staff");
        !others && (own || staff)
    }
}

/// Names on the way, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    let named = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    named.rev().map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
#[path = "owner_tests.rs"]
mod tests;
