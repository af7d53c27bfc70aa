//! What this binary is.

/// Version and commit, e.g. `0.1.0 (1a2b3c4d5e6f)`.
pub(crate) const VERSION: &str = env!("PRONY_VERSION");
