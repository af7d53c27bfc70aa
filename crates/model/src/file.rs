//! A model file in memory: its bytes, its identity and what it says about itself.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prony_files::Kind;
use prony_types::{ModelInfo, ModelSource, SceneKind};
use prost::bytes::Bytes;

use crate::builtin::builtin;
use crate::engine::{self, EngineFile};
use crate::error::ModelError;
use crate::hash::sha256_hex;
use crate::{external, info};

/// A model file in memory.
#[derive(Clone, Debug)]
pub struct ModelFile {
    /// The whole file; an engine's is mapped, not read.
    pub bytes: Bytes,
    /// SHA-256 in hex: of the bytes, or of all files of a model with external data, see `info.files`.
    pub sha256: String,
    /// What it says about itself.
    pub info: ModelInfo,
    /// Where it is, unless it is built in. Weights in separate files are looked for beside it.
    pub path: Option<PathBuf>,
    /// What is known of it where it is a TensorRT engine.
    pub engine: Option<EngineFile>,
    /// The file that was hashed, still open; see [`ModelFile::load_path`].
    pub descriptor: Option<Arc<File>>,
}

impl ModelFile {
    /// Reads whatever a plan points at.
    pub fn open(source: &ModelSource) -> Result<ModelFile, ModelError> {
        match source {
            ModelSource::Builtin(kind) => ModelFile::builtin(*kind),
            ModelSource::File(path) => ModelFile::read(path),
        }
    }

    /// One of the detectors inside the binary.
    pub fn builtin(kind: SceneKind) -> Result<ModelFile, ModelError> {
        ModelFile::parse(&format!("builtin-{kind}"), Bytes::from_static(builtin(kind)), None)
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<ModelFile, ModelError> {
        let unreadable = |reason| ModelError::Unreadable { path: path.to_owned(), reason };
        if path.is_dir() {
            return Err(unreadable(std::io::Error::other("it is a folder; give a model file (.onnx, .pt, .engine)")));
        }
        let mut file = prony_files::open(path, Kind::Model).map_err(unreadable)?;
        if engine::is_engine(path, &file) {
            let (bytes, sha256, engine) = engine::open(path, file)?;
            let (info, path) = (engine.info(), Some(path.to_owned()));
            return Ok(ModelFile { bytes, sha256, info, path, engine: Some(engine), descriptor: None });
        }
        let bytes = prony_files::read_open(&mut file, Kind::Model).map_err(unreadable)?;
        let parsed = ModelFile::parse(&path.display().to_string(), bytes.into(), Some(path.to_owned()))?;
        Ok(ModelFile { descriptor: Some(Arc::new(file)), ..parsed })
    }

    /// A model that was made in memory.
    pub fn from_bytes(name: &str, bytes: Bytes) -> Result<ModelFile, ModelError> {
        ModelFile::parse(name, bytes, None)
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> String {
        self.path.as_ref().map_or_else(|| "the model".to_owned(), |path| path.display().to_string())
    }

    fn parse(name: &str, bytes: Bytes, path: Option<PathBuf>) -> Result<ModelFile, ModelError> {
        if let Some(kind) = foreign_kind(&bytes, path.as_deref()) {
            return Err(ModelError::Unsupported { name: name.to_owned(), kind });
        }
        let mut info = info::read(&bytes).map_err(|reason| ModelError::NotOnnx { name: name.to_owned(), reason })?;
        let mut sha256 = sha256_hex(&bytes);
        if !info.files.is_empty() {
            (sha256, info.files) = external::identity(path.as_deref(), sha256, bytes.len() as u64, info.files);
        }
        Ok(ModelFile { bytes, sha256, info, path, engine: None, descriptor: None })
    }

    /// Refuses a model of which a file is missing: its identity would not cover what is executed.
    pub fn ensure_whole(&self) -> Result<(), ModelError> {
        let missing = self.info.files.iter().find_map(|part| Some((&part.file, part.problem.as_ref()?)));
        missing.map_or(Ok(()), |(file, reason)| {
            Err(ModelError::Weights {
                name: self.name(),
                file: file.escape_debug().to_string(),
                reason: reason.clone(),
            })
        })
    }

    /// The path by which a library reads the file that was hashed, without opening it by its name again. Where weights lie
    /// beside it, its own: they are looked for there.
    pub fn load_path(&self) -> Option<PathBuf> {
        self.descriptor_path().or_else(|| self.path.clone())
    }

    /// The open file as a path.
    pub fn descriptor_path(&self) -> Option<PathBuf> {
        let descriptor = self.descriptor.as_ref().filter(|_| self.path.is_some() && self.info.files.is_empty())?;
        Some(format!("/proc/self/fd/{}", descriptor.as_raw_fd()).into())
    }

    /// A library's message with the model's own path in the place of the one that it was given.
    pub fn with_its_own_path(&self, message: &str) -> String {
        match (self.descriptor_path(), &self.path) {
            (Some(given), Some(own)) => message.replace(&*given.to_string_lossy(), &own.to_string_lossy()),
            _ => message.to_owned(),
        }
    }

    /// The whole file: as it was read, or mapped from the file that is still open.
    pub fn bytes_or_map(&self) -> io::Result<Bytes> {
        match (&self.descriptor, &self.path) {
            _ if !self.bytes.is_empty() => Ok(self.bytes.clone()),
            (Some(file), _) => crate::map::map(file),
            (None, Some(path)) => crate::map::map_file(path),
            (None, None) => Ok(Bytes::new()),
        }
    }

    /// Lets go of the bytes where they can be read again from the file.
    pub fn forget_bytes_on_disk(&mut self) {
        if self.path.is_some() {
            self.bytes = Bytes::new();
        }
    }
}

/// Recognises model files that are not ONNX, so that the message can say what they are.
fn foreign_kind(bytes: &[u8], path: Option<&Path>) -> Option<&'static str> {
    let extension = path.and_then(|p| p.extension()).and_then(|e| e.to_str()).unwrap_or_default();
    match extension {
        "pt" | "pth" if bytes.starts_with(b"PK") || bytes.starts_with(&[0x80, 2]) => Some("PyTorch checkpoint"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_file_is_not_a_model() {
        let error = ModelFile::read(Path::new("/etc/passwd")).unwrap_err();
        assert!(error.to_string().starts_with("/etc/passwd is not an ONNX model: "), "{error}");
    }

    #[test]
    fn a_folder_is_not_a_model() {
        let error = ModelFile::read(Path::new("/")).unwrap_err();
        assert!(error.to_string().contains("it is a folder"), "{error}");
    }
}
