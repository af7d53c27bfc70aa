//! The artifact cache: engines and graphs by the hash of all that decides them, each with a readable sidecar. Safe with
//! several processes; what is on disk is not believed but hashed on every use.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use prony_files::{Folder, Kind};
use prony_model::ENGINE_SCHEMA;
use prony_types::{CellSpec, EngineSpec, ModelInfo};

use crate::error::ForgeError;
use crate::lock::Lock;
use crate::recipe::Recipe;
use crate::shape;
use crate::sidecar::{Beside, EngineSidecar, FreshEngine};

/// Ending of the file that is locked while it is made.
pub(crate) const LOCK: &str = ".lock";
/// Ending of a file that is not whole yet.
pub(crate) const TEMPORARY: &str = ".tmp";

/// A folder of artifacts.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// The model that an engine is made from, as its sidecar names it.
#[derive(Clone, Copy, Debug)]
pub struct SourceModel<'a> {
    /// What it is called.
    pub model: &'a str,
    /// Size of the ONNX file.
    pub onnx_bytes: u64,
    /// Version of Prony.
    pub prony: &'a str,
}

/// An artifact that is in the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept<S = EngineSidecar> {
    /// Its file.
    pub path: PathBuf,
    /// How it was made.
    pub sidecar: S,
    /// Whether it was there already.
    pub from_cache: bool,
    /// Why it was made although there was one like it.
    pub rebuilt_because: Option<String>,
}

/// What the cache holds under a key.
#[derive(Debug)]
pub(crate) enum Look<S> {
    Whole(Box<S>),
    Missing,
    /// It is there and is not what its sidecar says.
    Damaged(String),
}

impl Cache {
    /// The cache in a folder, which need not exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into() }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes an engine from the cache, or has it made while other processes that want the same one wait. `waiting` is
    /// called again and again while this one waits.
    pub fn get_or_make(
        &self,
        recipe: &Recipe,
        origin: SourceModel<'_>,
        rebuild: bool,
        waiting: &mut dyn FnMut(),
        make: impl FnOnce() -> Result<FreshEngine, ForgeError>,
    ) -> Result<Kept, ForgeError> {
        let changed = || self.changed_since(recipe);
        self.keep(&recipe.key()?, rebuild, waiting, changed, || {
            let made = make()?;
            let sidecar = sidecar(recipe, origin, &made);
            Ok((made.bytes, sidecar))
        })
    }

    /// Takes an artifact from the cache, or has it made under its key's lock. `changed` says why one that is missing was not
    /// enough as it was.
    pub(crate) fn keep<S: Beside>(
        &self,
        key: &str,
        remake: bool,
        waiting: &mut dyn FnMut(),
        changed: impl FnOnce() -> Result<Option<String>, ForgeError>,
        make: impl FnOnce() -> Result<(Vec<u8>, S), ForgeError>,
    ) -> Result<Kept<S>, ForgeError> {
        self.claim()?;
        let lock = self.file(key, LOCK);
        let _lock = Lock::wait(&lock, waiting).map_err(ForgeError::cache("lock", &lock))?;
        let path = self.file(key, S::ENDING);
        let rebuilt_because = match self.look::<S>(key)? {
            Look::Whole(sidecar) if !remake => {
                self.touch(&path);
                return Ok(Kept { path, sidecar: *sidecar, from_cache: true, rebuilt_because: None });
            }
            Look::Whole(_) => Some("it was asked for".to_owned()),
            Look::Damaged(what) => Some(what),
            Look::Missing => changed()?,
        };
        self.sweep(key);
        let (bytes, sidecar) = make()?;
        let text = serde_json::to_vec_pretty(&sidecar).map_err(ForgeError::json("a sidecar"))?;
        write_atomic(&path, &bytes).map_err(ForgeError::cache("write", &path))?;
        let beside = self.file(key, S::SIDECAR);
        write_atomic(&beside, &text).map_err(ForgeError::cache("write", &beside))?;
        Ok(Kept { path, sidecar, from_cache: false, rebuilt_because })
    }

