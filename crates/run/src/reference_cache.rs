//! References that are kept from run to run: each with a sidecar that says what it was computed from, and its hash. What lies
//! there is not believed: a file that is not the one its sidecar describes is computed again.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use prony_files::{Folder, Kind};
use prony_model::sha256_hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// References that are kept; the oldest go first. One has a few megabytes.
const KEPT: usize = 32;

const SCHEMA: &str = "prony.reference-sidecar/1";
const ENDING: &str = ".ref";
const SIDECAR: &str = ".ref.json";

/// What is written beside a reference.
#[derive(Serialize, Deserialize)]
struct Sidecar {
    schema: String,
    /// All that decides the values; its hash is the key.
    recipe: Value,
    /// SHA-256 of the reference.
    sha256: String,
}

/// The folder of references in the home.
#[derive(Debug)]
pub(crate) struct ReferenceCache {
    folder: Folder,
}

/// Where a reference lies: the beginning of the hash of all that decides it.
pub(crate) fn key(recipe: &Value) -> String {
    // Keys of a JSON object are sorted, so equal recipes have equal text.
    sha256_hex(recipe.to_string().as_bytes())[..32].to_owned()
}

/// The name of a reference.
pub(crate) fn file_name(recipe: &Value) -> String {
    format!("{}{ENDING}", key(recipe))
}

impl ReferenceCache {
    /// Opens it. A folder that others own or may write to is refused: they could decide what is right.
    pub(crate) fn open(path: &Path) -> Result<ReferenceCache> {
        let folder = Folder::make(path)?;
        match folder.foreign()? {
            Some(foreign) => Err(Error::other(foreign.to_string())),
            None => Ok(ReferenceCache { folder }),
        }
    }

    /// A whole reference that was computed from just this.
    pub(crate) fn find(&self, recipe: &Value) -> Option<PathBuf> {
        let key = key(recipe);
        if !self.folder.exists(format!("{key}{ENDING}")) {
            return None;
        }
        match self.checked(&key, recipe) {
            Ok(path) => Some(path),
            Err(error) => {
                tracing::warn!("the reference {key} in {} is computed again: {error}", self.folder.path().display());
                None
            }
        }
    }

    fn checked(&self, key: &str, recipe: &Value) -> Result<PathBuf> {
        let (name, beside) = (format!("{key}{ENDING}"), format!("{key}{SIDECAR}"));
        for name in [&name, &beside] {
            if let Some(foreign) = self.folder.foreign_file(name)? {
                return Err(Error::other(format!("{name} {foreign}")));
            }
        }
        let sidecar: Sidecar = serde_json::from_slice(&self.folder.read(&beside, Kind::Sidecar)?)?;
        if sidecar.schema != SCHEMA || sidecar.recipe != *recipe {
            return Err(Error::other("its sidecar is that of another reference"));
        }
        let bytes = self.folder.read(&name, Kind::Array)?;
        if sha256_hex(&bytes) != sidecar.sha256 {
            return Err(Error::other("its hash is not that of its sidecar"));
        }
        let path = self.folder.path().join(&name);
        prony_bench::reference_by(&path).map(|_| path).ok_or_else(|| Error::other("it is damaged"))
    }

    /// Keeps a reference for the next run.
    pub(crate) fn keep(&self, recipe: &Value, reference: &Path) -> Result<()> {
        let key = key(recipe);
        let bytes = prony_files::read(reference, Kind::Array)?;
        let sidecar = Sidecar { schema: SCHEMA.to_owned(), recipe: recipe.clone(), sha256: sha256_hex(&bytes) };
        self.folder.replace(format!("{key}{ENDING}"), &bytes)?;
        self.folder.replace(format!("{key}{SIDECAR}"), &serde_json::to_vec_pretty(&sidecar)?)?;
        self.prune(&key)
    }

