//! A folder of images as a source of frames. Listing says what is there; loading says what one file holds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use prony_files::Kind;
use prony_types::Image;

use crate::decode;
use crate::ending::{is_image_name, is_video_name};
use crate::error::SourceError;

/// The images directly inside `dir`, sorted by name. At least one, or an error.
pub fn images(dir: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let path = dir.to_path_buf();
    match fs::metadata(dir) {
        Ok(meta) if meta.is_dir() => {}
        _ if is_video_name(dir) => return Err(SourceError::Video { path }),
        Ok(_) => return Err(SourceError::NotAFolder { path }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(SourceError::MissingFolder { path }),
        Err(e) => return Err(SourceError::io(dir, "open the folder")(e)),
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(SourceError::io(dir, "list the folder"))? {
        let file = entry.map_err(SourceError::io(dir, "list the folder"))?.path();
        if is_image_name(&file) && !file.is_dir() {
            found.push(file);
        }
    }
    if found.is_empty() {
        return Err(SourceError::EmptyFolder { path });
    }
    found.sort_unstable();
    Ok(found)
}

/// An error where `out` is not to be written over: it is no folder, or holds something and no `file` that begins with `mark`.
pub(crate) fn refuse_foreign(out: &Path, file: &Path, mark: &str) -> Result<(), SourceError> {
    match fs::read_dir(out) {
        Ok(mut entries) => {
            let ours = || prony_files::read_text(file, Kind::Annotations).is_ok_and(|text| text.starts_with(mark));
            if entries.next().is_some() && !ours() {
                return Err(SourceError::ForeignFolder { path: out.to_path_buf() });
            }
            Ok(())
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => Err(SourceError::NotAFolder { path: out.to_path_buf() }),
        Err(e) => Err(SourceError::io(out, "open the folder")(e)),
    }
}

/// Loads files one after the other into the same memory, as a stream would: fresh memory for every image costs more than
/// some of the decoding.
#[derive(Default)]
pub struct Loader {
    file: Vec<u8>,
    image: Option<Image>,
}

impl Loader {
    /// Decodes one file: 8-bit RGB, or grey of 8 or 16 bits as stored. Alpha is dropped, 16-bit colour reduced to 8, and
    /// the camera's orientation applied, as OpenCV does. Of a JPEG that ends early the rest is grey. The frame stays until
    /// the next call.
    pub fn load(&mut self, path: &Path) -> Result<&Image, SourceError> {
        self.load_by(path, decode::frame)
    }

    /// As [`Loader::load`], but a JPEG that ends early is refused.
    pub(crate) fn load_whole(&mut self, path: &Path) -> Result<&Image, SourceError> {
        self.load_by(path, decode::whole_frame)
    }

    fn load_by(&mut self, path: &Path, decode: Decode) -> Result<&Image, SourceError> {
        let spare = self.image.take().and_then(Image::into_u8).unwrap_or_default();
        Ok(self.image.insert(read(path, &mut self.file, spare, decode)?))
    }

    /// Keeps a frame that did not come from a file.
    pub(crate) fn hold(&mut self, image: Image) -> &Image {
        self.image.insert(image)
    }
}

/// Decodes a single file, as [`Loader::load`] does.
pub fn load(path: &Path) -> Result<Image, SourceError> {
    read(path, &mut Vec::new(), Vec::new(), decode::frame)
}

/// What becomes of a file's bytes, with memory to use again.
type Decode = fn(&[u8], Vec<u8>) -> Result<Image, String>;

fn read(path: &Path, bytes: &mut Vec<u8>, spare: Vec<u8>, decode: Decode) -> Result<Image, SourceError> {
    // In one read: decoders ask for it in many small ones.
    bytes.clear();
    prony_files::read_into(path, Kind::Image, bytes).map_err(SourceError::io(path, "open the image"))?;
    decode(bytes, spare).map_err(|reason| SourceError::BadImage { path: path.to_path_buf(), reason })
}
