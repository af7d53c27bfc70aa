//! Looking after the cache: what is in it, whether it is whole, and what may go.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, SystemTime};

use prony_types::ArtifactKind;
use serde::Serialize;

use crate::cache::{Cache, LOCK, Look, TEMPORARY, remove};
use crate::lock::Lock;
use crate::sidecar::{Beside, EngineSidecar, GraphSidecar};

/// How the files of an artifact end: its own, and its sidecar's.
const fn endings(kind: ArtifactKind) -> [&'static str; 2] {
    match kind {
        ArtifactKind::Engine => [EngineSidecar::ENDING, EngineSidecar::SIDECAR],
        ArtifactKind::Graph => [GraphSidecar::ENDING, GraphSidecar::SIDECAR],
    }
}

/// How an artifact was made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Described {
    /// An engine.
    Engine(Box<EngineSidecar>),
    /// An ONNX file.
    Graph(Box<GraphSidecar>),
}

/// An artifact of the cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Its key: the beginning of its file's name.
    pub key: String,
    /// What it is.
    pub kind: ArtifactKind,
    /// How it was made; absent where that cannot be read.
    pub sidecar: Option<Described>,
    /// What it takes on disk.
    pub bytes: u64,
    /// Seconds since it was last used.
    pub unused_s: u64,
    /// What is wrong with it; absent where it is whole, or was not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// What was not used for so long.
    pub unused_for: Option<Duration>,
    /// The longest unused ones, until the rest fits.
    pub fit_bytes: Option<u64>,
    /// Everything, timing and calibration caches too.
    pub all: bool,
}

/// What went.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pruned {
    /// Artifacts that are gone.
    pub removed: Vec<Entry>,
    /// Bytes that are free now, leftovers and caches included.
    pub freed_bytes: u64,
    /// Keys that stayed because a process is making or checking them.
    pub in_use: Vec<String>,
}

