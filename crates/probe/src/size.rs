//! Amounts of memory in words.

/// `488 MiB`, `31.2 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    if bytes >= 10 * GIB { format!("{:.1} GiB", bytes as f64 / GIB as f64) } else { format!("{} MiB", bytes >> 20) }
}
