//! What a person sees while it runs: a bar a cell on a terminal, plain lines elsewhere. All of it on stderr.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How much to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loudness {
    Quiet,
    Normal,
}

/// Bars or lines, one a cell.
pub(crate) struct Progress {
    bars: Option<MultiProgress>,
    style: ProgressStyle,
    cells: Vec<Line>,
    loudness: Loudness,
}

struct Line {
    id: String,
    bar: Option<ProgressBar>,
}

const STEPS: u64 = 1000;

impl Progress {
    pub(crate) fn new(ids: &[String], loudness: Loudness) -> Progress {
        let live = loudness == Loudness::Normal && std::io::stderr().is_terminal();
        let bars = live.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)));
        let width = ids.iter().map(|id| id.chars().count()).max().unwrap_or(0).min(36);
        let template = format!("  {{prefix:{width}}} {{bar:18.cyan/dim}} {{msg}}");
        let style = ProgressStyle::with_template(&template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("━╸─");
        let mut progress = Progress { bars, style, cells: Vec::new(), loudness };
        ids.iter().for_each(|id| progress.add(id));
        progress
    }

    /// One more cell.
    pub(crate) fn add(&mut self, id: &str) {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(ProgressBar::new(STEPS).with_style(self.style.clone()));
            bar.set_prefix(id.to_owned());
            bar.set_message("waiting");
            bar
        });
        self.cells.push(Line { id: id.to_owned(), bar });
    }

    /// A line above the bars.
    pub(crate) fn say(&self, text: &str) {
        match (&self.bars, self.loudness) {
            (_, Loudness::Quiet) => {}
            (Some(bars), _) => bars.suspend(|| eprintln!("{text}")),
            (None, _) => eprintln!("{text}"),
        }
    }

    /// A step of a cell worth a line of its own where there are no bars.
    pub(crate) fn milestone(&self, cell: usize, text: &str) {
        match &self.cells[cell] {
            Line { bar: Some(bar), .. } => bar.set_message(text.to_owned()),
            Line { id, bar: None } => self.say(&format!("  {id}: {text}")),
        }
    }

    /// A figure that changes all the time; only bars show it.
    pub(crate) fn figure(&self, cell: usize, done: f64, text: impl FnOnce() -> String) {
        if let Some(bar) = &self.cells[cell].bar {
            bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
            bar.set_message(text());
        }
    }

    /// Whether anyone looks at figures that change.
    pub(crate) fn is_live(&self) -> bool {
        self.bars.is_some()
    }

    /// The cell's last word.
    pub(crate) fn finish(&self, cell: usize, text: &str) {
        match &self.cells[cell] {
            Line { bar: Some(bar), .. } => bar.abandon_with_message(text.to_owned()),
            Line { id, bar: None } => self.say(&format!("  {id}: {text}")),
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
