//! SHA-256, by which models and artifacts are known.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use prony_files::Kind;
use sha2::{Digest, Sha256};

/// A file is hashed through a buffer of this size, so that its pages do not count as ours.
const HASH_BUFFER: usize = 1 << 20;

/// SHA-256 in hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256 of a file in hex, without holding more than a little of it.
pub fn sha256_file(path: &Path) -> io::Result<String> {
    sha256_of(prony_files::open(path, Kind::Weights)?)
}

/// SHA-256 of what is left of an open file.
pub fn sha256_of(mut file: File) -> io::Result<String> {
    let mut buffer = vec![0; HASH_BUFFER];
    let mut digest = Sha256::new();
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            n => digest.update(&buffer[..n]),
        }
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sha256() {
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
