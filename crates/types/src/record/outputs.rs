//! The raw outputs of one call, as a hash.

use serde::{Deserialize, Serialize};

/// Identifies raw outputs to the bit, so that those of `prony bench` and `prony run` can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputsRecord {
    /// The first frame of the call, from 0.
    pub frame: u32,
    /// SHA-256 of the values of all outputs in the order of the session, little-endian, without names and shapes. With one
    /// output that is the hash of what follows the header of the `.npy` file that `prony run` writes.
    pub sha256: String,
}
