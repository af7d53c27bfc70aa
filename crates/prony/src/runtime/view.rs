//! What a person sees of an install: a line a step, and on a terminal how far it is. All of it on stderr.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{bars, is_live};

/// How to show progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    live: bool,
}

impl View {
    pub(crate) fn new() -> View {
        View { live: is_live() }
    }

    /// Whether there is a terminal to show progress on.
    pub(crate) fn is_live(self) -> bool {
        self.live
    }

    /// A line that stays.
    pub(crate) fn say(self, text: &str) {
        note!("{text}");
    }

    /// A step of unknown length; without a terminal its name is all there is to see.
    pub(crate) fn spinner(self, text: &str) -> ProgressBar {
        if !self.live {
            self.say(text);
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new_spinner();
        bars::message(&bar, text);
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    /// A step of known length.
    pub(crate) fn bar(self, text: &str, bytes: u64) -> ProgressBar {
        if !self.live {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("  {bar:30.cyan/dim} {decimal_bytes}/{decimal_total_bytes}  {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─");
        let bar = ProgressBar::new(bytes).with_style(style);
        bars::message(&bar, text);
        bar
    }
}

/// `29.4 MB`.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
