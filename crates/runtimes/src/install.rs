//! Runtimes that Prony fetches for itself: libraries out of official wheels, in versioned folders under Prony's home.
//! The user's own pip is the downloader; nothing here knows a host name, and nothing of Python is kept.

mod child;
mod installed;
mod order;
mod pip;
mod platform;
mod stage;

use std::fmt;
use std::str::FromStr;

pub use self::installed::{Installed, Shelf, State};
pub use self::order::{Order, Outcome, install};
pub use self::stage::ShelfTurn;
use crate::{DiskError, Package, Version, home, layout, wheel};

/// A runtime as it is named on the command line: `NAME` or `NAME@VERSION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which package.
    pub name: Package,
    /// Which version; without one the newest, or all.
    pub version: Option<Version>,
}

impl FromStr for Request {
    type Err = String;

    fn from_str(text: &str) -> Result<Request, String> {
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(version.parse()?)),
            None => (text, None),
        };
        let known = Package::ALL.into_iter().find(|known| known.as_str() == name);
        let name = known.ok_or_else(|| {
            let names = Package::ALL.map(Package::as_str).join(", ");
            format!("unknown runtime `{name}`; known are {names}")
        })?;
        Ok(Request { name, version })
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

/// The user asked to stop; what was begun is cleaned up on the way out.
#[derive(Debug)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Stopped {}

/// Whether the machine failed, and not what it was given.
pub fn is_failure(error: &anyhow::Error) -> bool {
    error.is::<DiskError>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_name_and_perhaps_a_version() {
        let request: Request = "onnxruntime-gpu@1.23.2".parse().unwrap();
        assert_eq!((request.name, request.to_string().as_str()), (Package::OnnxruntimeGpu, "onnxruntime-gpu@1.23.2"));
        assert_eq!("ffmpeg".parse::<Request>().unwrap().version, None);
        let error = "tensorflow".parse::<Request>().unwrap_err();
        assert_eq!(error, "unknown runtime `tensorflow`; known are onnxruntime, onnxruntime-gpu, openvino, ffmpeg");
        for bad in ["onnxruntime@", "onnxruntime@../x", "onnxruntime@1/2", "onnxruntime@.."] {
            bad.parse::<Request>().unwrap_err();
        }
    }
}
