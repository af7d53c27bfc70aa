//! `.npy` files and `.npz` archives of them.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use prony_files::Kind;
use prony_types::{TensorData, TensorSpec, TensorView};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::npy::{Header, header};
use super::{Values, convert, describe};

/// Deflate makes nothing smaller than this many times.
const MOST_DEFLATED: u64 = 1032;

/// Why a file cannot be fed to a model.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct TensorError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

/// An array that was read for an input.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadArray {
    /// In the input's type.
    pub values: Values,
    /// What had to be done to them, if anything.
    pub note: Option<String>,
}

/// A file with arrays in it. Nothing of them is read before it is asked for.
#[derive(Clone, Debug)]
pub struct ArrayFile {
    path: PathBuf,
    /// Names of the arrays in an archive; `None` for a single array, which has no name.
    names: Option<Vec<String>>,
}

impl ArrayFile {
    /// Looks at a file; its ending decides what it is.
    pub fn open(path: &Path) -> Result<ArrayFile, TensorError> {
        let mut file = ArrayFile { path: path.to_owned(), names: None };
        let kind = std::fs::metadata(path).map_err(|e| file.error(format!("cannot read it: {e}")))?;
        if !kind.is_file() {
            return Err(file.error("it is not a regular file".into()));
        }
        if path.extension().is_some_and(|ending| ending == "npz") {
            let archive = file.archive()?;
            let names =
                archive.file_names().flatten().map(|name| name.strip_suffix(".npy").unwrap_or(&name).to_owned());
            file.names = Some(names.collect());
        }
        Ok(file)
    }

    /// Names of the arrays in an archive; `None` for a single array, which has no name.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// Shape of the array for an input. The file is as large as that needs.
    pub fn shape(&self, array: &str) -> Result<Vec<usize>, TensorError> {
        self.with_array(array, |header, _| Ok(header.shape))
    }

    /// The array of that name (the only one, without an archive) as values for an input.
    pub fn read(&self, array: &str, input: &TensorSpec) -> Result<ReadArray, TensorError> {
        self.with_array(array, |header, from| {
            let mismatch = |what: String| {
                let takes = describe(input.dtype, &input.shape);
                format!("array `{}` is {}, the model takes {takes}: {what}", input.name, header.describe())
            };
            check_shape(&header.shape, &input.shape).map_err(mismatch)?;
            let size = header.len().unwrap_or(0) * header.element.bytes();
            // Grows with what really comes: an archive may promise more than it holds.
            let mut bytes = Vec::new();
            from.take(size as u64).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
            if bytes.len() != size {
                return Err(format!("array `{}` was cut short", input.name));
            }
            let (values, note) = convert::convert(&header, bytes, input.dtype).map_err(mismatch)?;
            Ok(ReadArray { values, note: note.map(|done| format!("array `{}` {done}", input.name)) })
        })
    }

    fn error(&self, what: String) -> TensorError {
        TensorError { path: self.path.clone(), what }
    }

    fn file(&self) -> Result<BufReader<File>, TensorError> {
        prony_files::open(&self.path, Kind::Array)
            .map(BufReader::new)
            .map_err(|e| self.error(format!("cannot read it: {e}")))
    }

    fn archive(&self) -> Result<ZipArchive<BufReader<File>>, TensorError> {
        ZipArchive::new(self.file()?).map_err(|e| self.error(format!("it is no .npz file: {e}")))
    }

    /// Finds an array, checks that it can be as large as it claims, and hands it over.
    fn with_array<T>(
        &self,
        array: &str,
        f: impl FnOnce(Header, &mut dyn Read) -> Result<T, String>,
    ) -> Result<T, TensorError> {
        let Some(names) = &self.names else {
            let mut file = self.file()?;
            let length = file.seek(SeekFrom::End(0)).and_then(|n| file.rewind().map(|()| n));
            let length = length.map_err(|e| self.error(format!("cannot read it: {e}")))?;
            let header = Header::read(&mut file).and_then(|header| header.check_size(length).map(|()| header));
            return header.and_then(|header| f(header, &mut file)).map_err(|what| self.error(what));
        };
        let on_disk = std::fs::metadata(&self.path).map_or(0, |meta| meta.len());
        let mut archive = self.archive()?;
        let mut entry = match archive.by_name(&format!("{array}.npy")) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => {
                return Err(self.error(format!("no array `{array}`; it has {}", names.join(", "))));
            }
            Err(error) => return Err(self.error(format!("array `{array}`: {error}"))),
        };
        let of_array = |what: String| self.error(format!("array `{array}`: {what}"));
        if entry.size() / MOST_DEFLATED > entry.compressed_size().min(on_disk) {
            return Err(of_array(format!("the archive cannot hold the {} bytes that it claims", entry.size())));
        }
        let size = entry.size();
        let header = Header::read(&mut entry).and_then(|header| header.check_size(size).map(|()| header));
        f(header.map_err(of_array)?, &mut entry).map_err(|what| self.error(what))
    }
}

