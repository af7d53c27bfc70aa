//! Somebody who watches a run.

use prony_types::BuildProgress;

/// Whoever is told how the cells of a run are, by their number.
pub trait Spectator {
    /// One more cell.
    fn add(&mut self, id: &str);

    /// A line for all cells.
    fn say(&self, text: &str);

    /// A step of a cell worth a line.
    fn milestone(&self, cell: usize, text: &str);

    /// A figure that changes all the time, and the share that is done.
    fn figure(&self, cell: usize, done: f64, text: &str);

    /// How far something is that takes minutes to make.
    fn building(&self, cell: usize, progress: &BuildProgress);

    /// Whether figures that change are looked at.
    fn is_live(&self) -> bool;

    /// The cell's last word.
    fn finish(&self, cell: usize, text: &str);

    /// It is over.
    fn clear(&self);
}
