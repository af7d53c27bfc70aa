//! What a person sees while it runs: a bar a cell on a terminal, plain lines elsewhere. All of it on stderr.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use prony_types::text::printable;

use crate::output::{Pace, bars, is_live};

/// Bars or lines, one a cell.
pub(crate) struct Progress {
    bars: Option<MultiProgress>,
    style: ProgressStyle,
    cells: Vec<Line>,
}

struct Line {
    id: String,
    bar: Option<ProgressBar>,
    pace: Pace,
}

const STEPS: u64 = 1000;

impl Progress {
    pub(crate) fn new(ids: &[String]) -> Progress {
        let bars = is_live().then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)));
        let width = ids.iter().map(|id| id.chars().count()).max().unwrap_or(0).min(36);
        let template = format!("  {{prefix:{width}}} {{bar:18.cyan/dim}} {{msg}}");
        let style = ProgressStyle::with_template(&template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("━╸─");
        let mut progress = Progress { bars, style, cells: Vec::new() };
        ids.iter().for_each(|id| progress.add(id));
        progress
    }

    /// One more cell.
    pub(crate) fn add(&mut self, id: &str) {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(ProgressBar::new(STEPS).with_style(self.style.clone()));
            bars::prefix(&bar, id);
            bars::message(&bar, "waiting");
            bar
        });
        self.cells.push(Line { id: id.to_owned(), bar, pace: Pace::default() });
    }

    /// A line above the bars.
    pub(crate) fn say(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| note!("{}", printable(text))),
            None => note!("{}", printable(text)),
        }
    }

    /// A step of a cell worth a line of its own where there are no bars.
    pub(crate) fn milestone(&self, cell: usize, text: &str) {
        match &self.cells[cell] {
            Line { bar: Some(bar), .. } => bars::message(bar, text),
            Line { id, bar: None, .. } => self.say(&format!("  {id}: {text}")),
        }
    }

    /// A figure that changes all the time; only bars show it.
    pub(crate) fn figure(&self, cell: usize, done: f64, text: impl FnOnce() -> String) {
        if let Some(bar) = &self.cells[cell].bar {
            bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
            bars::message(bar, &text());
        }
    }

    /// A step of what takes minutes: where there are no bars, a line now and then.
    pub(crate) fn step(&self, cell: usize, done: f64, text: impl FnOnce() -> String) {
        match &self.cells[cell] {
            Line { bar: Some(_), .. } => self.figure(cell, done, text),
            Line { id, pace, .. } if pace.is_due() => self.say(&format!("  {id}: {}", text())),
            Line { .. } => {}
        }
    }

    /// Whether anyone looks at figures that change.
    pub(crate) fn is_live(&self) -> bool {
        self.bars.is_some()
    }

    /// The cell's last word.
    pub(crate) fn finish(&self, cell: usize, text: &str) {
        match &self.cells[cell] {
            Line { bar: Some(bar), .. } => bars::last_message(bar, text),
            Line { id, bar: None, .. } => self.say(&format!("  {id}: {text}")),
        }
    }

    /// Leaves the terminal clean for the table.
    pub(crate) fn clear(&self) {
        if let Some(bars) = &self.bars {
            let _ = bars.clear();
        }
    }
}

/// `1m 05s`, `12 s`.
pub(crate) fn short_time(seconds: f64) -> String {
    let whole = Duration::from_secs_f64(seconds.clamp(0.0, 1e6)).as_secs_f64().ceil() as u64;
    if whole >= 60 { format!("{}m {:02}s", whole / 60, whole % 60) } else { format!("{whole} s") }
}