    /// Keeps the cache small. Another run may do the same at once; a file that is gone already is no matter.
    fn prune(&self, newest: &str) -> Result<()> {
        let names = self.folder.names()?;
        let mut keys: Vec<_> = names
            .iter()
            .filter_map(|name| name.to_str()?.strip_suffix(ENDING))
            .filter(|key| *key != newest)
            .filter_map(|key| {
                let file = self.folder.path().join(format!("{key}{ENDING}"));
                Some((std::fs::symlink_metadata(file).ok()?.modified().ok()?, key))
            })
            .collect();
        keys.sort();
        let surplus = (keys.len() + 1).saturating_sub(KEPT);
        for (_, key) in keys.into_iter().take(surplus) {
            for ending in [SIDECAR, ENDING] {
                let _ = self.folder.remove(format!("{key}{ending}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use serde_json::json;

    use super::*;

    /// The least that is one: of no frames.
    fn write_reference(path: &Path) {
        let rest = "{\"by\":\"fp32 on rten\",\"frames_sha256\":\"ab\",\"frames\":[],\"sensitivity\":null}\n";
        fs::write(path, format!("prony.reference/3 {}\n{rest}", sha256_hex(rest.as_bytes()))).unwrap();
    }

    #[test]
    fn a_reference_of_another_model_was_believed() {
        let top = tempfile::tempdir().unwrap();
        let home = top.path().join("cache");
        let cache = ReferenceCache::open(&home).unwrap();
        let (one, other) = (json!({ "model": "a" }), json!({ "model": "b" }));
        let fresh = top.path().join("fresh.ref");
        write_reference(&fresh);
        for recipe in [&one, &other] {
            assert_eq!(cache.find(recipe), None);
            cache.keep(recipe, &fresh).unwrap();
            assert!(cache.find(recipe).is_some());
        }
        let at = |recipe: &Value, ending: &str| home.join(format!("{}{ending}", key(recipe)));
        let whole = fs::read(at(&one, ENDING)).unwrap();
        // Renamed with its sidecar: whole, and of another model.
        fs::copy(at(&other, ENDING), at(&one, ENDING)).unwrap();
        fs::copy(at(&other, SIDECAR), at(&one, SIDECAR)).unwrap();
        assert_eq!(cache.find(&one), None);
        // Without a sidecar, as an older Prony wrote it.
        fs::remove_file(at(&one, SIDECAR)).unwrap();
        assert_eq!(cache.find(&one), None);
        cache.keep(&one, &fresh).unwrap();
        // Changed, cut, exchanged for a link.
        fs::write(at(&one, ENDING), [&whole[..], b"x"].concat()).unwrap();
        assert_eq!(cache.find(&one), None);
        fs::write(at(&one, ENDING), &whole[..whole.len() - 1]).unwrap();
        assert_eq!(cache.find(&one), None);
        fs::remove_file(at(&one, ENDING)).unwrap();
        symlink(&fresh, at(&one, ENDING)).unwrap();
        assert_eq!(cache.find(&one), None);
        cache.keep(&one, &fresh).unwrap();
        assert!(cache.find(&one).is_some(), "what is computed again takes its place");
        // A file that everybody may write, or that is somebody else's.
        fs::set_permissions(at(&one, SIDECAR), fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(cache.find(&one), None);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(at(&other, ENDING), Some(65534), None).unwrap();
            assert_eq!(cache.find(&other), None);
        }
    }

    #[test]
    fn a_cache_that_others_may_write_is_refused() {
        let top = tempfile::tempdir().unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = ReferenceCache::open(top.path()).unwrap_err().to_string();
        assert_eq!(error, "may be written by everybody (mode 0777)");
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).unwrap();
        ReferenceCache::open(top.path()).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(top.path(), Some(65534), None).unwrap();
            assert_eq!(ReferenceCache::open(top.path()).unwrap_err().to_string(), "belongs to user 65534");
        }
    }

    #[test]
    fn the_oldest_go() {
        let top = tempfile::tempdir().unwrap();
        let home = top.path().join("cache");
        let cache = ReferenceCache::open(&home).unwrap();
        let fresh = top.path().join("fresh.ref");
        write_reference(&fresh);
        for number in 0..KEPT + 3 {
            cache.keep(&json!(number), &fresh).unwrap();
        }
        assert_eq!(fs::read_dir(&home).unwrap().count(), 2 * KEPT);
        assert!(cache.find(&json!(KEPT + 2)).is_some());
    }
}
