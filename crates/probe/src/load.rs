//! Load average, from `/proc/loadavg`.

use crate::tree::Tree;

/// Over one minute.
pub(crate) fn read(tree: &Tree) -> Option<f64> {
    tree.text("proc/loadavg")?.split_whitespace().next()?.parse().ok()
}