/// Says which axis differs.
fn check_shape(shape: &[usize], wanted: &[usize]) -> Result<(), String> {
    if shape.len() != wanted.len() {
        return Err(format!("it has {} axes instead of {}", shape.len(), wanted.len()));
    }
    let differs = |axis: usize| format!("axis {axis} is {} instead of {}", shape[axis], wanted[axis]);
    (0..shape.len()).find(|&axis| shape[axis] != wanted[axis]).map_or(Ok(()), |axis| Err(differs(axis)))
}

/// An output as the bytes of an `.npy` file.
pub fn npy_bytes(view: &TensorView<'_>) -> Vec<u8> {
    fn file<const N: usize, T: Copy>(code: &str, shape: &[usize], data: &[T], bytes: fn(T) -> [u8; N]) -> Vec<u8> {
        let mut file = header(code, shape);
        file.reserve_exact(data.len() * N);
        data.iter().for_each(|&x| file.extend(bytes(x)));
        file
    }
    match view.data {
        TensorData::F32(data) => file("f4", view.shape, data, f32::to_le_bytes),
        TensorData::I32(data) => file("i4", view.shape, data, i32::to_le_bytes),
        TensorData::I64(data) => file("i8", view.shape, data, i64::to_le_bytes),
    }
}

/// Outputs as the bytes of an `.npz` file, uncompressed as `numpy.savez` writes it.
pub fn npz_bytes(views: &[TensorView<'_>]) -> Result<Vec<u8>, ZipError> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for view in views {
        let array = npy_bytes(view);
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(array.len() > u32::MAX as usize);
        archive.start_file(format!("{}.npy", view.name), options)?;
        archive.write_all(&array)?;
    }
    Ok(archive.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use prony_types::DType;

    use super::*;

    fn input(name: &str, dtype: DType, shape: &[usize]) -> TensorSpec {
        TensorSpec { name: name.into(), dtype, shape: shape.into() }
    }

    fn view<'a>(name: &'a str, shape: &'a [usize], data: TensorData<'a>) -> TensorView<'a> {
        TensorView { name, shape, data }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("y.npz");
        let views = [
            view("/model/a:0", &[2, 2], TensorData::F32(&[1.0, f32::NAN, -3.5, 0.0])),
            view("ids", &[3], TensorData::I64(&[1, -2, 1 << 40])),
            view("scalar", &[], TensorData::I32(&[7])),
        ];
        std::fs::write(&path, npz_bytes(&views).unwrap()).unwrap();
        let file = ArrayFile::open(&path).unwrap();
        assert_eq!(file.names().unwrap(), ["/model/a:0", "ids", "scalar"]);
        assert_eq!(file.shape("/model/a:0").unwrap(), [2, 2]);
        let floats = file.read("/model/a:0", &input("/model/a:0", DType::F32, &[2, 2])).unwrap();
        let Values::F32(floats) = floats.values else { panic!("not f32") };
        assert!(floats[1].is_nan() && floats[2] == -3.5);
        let ids = file.read("ids", &input("ids", DType::I64, &[3])).unwrap();
        assert_eq!(ids.values, Values::I64(vec![1, -2, 1 << 40]));
        let scalar = file.read("scalar", &input("scalar", DType::I32, &[])).unwrap();
        assert_eq!(scalar.values, Values::I32(vec![7]));
    }

    #[test]
    fn a_mismatch_names_the_dimension() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        std::fs::write(&path, npy_bytes(&view("x", &[1, 4], TensorData::F32(&[0.0; 4])))).unwrap();
        let file = ArrayFile::open(&path).unwrap();
        let refused = |input: TensorSpec| file.read("", &input).unwrap_err().to_string();
        let text = refused(input("images", DType::F32, &[1, 3]));
        assert!(
            text.ends_with("x.npy: array `images` is f32[1,4], the model takes f32[1,3]: axis 1 is 4 instead of 3"),
            "{text}"
        );
        assert!(refused(input("images", DType::F32, &[1, 1, 4])).ends_with("it has 2 axes instead of 3"));
        let text = refused(input("ids", DType::I64, &[1, 4]));
        assert!(text.contains("`ids` is f32[1,4], the model takes i64[1,4]: these are floats"), "{text}");
    }

    #[test]
    fn an_archive_that_claims_more_than_it_can_hold_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        let mut bytes = npz_bytes(&[view("x", &[2], TensorData::F32(&[1.0, 2.0]))]).unwrap();
        // The size in the central directory, 24 bytes into its record.
        let record = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
        bytes[record + 24..record + 28].copy_from_slice(&0xf000_0000u32.to_le_bytes());
        std::fs::write(&path, bytes).unwrap();
        let error = ArrayFile::open(&path).unwrap().shape("x").unwrap_err().to_string();
        assert!(error.contains("cannot hold the 4026531840 bytes"), "{error}");
    }
}
