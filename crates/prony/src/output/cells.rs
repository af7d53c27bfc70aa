//! What a person sees while it runs: a bar a cell on a terminal, plain lines elsewhere. All of it on stderr.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use prony_run::Spectator;
use prony_types::BuildProgress;
use prony_types::text::printable;

use super::making::{Pace, words};
use super::{bars, is_live};

/// Bars or lines, one a cell.
pub(crate) struct Cells {
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

impl Cells {
    /// For cells of these names; those that are added are shown.
    pub(crate) fn new<'a>(ids: impl Iterator<Item = &'a str>) -> Cells {
        let bars = is_live().then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)));
        let width = ids.map(|id| id.chars().count()).max().unwrap_or(0).min(36);
        let template = format!("  {{prefix:{width}}} {{bar:18.cyan/dim}} {{msg}}");
        let style = ProgressStyle::with_template(&template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("━╸─");
        Cells { bars, style, cells: Vec::new() }
    }
}

impl Spectator for Cells {
    fn add(&mut self, id: &str) {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(ProgressBar::new(STEPS).with_style(self.style.clone()));
            bars::prefix(&bar, id);
            bars::message(&bar, "waiting");
            bar
        });
        self.cells.push(Line { id: id.to_owned(), bar, pace: Pace::default() });
    }

    /// A line above the bars.
    fn say(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| note!("{}", printable(text))),
            None => note!("{}", printable(text)),
        }
    }

    /// A step of a cell worth a line of its own where there are no bars.
    fn milestone(&self, cell: usize, text: &str) {
        match &self.cells[cell] {
            Line { bar: Some(bar), .. } => bars::message(bar, text),
            Line { id, bar: None, .. } => self.say(&format!("  {id}: {text}")),
        }
    }

    /// A figure that changes all the time; only bars show it.
    fn figure(&self, cell: usize, done: f64, text: &str) {
        if let Some(bar) = &self.cells[cell].bar {
            bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
            bars::message(bar, text);
        }
    }

    /// A step of what takes minutes: where there are no bars, a line now and then.
    fn building(&self, cell: usize, progress: &BuildProgress) {
        match &self.cells[cell] {
            Line { bar: Some(_), .. } => self.figure(cell, progress.done.unwrap_or(0.0), &words(progress)),
            Line { id, pace, .. } if pace.is_due() => self.say(&format!("  {id}: {}", words(progress))),
            Line { .. } => {}
        }
    }

    /// Whether anyone looks at figures that change.
    fn is_live(&self) -> bool {
        self.bars.is_some()
    }

    /// The cell's last word.
    fn finish(&self, cell: usize, text: &str) {
        match &self.cells[cell] {
            Line { bar: Some(bar), .. } => bars::last_message(bar, text),
            Line { id, bar: None, .. } => self.say(&format!("  {id}: {text}")),
        }
    }

    /// Leaves the terminal clean for the table.
    fn clear(&self) {
        if let Some(bars) = &self.bars {
            let _ = bars.clear();
        }
    }
}