    /// Makes the folder where there is none. One that others own or may write to is refused: what lies in it is executed.
    fn claim(&self) -> Result<(), ForgeError> {
        let folder = Folder::make(&self.folder).map_err(ForgeError::cache("make the cache folder", &self.folder))?;
        let refused = ForgeError::cache("use the cache folder", &self.folder);
        match folder.foreign() {
            Ok(None) => Ok(()),
            Ok(Some(foreign)) => Err(refused(io::Error::other(format!("it {foreign}; choose another with --home")))),
            Err(error) => Err(refused(error)),
        }
    }

    /// What lies under a key. Nothing of it is believed: the sidecar's recipe must be the one of the key, and the artifact is
    /// read through and its hash compared with the sidecar's.
    pub(crate) fn look<S: Beside>(&self, key: &str) -> Result<Look<S>, ForgeError> {
        let (path, word) = (self.file(key, S::ENDING), S::WORD);
        let unreadable = |error| ForgeError::cache("read", &path)(error);
        let (name, beside) = (format!("{key}{}", S::ENDING), format!("{key}{}", S::SIDECAR));
        let folder = match Folder::open(&self.folder) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Look::Missing),
            Err(error) => return Err(unreadable(error)),
        };
        let sidecar: S = match self.sidecar(key) {
            Some(sidecar) => sidecar,
            None if folder.exists(&name) => return Ok(Look::Damaged(format!("the {word} had no readable sidecar"))),
            None => return Ok(Look::Missing),
        };
        if sidecar.key()? != key {
            return Ok(Look::Damaged(format!("the {word}'s sidecar was that of another one")));
        }
        for name in [&beside, &name] {
            match folder.foreign_file(name) {
                Ok(None) => {}
                Ok(Some(foreign)) => return Ok(Look::Damaged(format!("the {word}'s file {foreign}"))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Look::Damaged(format!("the {word}'s file was gone")));
                }
                Err(error) => return Err(unreadable(error)),
            }
        }
        let file = match folder.open_file(&name, prony_files::Kind::Model) {
            Ok(file) => file,
            Err(error) => return Ok(Look::Damaged(format!("the {word}'s file could not be read: {error}"))),
        };
        let size = file.metadata().map_err(unreadable)?.len();
        let promised = sidecar.size_bytes();
        if size != promised {
            let how = if size < promised { "truncated" } else { "changed" };
            return Ok(Look::Damaged(format!("the {word} was {how}: {size} bytes instead of {promised}")));
        }
        let hash = prony_model::sha256_of(file).map_err(unreadable)?;
        if hash != sidecar.sha256() {
            let promised = sidecar.sha256();
            let promised = promised.get(..12).unwrap_or(promised);
            let what = format!("the {word} was tampered with: its hash is {}…, not {promised}…", &hash[..12]);
            return Ok(Look::Damaged(what));
        }
        Ok(Look::Whole(Box::new(sidecar)))
    }

    /// Every engine's sidecar that can be read, with its key, oldest first.
    pub fn sidecars(&self) -> Vec<(String, EngineSidecar)> {
        let names = self.names();
        let keys = names.iter().filter_map(|name| name.strip_suffix(EngineSidecar::SIDECAR));
        let found = keys.filter_map(|key| {
            Some((key.to_owned(), self.sidecar(key).filter(|it: &EngineSidecar| it.key().is_ok_and(|own| own == key))?))
        });
        let mut found: Vec<(String, EngineSidecar)> = found.collect();
        found.sort_by(|(_, a), (_, b)| a.created.cmp(&b.created));
        found
    }

    /// Why an engine that was there for another machine does not do: what differs from the nearest one.
    fn changed_since(&self, recipe: &Recipe) -> Result<Option<String>, ForgeError> {
        let sidecars = self.sidecars();
        let alike = sidecars.iter().map(|(_, sidecar)| &sidecar.recipe).filter(|old| old.is_of_same_kind(recipe));
        // Of equally near ones the newest, which comes last and so is taken by the reverse order.
        let differences = alike.map(|old| old.differences(recipe)).collect::<Result<Vec<_>, _>>()?;
        let nearest = differences.into_iter().rev().min_by_key(Vec::len).unwrap_or_default();
        let texts: Vec<String> = nearest.iter().map(ToString::to_string).collect();
        Ok((!texts.is_empty()).then(|| texts.join(", ")))
    }

    pub(crate) fn file(&self, key: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{key}{ending}"))
    }

    pub(crate) fn sidecar<S: Beside>(&self, key: &str) -> Option<S> {
        let text =
            Folder::open(&self.folder).ok()?.read(format!("{key}{}", S::SIDECAR), prony_files::Kind::Sidecar).ok()?;
        serde_json::from_slice::<S>(&text).ok().filter(|sidecar| sidecar.schema() == S::SCHEMA)
    }

    /// Names of all files, sorted; none where there is no folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Removes what a process that died in the middle left over. The key's lock must be held.
    pub(crate) fn sweep(&self, key: &str) -> u64 {
        let start = format!(".{key}.");
        let names = self.names();
        let halves = names.iter().filter(|name| name.starts_with(&start) && name.ends_with(TEMPORARY));
        halves.map(|name| remove(&self.folder.join(name))).sum()
    }

    /// Marks an artifact as used just now: what is pruned first was not used for longest.
    fn touch(&self, path: &Path) {
        let touched = File::options().append(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
        if let Err(error) = touched {
            tracing::debug!("cannot mark {} as used: {error}", path.display());
        }
    }
}

