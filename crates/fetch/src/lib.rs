//! Downloads that survive a break. What is there of a file lies beside it as `.part`, with a note of which version of
//! the file it is a part of; only a whole and checked file gets the name.
//!
//! curl or wget does every transfer, with the system's certificates and proxies. It is given one address at a time and
//! limits on time and length; redirections, lengths, encodings and versions are checked here.

mod answer;
mod part;
mod process;
mod tool;
mod transfer;
mod url;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use prony_files::{Folder, Kind};
use prony_work::{Interrupt, Length, Watcher};
use sha2::{Digest as _, Sha256};

use self::part::Part;
use self::transfer::End;
pub use self::url::Url;

/// A SHA-256 as 64 hexadecimal digits, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sha256Hex(String);

impl FromStr for Sha256Hex {
    type Err = String;

    fn from_str(text: &str) -> Result<Sha256Hex, String> {
        let whole = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        whole
            .then(|| Sha256Hex(text.to_ascii_lowercase()))
            .ok_or_else(|| "a SHA-256 has 64 hexadecimal digits".to_owned())
    }
}

/// A download may be anything, so it may be as large as the largest of what is read here.
const LARGEST: Kind = Kind::Weights;

/// One file to get.
pub struct Download<'a> {
    /// Where it is.
    pub url: &'a Url,
    /// Where it goes; made if needed.
    pub folder: &'a Path,
    /// What it must hash to.
    pub sha256: Option<&'a Sha256Hex>,
    /// Bytes that it must have.
    pub size: Option<u64>,
    /// Told how far it is.
    pub watcher: &'a dyn Watcher,
    /// What servers are told of who asks, `prony/1.2.3`.
    pub agent: &'a str,
    /// Ends it, and keeps what there is.
    pub interrupt: &'a Interrupt,
}

/// How a download ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The file is new.
    Whole {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// Its hash.
        sha256: String,
    },
    /// It was there before, and is what was asked for as far as that was said.
    There {
        /// The file.
        path: PathBuf,
    },
    /// The user asked to stop; what can be continued was kept.
    Stopped {
        /// What is kept.
        part: PathBuf,
        /// How much of it.
        bytes: u64,
    },
}

/// Gets a file, or the rest of it.
pub fn fetch(download: &Download<'_>) -> anyhow::Result<Fetched> {
    let name = download.url.file_name()?;
    let path = download.folder.join(&name);
    let folder = Folder::make(download.folder)
        .with_context(|| format!("{}: cannot make the folder", download.folder.display()))?;
    if folder.exists(&name) {
        return there(download, path);
    }
    let part = Part::open(folder, &name, download.url)?;
    match get(download, &part, &name) {
        Ok(Some((bytes, sha256))) => Ok(Fetched::Whole { path: part.finish()?, bytes, sha256 }),
        Ok(None) => Ok(Fetched::Stopped { part: part.path(), bytes: part.keep()? }),
        Err(error) => {
            // The reason is worth more than what went wrong with removing it.
            let _ = part.keep();
            Err(error)
        }
    }
}

/// Fills a part up and checks it: its length and SHA-256; `None` when the user asked to stop.
fn get(download: &Download<'_>, part: &Part, name: &str) -> anyhow::Result<Option<(u64, String)>> {
    if transfer::transfer(download, part, name)? == End::Stopped {
        return Ok(None);
    }
    let bytes = part.len()?;
    if let Some(size) = download.size.filter(|size| *size != bytes) {
        part.clear()?;
        bail!("{}: has {bytes} bytes instead of {size}; nothing was kept", download.url);
    }
    let Some(sha256) = hash(&part.path(), download)? else { return Ok(None) };
    if let Some(expected) = download.sha256.filter(|expected| expected.0 != sha256) {
        part.clear()?;
        bail!("{}: its SHA-256 is {sha256} instead of {}; nothing was kept", download.url, expected.0);
    }
    Ok(Some((bytes, sha256)))
}

/// A file of that name is there already: it is left alone, and must be the one that was asked for.
fn there(download: &Download<'_>, path: PathBuf) -> anyhow::Result<Fetched> {
    let otherwise = "move it away to fetch it anew";
    let file = prony_files::open(&path, LARGEST).with_context(|| path.display().to_string())?;
    let bytes = file.metadata().with_context(|| path.display().to_string())?.len();
    if let Some(size) = download.size.filter(|size| *size != bytes) {
        bail!("{}: is there with {bytes} bytes instead of {size}; {otherwise}", path.display());
    }
    if let Some(expected) = download.sha256 {
        let Some(sha256) = hash(&path, download)? else { return Ok(Fetched::Stopped { part: path, bytes }) };
        if sha256 != expected.0 {
            bail!("{}: is there, and its SHA-256 is {sha256} instead of {}; {otherwise}", path.display(), expected.0);
        }
    }
    Ok(Fetched::There { path })
}

/// SHA-256 of a file; `None` when the user asked to stop.
fn hash(path: &Path, download: &Download<'_>) -> anyhow::Result<Option<String>> {
    let mut file = prony_files::open(path, LARGEST).with_context(|| path.display().to_string())?;
    let step = download.watcher.step("checking", Length::Bytes(Some(file.metadata()?.len())));
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        let got = match file.read(&mut buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            got => got.with_context(|| format!("{}: cannot read it back", path.display()))?,
        };
        if got == 0 {
            return Ok(Some(hex(&hash.finalize())));
        }
        if download.interrupt.asked() {
            return Ok(None);
        }
        hash.update(&buffer[..got]);
        done += got as u64;
        step.at(done);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
