//! What is to be got, and how that ended.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use prony_work::{Interrupt, Watcher};

use super::url::Url;

/// A SHA-256 as 64 hexadecimal digits, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sha256Hex(pub(super) String);

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

/// As hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
