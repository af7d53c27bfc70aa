//! How far a download is, on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::bars;
use crate::runtime::View;

/// A bar that vanishes with its value.
pub(super) struct Tally(ProgressBar);

impl Tally {
    pub(super) fn new(view: View, what: &str, total: Option<u64>) -> Tally {
        if !view.is_live() {
            return Tally(ProgressBar::hidden());
        }
        let template = match total {
            Some(_) => {
                "  {msg} {bar:30.cyan/dim} {decimal_bytes}/{decimal_total_bytes}  {decimal_bytes_per_sec}  ETA {eta}"
            }
            None => "  {msg} {spinner} {decimal_bytes}  {decimal_bytes_per_sec}",
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        let bar = bar.with_style(style.progress_chars("━╸─"));
        bars::message(&bar, what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Tally(bar)
    }

    /// Where to begin: what was there before says nothing about the speed.
    pub(super) fn from(self, bytes: u64) -> Tally {
        self.0.set_position(bytes);
        self.0.reset_eta();
        self
    }

    pub(super) fn at(&self, bytes: u64) {
        self.0.set_position(bytes);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