/// Whether the cache has an engine for a cell, by sidecars alone: the same model, built the same way by the same TensorRT for a
/// GPU of this name. Whether it is whole and fits to the last field is found when it is taken.
pub fn has_engine(cache: &Path, cell: &CellSpec, info: &ModelInfo, gpu: &str) -> bool {
    let runtime = cell.builder.as_ref().or(cell.runtime.as_ref());
    let (Some(engine), Some(runtime), None) = (&cell.engine, runtime, &cell.rewrite) else { return false };
    let like = |recipe: &Recipe| {
        recipe.onnx_sha256 == cell.model.sha256
            && (recipe.identity.tensorrt.as_str(), recipe.identity.gpu.as_str()) == (runtime.version.as_str(), gpu)
            && recipe.gpu_mem_limit_bytes == cell.provider.gpu_mem_limit_bytes
    };
    let recipes: Vec<Recipe> = Cache::at(cache).sidecars().into_iter().map(|(_, sidecar)| sidecar.recipe).collect();
    let mut candidates = recipes.iter().filter(|recipe| like(recipe)).peekable();
    if candidates.peek().is_none() {
        return false;
    }
    let profile = shape::profile(&info.inputs, &engine.profile, cell.batch, cell.imgsz);
    let Ok(profile) = profile else { return false };
    let wanted = EngineSpec { profile, ..engine.clone() };
    candidates.any(|recipe| recipe.is_of_same_kind(&Recipe { engine: wanted.clone(), ..recipe.clone() }))
}

fn sidecar(recipe: &Recipe, origin: SourceModel<'_>, made: &FreshEngine) -> EngineSidecar {
    EngineSidecar {
        schema: ENGINE_SCHEMA.to_owned(),
        prony: origin.prony.to_owned(),
        created: now(),
        model: origin.model.to_owned(),
        onnx_bytes: origin.onnx_bytes,
        recipe: recipe.clone(),
        engine_sha256: prony_model::sha256_hex(&made.bytes),
        size_bytes: made.bytes.len() as u64,
        build_s: made.build_s,
        notes: made.notes.clone(),
        host_peak_bytes: made.host_peak_bytes,
        host_available_low_bytes: made.host_available_low_bytes,
        device_peak_bytes: made.device_peak_bytes,
    }
}

/// RFC 3339, UTC.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Replaces a file of a cache, whole or not at all; a link of that name is replaced, not followed. A draft that a crash leaves over
/// has the name that [`Cache::sweep`] looks for.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Folder::open(path.parent().unwrap_or(Path::new("")))?.replace(path.file_name().unwrap_or_default(), bytes)
}

/// SHA-256 of a file, in hex, without holding it in memory.
pub(crate) fn hash_file(path: &Path) -> io::Result<String> {
    prony_model::sha256_of(prony_files::open(path, Kind::Model)?)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Removes a file; the bytes that are free now.
pub(crate) fn remove(path: &Path) -> u64 {
    let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    if fs::remove_file(path).is_ok() { bytes } else { 0 }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
pub(crate) mod tests;