impl Cache {
    /// Every artifact, the longest unused first. Nothing is hashed; what is missing on either side is a problem already.
    pub fn list(&self) -> Vec<Entry> {
        let names = self.names();
        let mut keys = BTreeSet::new();
        for kind in ArtifactKind::ALL {
            let own = |name: &String| endings(kind).iter().find_map(|end| Some(name.strip_suffix(end)?.to_owned()));
            keys.extend(names.iter().filter_map(own).map(|key| (key, kind)));
        }
        let now = SystemTime::now();
        let mut entries: Vec<Entry> = keys.into_iter().map(|(key, kind)| self.entry(&key, kind, now)).collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.unused_s));
        entries
    }

    /// Every artifact, read through and held against its sidecar.
    pub fn verify(&self, on_entry: &mut dyn FnMut(&Entry)) -> Vec<Entry> {
        let mut entries = self.list();
        for entry in &mut entries {
            if entry.problem.is_none() {
                entry.problem = match entry.kind {
                    ArtifactKind::Engine => self.problem::<EngineSidecar>(&entry.key),
                    ArtifactKind::Graph => self.problem::<GraphSidecar>(&entry.key),
                };
            }
            on_entry(entry);
        }
        entries
    }

    fn problem<S: Beside>(&self, key: &str) -> Option<String> {
        match self.look::<S>(key) {
            Ok(Look::Whole(_)) => None,
            Ok(Look::Damaged(what)) => Some(what),
            Ok(Look::Missing) => Some("it went away".to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Removes what may go, but nothing that another process is making.
    pub fn prune(&self, rule: Rule) -> Pruned {
        let mut pruned = Pruned::default();
        let entries = self.list();
        let mut held: u64 = entries.iter().map(|entry| entry.bytes).sum();
        for entry in entries {
            let old = rule.unused_for.is_some_and(|limit| entry.unused_s >= limit.as_secs());
            let too_much = rule.fit_bytes.is_some_and(|limit| held > limit);
            if !(rule.all || old || too_much) {
                continue;
            }
            let Ok(Some(_lock)) = Lock::attempt(&self.file(&entry.key, LOCK)) else {
                pruned.in_use.push(entry.key);
                continue;
            };
            // The sidecar first: an artifact without one is made again, a sidecar without an artifact is a puzzle.
            let [artifact, sidecar] = endings(entry.kind).map(|ending| self.file(&entry.key, ending));
            pruned.freed_bytes += remove(&sidecar) + remove(&artifact);
            held = held.saturating_sub(entry.bytes);
            pruned.removed.push(entry);
        }
        pruned.freed_bytes += self.sweep_leftovers();
        if rule.all {
            let caches = self.names().into_iter().filter(|name| name.ends_with(".cache"));
            pruned.freed_bytes += caches.map(|name| remove(&self.folder().join(name))).sum::<u64>();
        }
        pruned
    }

    /// Removes locks that nobody holds and files that were never finished.
    fn sweep_leftovers(&self) -> u64 {
        let mut freed = 0;
        for name in self.names() {
            if let Some(key) = name.strip_suffix(LOCK) {
                // Taking it and letting go of it removes it.
                let _ = Lock::attempt(&self.file(key, LOCK));
            } else if name.starts_with('.') && name.ends_with(TEMPORARY) {
                let key = name.trim_start_matches('.').split('.').next().unwrap_or_default();
                if let Ok(Some(_lock)) = Lock::attempt(&self.file(key, LOCK)) {
                    freed += remove(&self.folder().join(&name));
                }
            }
        }
        freed
    }

    fn entry(&self, key: &str, kind: ArtifactKind, now: SystemTime) -> Entry {
        let [artifact, beside] = endings(kind).map(|ending| fs::metadata(self.file(key, ending)).ok());
        let sidecar = match kind {
            ArtifactKind::Engine => self.sidecar(key).map(|sidecar| Described::Engine(Box::new(sidecar))),
            ArtifactKind::Graph => self.sidecar(key).map(|sidecar| Described::Graph(Box::new(sidecar))),
        };
        let modified = artifact.as_ref().or(beside.as_ref()).and_then(|metadata| metadata.modified().ok());
        let unused = modified.and_then(|then| now.duration_since(then).ok()).unwrap_or_default();
        let bytes = [&artifact, &beside].into_iter().flatten().map(fs::Metadata::len).sum();
        let problem = match (&artifact, &beside, &sidecar) {
            (None, ..) => Some(format!("a sidecar without its {}", kind.name())),
            (_, None, _) => Some(format!("{} without its sidecar", with_article(kind))),
            (_, _, None) => Some("its sidecar cannot be read".to_owned()),
            _ => None,
        };
        Entry { key: key.to_owned(), kind, sidecar, bytes, unused_s: unused.as_secs(), problem }
    }
}

fn with_article(kind: ArtifactKind) -> &'static str {
    match kind {
        ArtifactKind::Engine => "an engine",
        ArtifactKind::Graph => "a graph",
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use super::*;
    use crate::cache::tests::{ORIGIN, made};
    use crate::recipe::tests::recipe;

    const ENGINE: &str = EngineSidecar::ENDING;

    /// Three engines of 10 bytes, last used 30, 20 and 10 days ago.
    fn filled(folder: &Path) -> (Cache, Vec<String>) {
        let cache = Cache::at(folder);
        let mut keys = Vec::new();
        for days in [30, 20, 10] {
            let mut recipe = recipe();
            recipe.identity.sm_count = days;
            let make = || Ok(made(b"0123456789"));
            let kept = cache.get_or_make(&recipe, ORIGIN, false, &mut || panic!("nobody holds it"), make).unwrap();
            let then = SystemTime::now() - Duration::from_secs(u64::from(days) * 86_400);
            File::options().append(true).open(&kept.path).unwrap().set_modified(then).unwrap();
            keys.push(recipe.key().unwrap());
        }
        (cache, keys)
    }

    fn keys(entries: &[Entry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.key.as_str()).collect()
    }

    #[test]
    fn the_longest_unused_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, all) = filled(folder.path());
        let entries = cache.list();
        assert_eq!(keys(&entries), all);
        assert!(entries.iter().all(|entry| entry.problem.is_none() && entry.bytes > 10), "{entries:?}");
        assert_eq!(Cache::at(folder.path().join("none")).list(), []);
    }

    #[test]
    fn what_was_not_used_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, all) = filled(folder.path());
        let rule = Rule { unused_for: Some(Duration::from_secs(15 * 86_400)), ..Rule::default() };
        let pruned = cache.prune(rule);
        assert_eq!(keys(&pruned.removed), all[..2]);
        assert_eq!(keys(&cache.list()), all[2..]);
        assert_eq!(cache.prune(Rule::default()), Pruned::default(), "no rule, nothing goes");
    }

    #[test]
    fn the_rest_fits_and_what_is_in_use_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, all) = filled(folder.path());
        let one = cache.list()[0].bytes;
        let held = Lock::attempt(&cache.file(&all[0], LOCK)).unwrap().unwrap();
        let pruned = cache.prune(Rule { fit_bytes: Some(2 * one), ..Rule::default() });
        assert_eq!((keys(&pruned.removed), &pruned.in_use[..]), (vec![all[1].as_str()], &all[..1]));
        drop(held);
        fs::write(folder.path().join("timing-x-8.cache"), b"12345").unwrap();
        let half = format!(".{}.engine.abc.tmp", all[0]);
        fs::write(folder.path().join(half), b"half").unwrap();
        let pruned = cache.prune(Rule { all: true, ..Rule::default() });
        assert_eq!(pruned.removed.len(), 2);
        assert!(pruned.freed_bytes >= 2 * one + 9, "{pruned:?}");
        assert_eq!(cache.names(), [""; 0]);
    }

    #[test]
    fn verify_hashes_everything_and_names_halves() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, all) = filled(folder.path());
        fs::write(cache.file(&all[0], ENGINE), b"012345678X").unwrap();
        fs::remove_file(cache.file(&all[1], ENGINE)).unwrap();
        fs::write(cache.file("feed", ENGINE), b"?").unwrap();
        let mut seen = 0;
        let found = cache.verify(&mut |_| seen += 1);
        assert_eq!(seen, 4);
        let problem = |key: &str| found.iter().find(|entry| entry.key == key).unwrap().problem.clone();
        assert!(problem(&all[0]).unwrap().starts_with("the engine was tampered with: its hash is "));
        assert_eq!(problem(&all[1]).as_deref(), Some("a sidecar without its engine"));
        assert_eq!(problem(&all[2]), None);
        assert_eq!(problem("feed").as_deref(), Some("an engine without its sidecar"));
    }
}
