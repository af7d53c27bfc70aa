//! A wheel: a zip archive that lists its own files and their hashes. Nothing in it is believed before it was checked.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail, ensure};
use sha2::{Digest as _, Sha256};
use zip::ZipArchive;

use serde::{Deserialize, Serialize};

use crate::record::{self, Record};
use crate::{Package, Version, disk_error, layout};

/// The largest file that a wheel may hold; CUDA providers are about a tenth of it.
const MAX_FILE_BYTES: u64 = 3 << 30;
/// All files of a wheel together.
const MAX_TOTAL_BYTES: u64 = 8 << 30;
/// RECORD and its neighbours are read into memory.
const MAX_TEXT_BYTES: u64 = 16 << 20;
const CHUNK: usize = 1 << 18;

/// One unpacked file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Relative to the runtime's folder.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its hash, in hex.
    pub sha256: String,
}

/// An open wheel with a sound directory. The contents are checked while they are unpacked.
pub struct Wheel {
    archive: ZipArchive<BufReader<File>>,
    path: PathBuf,
    record: Record,
    /// The package, in lower case with hyphens.
    pub package: String,
    /// Its version.
    pub version: Version,
    /// `cp313-cp313-manylinux_2_28_x86_64`, one or more.
    pub tags: Vec<String>,
    /// Hash of the whole file, in hex.
    pub sha256: String,
}

impl Wheel {
    /// Opens a wheel and reads what it says of itself.
    pub fn open(path: &Path) -> anyhow::Result<Wheel> {
        Wheel::read(path).map_err(|error| anyhow!("{} is refused: {error:#}", path.display()))
    }

    fn read(path: &Path) -> anyhow::Result<Wheel> {
        let mut file = prony_files::open(path, prony_files::Kind::Archive)?;
        let sha256 = hash(&mut file)?.0;
        file.rewind()?;
        let mut archive = ZipArchive::new(BufReader::with_capacity(CHUNK, file)).context("not a wheel")?;
        let names = check_directory(&mut archive)?;
        let mut records = names.keys().filter(|name| is_dist_info(name, "RECORD"));
        let record_path = records.next().context("it has no RECORD")?.clone();
        ensure!(records.next().is_none(), "it has more than one RECORD");
        let folder = record_path.trim_end_matches("RECORD").to_owned();
        let listed = record::parse(&text(&mut archive, &record_path)?, &record_path)
            .map_err(|error| anyhow!("{record_path} {error}"))?;
        compare(&names, &listed, &record_path)?;
        let metadata = text(&mut archive, &format!("{folder}METADATA"))?;
        let field = |name| fields(&metadata, name).next().with_context(|| format!("METADATA has no {name}"));
        let package = field("Name")?.to_lowercase().replace(['_', '.'], "-");
        let version = field("Version")?.parse().map_err(|error| anyhow!("METADATA: {error}"))?;
        let about = text(&mut archive, &format!("{folder}WHEEL"))?;
        let tags = fields(&about, "Tag").map(str::to_owned).collect();
        Ok(Wheel { archive, path: path.to_owned(), record: listed, package, version, tags, sha256 })
    }

    /// The name of its file, for people.
    pub fn file_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Bytes that [`Wheel::unpack`] reads.
    pub fn bytes(&self) -> u64 {
        self.record.values().map(|entry| entry.bytes).sum()
    }

