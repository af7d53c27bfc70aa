//! Downloads that survive a break. What is there of a file lies beside it as `.part`, with a note of which version of
//! the file it is a part of; only a whole and checked file gets the name.
//!
//! `http://` is spoken here; `https://` is left to curl or wget, with the user's own certificates and proxies.

mod child;
mod headers;
mod http;
mod part;
mod tally;
mod transfer;
mod url;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

use self::part::Part;
use self::tally::Tally;
use self::transfer::End;
pub(crate) use self::url::Url;
use crate::run::Interrupt;
use crate::runtime::View;

/// A SHA-256 as 64 hexadecimal digits, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sha256Hex(String);

impl FromStr for Sha256Hex {
    type Err = String;

    fn from_str(text: &str) -> Result<Sha256Hex, String> {
        let whole = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        whole
            .then(|| Sha256Hex(text.to_ascii_lowercase()))
            .ok_or_else(|| "a SHA-256 has 64 hexadecimal digits".to_owned())
    }
}

/// One file to get.
pub(crate) struct Errand<'a> {
    pub(crate) url: &'a Url,
    pub(crate) folder: &'a Path,
    pub(crate) sha256: Option<&'a Sha256Hex>,
    pub(crate) size: Option<u64>,
    pub(crate) view: View,
    pub(crate) interrupt: &'a Interrupt,
}

/// How an errand ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// The file is new.
    Whole { path: PathBuf, bytes: u64, sha256: String },
    /// It was there before, and is what was asked for as far as that was said.
    There { path: PathBuf },
    /// The user asked to stop; what there is of it was kept.
    Stopped { part: PathBuf, bytes: u64 },
}

/// Gets a file, or the rest of it.
pub(crate) fn fetch(errand: &Errand<'_>) -> anyhow::Result<Fetched> {
    let name = errand.url.file_name()?;
    let path = errand.folder.join(&name);
    fs::create_dir_all(errand.folder)
        .with_context(|| format!("{}: cannot make the folder", errand.folder.display()))?;
    if path.exists() {
        return there(errand, path);
    }
    let mut part = Part::open(&path)?;
    if transfer::transfer(errand, &mut part, &name)? == End::Stopped {
        return stopped(&part);
    }
    let bytes = part.len()?;
    if let Some(size) = errand.size.filter(|size| *size != bytes) {
        part.discard()?;
        bail!("{}: has {bytes} bytes instead of {size}; nothing was kept", errand.url);
    }
    let Some(sha256) = hash(part.path(), errand)? else { return stopped(&part) };
    if let Some(expected) = errand.sha256.filter(|expected| expected.0 != sha256) {
        part.discard()?;
        bail!("{}: its SHA-256 is {sha256} instead of {}; nothing was kept", errand.url, expected.0);
    }
    part.finish(&path)?;
    Ok(Fetched::Whole { path, bytes, sha256 })
}

fn stopped(part: &Part) -> anyhow::Result<Fetched> {
    Ok(Fetched::Stopped { part: part.path().to_path_buf(), bytes: part.len()? })
}

/// A file of that name is there already: it is left alone, and must be the one that was asked for.
fn there(errand: &Errand<'_>, path: PathBuf) -> anyhow::Result<Fetched> {
    let otherwise = "move it away to fetch it anew";
    let bytes = fs::metadata(&path).with_context(|| path.display().to_string())?.len();
    if let Some(size) = errand.size.filter(|size| *size != bytes) {
        bail!("{}: is there with {bytes} bytes instead of {size}; {otherwise}", path.display());
    }
    if let Some(expected) = errand.sha256 {
        let Some(sha256) = hash(&path, errand)? else { return Ok(Fetched::Stopped { part: path, bytes }) };
        if sha256 != expected.0 {
            bail!("{}: is there, and its SHA-256 is {sha256} instead of {}; {otherwise}", path.display(), expected.0);
        }
    }
    Ok(Fetched::There { path })
}

/// SHA-256 of a file; `None` when the user asked to stop.
fn hash(path: &Path, errand: &Errand<'_>) -> anyhow::Result<Option<String>> {
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let tally = Tally::new(errand.view, "checking", Some(file.metadata()?.len()));
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        let got = match file.read(&mut buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            got => got.with_context(|| format!("{}: cannot read it back", path.display()))?,
        };
        if got == 0 {
            return Ok(Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()));
        }
        if errand.interrupt.asked() {
            return Ok(None);
        }
        hash.update(&buffer[..got]);
        done += got as u64;
        tally.at(done);
    }
}
