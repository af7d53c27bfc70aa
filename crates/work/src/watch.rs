//! Somebody who is told how far it is. Libraries know no terminal: whoever calls them hands this in.

use std::time::Duration;

/// Whoever is told.
pub trait Watcher {
    /// A line that stays.
    fn say(&self, text: &str);

    /// A line that is said even to those who want to hear of mistakes alone.
    fn warn(&self, text: &str);

    /// A step begins; it is over when the value is dropped.
    fn step(&self, text: &str, length: Length) -> Box<dyn Step>;
}

/// How long a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// There is nothing to count.
    Unknown,
    /// Bytes; so many in all, where that is known.
    Bytes(Option<u64>),
}

/// A step under way.
pub trait Step {
    /// So many bytes are done.
    fn at(&self, done: u64);

    /// So many were done before it began: they say nothing about the speed.
    fn begin_at(&self, done: u64);

    /// Other words for it.
    fn says(&self, text: &str);
}

/// Nobody who is told.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn say(&self, _: &str) {}

    fn warn(&self, _: &str) {}

    fn step(&self, _: &str, _: Length) -> Box<dyn Step> {
        Box::new(Unwatched)
    }
}

impl Step for Unwatched {
    fn at(&self, _: u64) {}

    fn begin_at(&self, _: u64) {}

    fn says(&self, text: &str) {}
}

/// `29.4 MB`.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// `1m 05s`, `12 s`.
pub fn short_time(seconds: f64) -> String {
    let whole = Duration::from_secs_f64(seconds.clamp(0.0, 1e6)).as_secs_f64().ceil() as u64;
    if whole >= 60 { format!("{}m {:02}s", whole / 60, whole % 60) } else { format!("{whole} s") }
}