    /// Checks every file against RECORD, and writes those that make up the runtime. `on_bytes` hears how far it is
    /// and may end it.
    pub fn unpack(
        &mut self,
        runtime: Package,
        into: &Path,
        on_bytes: &mut dyn FnMut(u64) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<FileRecord>> {
        let mut files: Vec<FileRecord> = Vec::new();
        for index in 0..self.archive.len() {
            let name = self.archive.by_index(index)?.name()?.into_owned();
            let Some(expected) = self.record.get(&name) else { continue };
            let placed = layout::place(runtime, &name);
            let taken = |file: &FileRecord| Some(file.path.as_str()) == placed;
            ensure!(
                !files.iter().any(taken),
                "{} is refused: it has more than one {}",
                self.path.display(),
                placed.unwrap_or(&name)
            );
            let target = placed.map(|placed| into.join(placed));
            let mut output = target.as_deref().map(|path| create(path, layout::is_program(runtime))).transpose()?;
            let refuse = |what: &dyn std::fmt::Display| anyhow!("{} is refused: {name} {what}", self.path.display());
            // The declared size was compared with RECORD's, so that nothing longer is ever written.
            let entry =
                self.archive.by_index(index).map_err(|error| refuse(&format_args!("cannot be read: {error}")))?;
            let mut input = entry.take(expected.bytes + 1);
            let mut hasher = Sha256::new();
            let mut length = 0;
            let mut buffer = vec![0; CHUNK];
            loop {
                let count = input.read(&mut buffer).map_err(|error| refuse(&format_args!("is damaged: {error}")))?;
                if count == 0 {
                    break;
                }
                hasher.update(&buffer[..count]);
                length += count as u64;
                if let (Some(file), Some(path)) = (&mut output, &target) {
                    file.write_all(&buffer[..count]).map_err(disk_error("write", path))?;
                }
                on_bytes(count as u64)?;
            }
            let sha256: [u8; 32] = hasher.finalize().into();
            if length != expected.bytes || sha256 != expected.sha256 {
                return Err(refuse(&"does not have the hash that RECORD gives"));
            }
            if let (Some(file), Some(path), Some(placed)) = (output, &target, placed) {
                file.sync_all().map_err(disk_error("write", path))?;
                files.push(FileRecord { path: placed.to_owned(), bytes: length, sha256: hex(&sha256) });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }
}

fn create(path: &Path, program: bool) -> anyhow::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(disk_error("make", folder))?;
    }
    let mode = if program { 0o777 } else { 0o666 };
    File::options().write(true).create_new(true).mode(mode).open(path).map_err(disk_error("write", path))
}

/// Looks at every entry of the archive's directory, and gives the names and sizes of those that are files.
fn check_directory(archive: &mut ZipArchive<BufReader<File>>) -> anyhow::Result<BTreeMap<String, u64>> {
    ensure!(!archive.has_duplicate_names(), "it has two files of the same name");
    let mut names = BTreeMap::new();
    let mut total: u64 = 0;
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).context("its directory is damaged")?;
        let name = entry.name().context("a file's name is not text")?.into_owned();
        ensure!(is_inside(&name), "the path `{}` leads out of it", name.escape_debug());
        ensure!(!entry.is_symlink(), "{name} is a symbolic link");
        ensure!(!entry.encrypted(), "{name} is encrypted");
        let bytes = entry.size();
        ensure!(bytes <= MAX_FILE_BYTES, "{name} claims {bytes} bytes, {MAX_FILE_BYTES} are the most");
        total = total.saturating_add(bytes);
        ensure!(total <= MAX_TOTAL_BYTES, "its files claim more than {MAX_TOTAL_BYTES} bytes together");
        if name.ends_with('/') {
            ensure!(bytes == 0, "the folder {name} has contents");
        } else {
            names.insert(name, bytes);
        }
    }
    Ok(names)
}

/// A relative path without tricks; a folder's may end in a slash.
fn is_inside(name: &str) -> bool {
    let name = name.strip_suffix('/').unwrap_or(name);
    let sound = |part: &str| !matches!(part, "" | "." | "..");
    name.split('/').all(sound) && !name.contains(|c: char| c.is_control() || matches!(c, '\\' | ':'))
}

fn is_dist_info(name: &str, file: &str) -> bool {
    name.strip_suffix(file).and_then(|rest| rest.strip_suffix(".dist-info/")).is_some_and(|rest| !rest.contains('/'))
}

/// RECORD must list what is there, in its size, and nothing else.
fn compare(names: &BTreeMap<String, u64>, record: &Record, own: &str) -> anyhow::Result<()> {
    for (name, bytes) in names.iter().filter(|(name, _)| !record::is_unhashed(name, own)) {
        let listed = record.get(name).with_context(|| format!("{name} is not listed in RECORD"))?.bytes;
        ensure!(*bytes == listed, "{name} has {bytes} bytes, RECORD says {listed}");
    }
    if let Some(name) = record.keys().find(|name| !names.contains_key(*name)) {
        bail!("{name} is listed in RECORD but is not there");
    }
    Ok(())
}

/// A small text file of the archive.
fn text(archive: &mut ZipArchive<BufReader<File>>, name: &str) -> anyhow::Result<String> {
    let entry = archive.by_name(name).map_err(|error| anyhow!("{name} cannot be read: {error}"))?;
    ensure!(entry.size() <= MAX_TEXT_BYTES, "{name} is larger than {MAX_TEXT_BYTES} bytes");
    let mut text = String::new();
    entry.take(MAX_TEXT_BYTES).read_to_string(&mut text).map_err(|error| anyhow!("{name} is damaged: {error}"))?;
    Ok(text)
}

/// Values of a field in the head of a mail-like text.
fn fields<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let head = text.lines().take_while(|line| !line.trim().is_empty());
    head.filter_map(move |line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// SHA-256 in hex and the number of bytes.
pub fn hash(reader: &mut impl Read) -> io::Result<(String, u64)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    let mut length = 0;
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            return Ok((hex(&hasher.finalize()), length));
        }
        hasher.update(&buffer[..count]);
        length += count as u64;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for good in ["a", "a/b.so", "a-1.dist-info/", "a/..b", "a/b..c"] {
            assert!(is_inside(good), "{good}");
        }
        for bad in ["", "/", "/etc/passwd", "../a", "a/../b", "a/..", "./a", "a//b", "a\\b", "C:a", "a\0b", "a\n"] {
            assert!(!is_inside(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_field_stands_in_the_head() {
        let text = "Metadata-Version: 2.4\nName: onnxruntime\r\nVersion: 1.31.1\n\nName: not this\nTag: x\n";
        assert_eq!(fields(text, "Name").collect::<Vec<_>>(), ["onnxruntime"]);
        assert_eq!(fields(text, "Tag").count(), 0);
    }
}
