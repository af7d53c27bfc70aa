//! One download: what is there already, what comes, and whether it is what it should be.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use prony_files::{Folder, Kind};
use prony_work::Length;
use sha2::{Digest as _, Sha256};

use super::download::{Download, Fetched, hex};
use super::part::Part;
use super::transfer::{End, transfer};

/// A download may be anything, so it may be as large as the largest of what is read here.
const LARGEST: Kind = Kind::Weights;

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
    if transfer(download, part, name)? == End::Stopped {
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
