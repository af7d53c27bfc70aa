//! The ONNX parser, a library of its own.

use std::ffi::CString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null;

use libloading::os::unix::RTLD_LOCAL;

use crate::loader::{open, symbol};
use crate::object::{Held, Kind, c_text, call, copied, function};
use crate::pointer::{Ptr, Str};
use crate::tables::{parser, parser_error};
use crate::{Error, Library, Logger, Network, ParseError, Version};

/// What every parser calls itself.
pub(crate) const PARSER_VERSION: i32 = 100;
/// Lines of the parser that are worth logging: warnings and worse.
const VERBOSITY: i32 = 2;

type Create = unsafe extern "C" fn(Ptr, Ptr, i32) -> Ptr;

/// An open `libnvonnxparser`. It stays open until the process ends.
#[derive(Clone)]
pub struct ParserLibrary {
    path: PathBuf,
    library: Library,
    create: Create,
}

impl ParserLibrary {
    /// Opens a parser for a library of the same major.
    pub fn open(path: &Path, library: &Library) -> Result<ParserLibrary, Error> {
        let version = library.version();
        let refuse = |found: String| Error::ParserMajor { path: path.to_owned(), found, version };
        // By its name first: opening the wrong one would bring another TensorRT into the process.
        let named = named_major(path);
        if let Some(major) = named.filter(|major| *major != version.major) {
            return Err(refuse(format!("{major}.x")));
        }
        let handle = open(path, RTLD_LOCAL)?;
        // SAFETY: symbols of the parser and, where it is found through it, of the TensorRT that it is bound to.
        unsafe {
            let create = symbol(handle, path, "createNvOnnxParser_INTERNAL")?;
            let bound = symbol::<unsafe extern "C" fn() -> i32>(handle, path, "getInferLibVersion");
            match bound.map(|bound| Version::from_number(bound())) {
                Ok(bound) if bound.major != version.major => Err(refuse(bound.to_string())),
                Err(_) if named.is_none() => Err(refuse("of an unknown version".to_owned())),
                _ => Ok(ParserLibrary { path: path.to_owned(), library: library.clone(), create }),
            }
        }
    }

    /// A parser that fills a network. The network keeps it.
    pub fn parser(&self, network: &Network, logger: &Logger) -> Result<Parser, Error> {
        let object = &network.object;
        if object.library().path() != self.library.path() {
            let found = format!("{} at {}", self.library.version(), self.library.path().display());
            return Err(Error::ParserMajor { path: self.path.clone(), found, version: object.version() });
        }
        let since = object.now();
        // SAFETY: the parser keeps the network, and the logger lives until the process ends.
        let pointer = unsafe { (self.create)(object.public(), logger.object(object.family()), PARSER_VERSION) };
        let kind = Kind::Interface(parser::DELETE.slot(object.family()));
        let parser = object.child(kind, "ONNX parser", pointer, since)?;
        network.keep_parser(&parser);
        Ok(Parser { object: parser })
    }
}

impl fmt::Debug for ParserLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParserLibrary").field("path", &self.path).field("for", &self.library).finish()
    }
}

/// The major in the name of a library, its own or that of what it is a link to.
fn named_major(path: &Path) -> Option<u32> {
    let major = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        name.split_once(".so.")?.1.split('.').next()?.parse().ok()
    };
    major(path).or_else(|| major(&path.canonicalize().ok()?))
}

/// Reads ONNX into a network.
#[derive(Debug)]
pub struct Parser {
    object: Held,
}

impl Parser {
    /// Reads a file, and what it refers to beside it.
    pub fn parse_file(&mut self, path: &Path) -> Result<(), Error> {
        let file = c_text("model path", path.as_os_str().as_bytes())?;
        let since = self.object.now();
        // SAFETY: the path outlives the call.
        let done = unsafe { call!(self.object, parser::PARSE_FROM_FILE, file.as_ptr(), VERBOSITY) };
        if done { Ok(()) } else { Err(self.complaint(since)) }
    }

    /// Reads a model in memory. `origin` is where weights outside of it are looked for.
    pub fn parse_bytes(&mut self, bytes: &[u8], origin: Option<&Path>) -> Result<(), Error> {
        let origin = origin.map(|path| c_text("model path", path.as_os_str().as_bytes())).transpose()?;
        let origin = origin.as_ref().map_or(null(), |path: &CString| path.as_ptr());
        let since = self.object.now();
        // SAFETY: bytes and path outlive the call; the bytes are only read and copied.
        let done =
            unsafe { call!(self.object, parser::PARSE, bytes.as_ptr().cast_mut().cast(), bytes.len() as u64, origin) };
        if done { Ok(()) } else { Err(self.complaint(since)) }
    }

    /// Why the last model was refused.
    fn complaint(&self, since: crate::object::Moment) -> Error {
        // SAFETY: the index is below the count.
        let errors: Result<Vec<ParseError>, Error> = unsafe {
            let count = call!(self.object, parser::GET_NB_ERRORS);
            (0..count).map(|index| self.error(call!(self.object, parser::GET_ERROR, index))).collect()
        };
        match errors {
            Ok(errors) if errors.is_empty() => self.object.refused("the ONNX model", since),
            Ok(errors) => Error::Parse { errors },
            Err(error) => error,
        }
    }

    /// Reads an error, which is the parser's and stays until it parses again.
    ///
    /// # Safety
    /// `error` is null or one of this parser's errors.
    unsafe fn error(&self, error: Ptr) -> Result<ParseError, Error> {
        let (family, version) = (self.object.family(), self.object.version());
        if error.is_null() {
            let reason = "the parser has lost it".to_owned();
            return Ok(ParseError { code: 0, reason, node: None, operator: None, node_index: -1 });
        }
        // SAFETY: methods of the error by its family's slots, without arguments; texts live as long as the error.
        unsafe {
            let number = |slot| function::<unsafe extern "C" fn(Ptr) -> i32>(error, slot)(error);
            let text = |slot| {
                let text = function::<unsafe extern "C" fn(Ptr) -> Str>(error, slot)(error);
                copied("parser error", text)
            };
            let newer = |slot: Result<usize, Error>| -> Result<Option<String>, Error> {
                Ok(slot.ok().map(text).transpose()?.flatten().filter(|text| !text.is_empty()))
            };
            Ok(ParseError {
                code: number(parser_error::CODE.slot(family)),
                reason: text(parser_error::DESC.slot(family))?.unwrap_or_default(),
                node: newer(parser_error::NODE_NAME.slot(version))?,
                operator: newer(parser_error::NODE_OPERATOR.slot(version))?,
                node_index: number(parser_error::NODE.slot(family)),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_is_read_from_the_name_or_from_what_it_links_to() {
        assert_eq!(named_major(Path::new("/lib/libnvonnxparser.so.8")), Some(8));
        assert_eq!(named_major(Path::new("libnvonnxparser.so.10.3.0")), Some(10));
        assert_eq!(named_major(Path::new("libnvonnxparser.so")), None);
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("libnvonnxparser.so.11.0.0");
        std::fs::write(&target, "").unwrap();
        let link = folder.path().join("libnvonnxparser.so");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert_eq!(named_major(&link), Some(11));
    }
}
