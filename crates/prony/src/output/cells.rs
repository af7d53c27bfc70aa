//! What a person sees while it runs: a bar a cell on a terminal, plain lines elsewhere. All of it on stderr.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use prony_run::{RecordFold, Sink, last_word, made, scored_in_words};
use prony_types::text::printable;
use prony_types::{BuildProgress, CellStatus, Doing, Event, EventKind, Happened, RunEventKind};

use super::making::{Pace, words};
use super::{bars, is_live};

/// Bars or lines, one a cell.
pub(crate) struct Cells {
    bars: Option<MultiProgress>,
    style: ProgressStyle,
    lines: Vec<Line>,
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
        Cells { bars, style, lines: Vec::new() }
    }
}

impl Cells {
    /// One more cell.
    fn add(&mut self, id: &str) {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(ProgressBar::new(STEPS).with_style(self.style.clone()));
            bars::prefix(&bar, id);
            bars::message(&bar, "waiting");
            bar
        });
        self.lines.push(Line { id: id.to_owned(), bar, pace: Pace::default() });
    }

    /// A line above the bars.
    fn say(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| note!("{}", printable(text))),
            None => note!("{}", printable(text)),
        }
    }

    fn line(&self, cell: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.id == cell)
    }

    /// A step of a cell worth a line of its own where there are no bars.
    fn milestone(&self, cell: &str, text: &str) {
        match self.line(cell).and_then(|line| line.bar.as_ref()) {
            Some(bar) => bars::message(bar, text),
            None => self.say(&format!("  {cell}: {text}")),
        }
    }

    /// A figure that changes all the time; only bars show it.
    fn show(&self, cell: &str, done: f64, text: &str) {
        if let Some(bar) = self.line(cell).and_then(|line| line.bar.as_ref()) {
            bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
            bars::message(bar, text);
        }
    }

    /// What takes minutes: where there are no bars, a line now and then.
    fn building(&self, cell: &str, progress: &BuildProgress) {
        match self.line(cell) {
            Some(Line { bar: Some(_), .. }) => self.show(cell, progress.done.unwrap_or(0.0), &words(progress)),
            Some(Line { pace, .. }) if pace.is_due() => self.say(&format!("  {cell}: {}", words(progress))),
            _ => {}
        }
    }

    /// The cell's last word.
    fn finish(&self, cell: &str, text: &str) {
        match self.line(cell).and_then(|line| line.bar.as_ref()) {
            Some(bar) => bars::last_message(bar, text),
            None => self.say(&format!("  {cell}: {text}")),
        }
    }

    /// The cells of a run, and what is known of some of them before it begins.
    fn begin(&mut self, so_far: &RecordFold) {
        so_far.cells().iter().for_each(|cell| self.add(&cell.spec.id));
        for cell in so_far.cells() {
            match cell.record.status {
                CellStatus::Pending => {}
                CellStatus::Completed => self.finish(&cell.spec.id, "kept from the earlier run"),
                _ => self.finish(&cell.spec.id, &last_word(&cell.record)),
            }
        }
    }

    fn did(&mut self, kind: &RunEventKind, so_far: &RecordFold) {
        match kind {
            RunEventKind::Began { .. } => self.begin(so_far),
            RunEventKind::Doing { cell, doing } if is_told(*doing) => self.milestone(cell, doing.words()),
            RunEventKind::Said { text } => self.say(text),
            RunEventKind::Called { cells } => {
                for cell in cells {
                    let (model, id) = (&cell.model.name, &cell.id);
                    self.say(&format!("  no other backend that is here can run {model}: measuring {id}"));
                    self.add(id);
                }
            }
            RunEventKind::Scored { cell, accuracy: Some(accuracy), .. } => {
                self.milestone(cell, &scored_in_words(accuracy));
            }
            RunEventKind::Restarted { cell, death } => {
                self.milestone(cell, &format!("{death}; it is measured again alone"));
            }
            RunEventKind::Closed { cell, .. } => {
                let word = so_far.cell_of(cell).map(|cell| last_word(&cell.record));
                self.finish(cell, &word.unwrap_or_default());
            }
            // Leaves the terminal clean for the table.
            RunEventKind::Ended { .. } => {
                if let Some(bars) = &self.bars {
                    let _ = bars.clear();
                }
            }
            _ => {}
        }
    }

    fn heard(&self, event: &Event, so_far: &RecordFold) {
        let cell = &event.cell;
        match &event.kind {
            EventKind::Cold { total_ms, .. } => {
                let load = so_far.cell_of(cell).and_then(|cell| cell.record.load_ms).unwrap_or_default();
                self.milestone(cell, &format!("loaded in {load:.0} ms, first frame {total_ms:.1} ms"));
            }
            EventKind::Frames { skipped, .. } => {
                skipped.iter().for_each(|reason| self.say(&format!("  {cell}: skipped: {reason}")));
            }
            EventKind::Building(progress) => self.building(cell, progress),
            EventKind::Evaluating { done, total } => {
                let share = *done as f64 / (*total).max(1) as f64;
                self.show(cell, share, &format!("{done} of {total} images"));
            }
            EventKind::Prepared { artifact, build_ms, rebuilt_because, notes } => {
                self.milestone(cell, &made(artifact, *build_ms, rebuilt_because.as_deref()));
                notes.iter().for_each(|note| self.say(&format!("  {cell}: {note}")));
            }
            _ => {}
        }
    }
}

impl Sink for Cells {
    fn event(&mut self, event: &Happened, so_far: &RecordFold) {
        match event {
            Happened::Run(event) => self.did(&event.kind, so_far),
            Happened::Worker(event) => self.heard(event, so_far),
        }
    }

    fn wants_figures(&self) -> bool {
        self.bars.is_some()
    }

    fn figure(&mut self, cell: &str, done: f64, text: &str) {
        self.show(cell, done, text);
    }
}

/// Whether a line is worth it: the others are told by what comes of them.
const fn is_told(doing: Doing) -> bool {
    !matches!(doing, Doing::WarmingUp | Doing::Measuring | Doing::Checking)
}
