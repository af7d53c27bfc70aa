//! Wheels made up for tests: real archives with a real RECORD around bytes that nobody could run.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// What goes into a wheel.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
    pub(crate) tag: String,
    /// Path and contents.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    /// Changes RECORD before it is written.
    pub(crate) tamper: fn(String) -> String,
    /// Appended without a row in RECORD: path, and the target where it is a link.
    pub(crate) stowaway: Option<(&'static str, Option<&'static str>)>,
}

impl Recipe {
    /// An ONNX Runtime whose library has that many bytes, which no compressor can shrink.
    pub(crate) fn onnxruntime(version: &'static str, bytes: usize) -> Recipe {
        let library = format!("onnxruntime/capi/libonnxruntime.so.{version}");
        let files = vec![
            ("onnxruntime/__init__.py".to_owned(), b"print('never run')\n".repeat(5)),
            (library, noise(bytes)),
            ("onnxruntime/capi/libonnxruntime_providers_shared.so".to_owned(), noise(bytes / 10)),
            ("onnxruntime/capi/onnxruntime_pybind11_state.cpython-313-x86_64-linux-gnu.so".to_owned(), noise(50)),
        ];
        let tag = format!("cp313-cp313-manylinux_2_28_{}", std::env::consts::ARCH);
        Recipe { package: "onnxruntime", version, tag, files, tamper: |record| record, stowaway: None }
    }

    /// Writes the wheel under its proper name.
    pub(crate) fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join(format!("{}-{}-{}.whl", self.package.replace('-', "_"), self.version, self.tag));
        let mut zip = ZipWriter::new(File::create(&path).unwrap());
        let packed = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        let stored = packed.compression_method(CompressionMethod::Stored);
        let info = format!("{}-{}.dist-info", self.package.replace('-', "_"), self.version);
        let mut files = self.files.clone();
        let metadata = format!("Metadata-Version: 2.4\nName: {}\nVersion: {}\n\nText.\n", self.package, self.version);
        files.push((format!("{info}/METADATA"), metadata.into_bytes()));
        let about = format!("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {}\n", self.tag);
        files.push((format!("{info}/WHEEL"), about.into_bytes()));
        let mut record = String::new();
        for (index, (name, contents)) in files.iter().enumerate() {
            // Both kinds, as both are found in the world.
            zip.start_file(name, if index % 2 == 0 { packed } else { stored }).unwrap();
            zip.write_all(contents).unwrap();
            let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(contents));
            record += &format!("{name},sha256={hash},{}\r\n", contents.len());
        }
        match self.stowaway {
            Some((name, Some(target))) => zip.add_symlink(name, target, stored).unwrap(),
            Some((name, None)) => zip.start_file(name, stored).unwrap(),
            None => {}
        }
        record += &format!("{info}/RECORD,,\r\n");
        zip.start_file(format!("{info}/RECORD"), packed).unwrap();
        zip.write_all((self.tamper)(record).as_bytes()).unwrap();
        zip.finish().unwrap().sync_all().unwrap();
        assert!(fs::metadata(&path).unwrap().len() > 0);
        path
    }
}

/// Bytes without a pattern, the same every time.
pub(crate) fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(|_| next()).collect()
}
