//! How far something is that takes its time to make: a bar on a terminal, elsewhere a line now and then.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use prony_types::BuildProgress;

use super::{bars, is_live};
use prony_work::short_time;

/// Time between two lines where there is no terminal.
const INTERVAL: Duration = Duration::from_secs(5);
const STEPS: u64 = 1000;

/// Lets a line through at once, and then one per interval.
#[derive(Debug, Default)]
pub(crate) struct Pace(Cell<Option<Instant>>);

impl Pace {
    /// Whether the next line is due.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due_at(Instant::now())
    }

    fn is_due_at(&self, now: Instant) -> bool {
        let due = self.0.get().is_none_or(|last| now.duration_since(last) >= INTERVAL);
        if due {
            self.0.set(Some(now));
        }
        due
    }
}

/// Progress of one thing that is made.
#[derive(Debug)]
pub(crate) struct MakingProgress {
    what: String,
    bar: Option<ProgressBar>,
    pace: Pace,
}

impl MakingProgress {
    pub(crate) fn new(what: &str) -> MakingProgress {
        let bar = is_live().then(|| {
            let bar = ProgressBar::new(STEPS);
            bars::prefix(&bar, what);
            if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:20}] {elapsed} {wide_msg}") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        MakingProgress { what: what.to_owned(), bar, pace: Pace::default() }
    }

    pub(crate) fn show(&self, progress: &BuildProgress) {
        let text = words(progress);
        match &self.bar {
            Some(bar) => {
                if let Some(done) = progress.done {
                    bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
                }
                bars::message(bar, &text);
            }
            None if self.pace.is_due() => note!("{}: {text}", self.what),
            None => {}
        }
    }

    /// Leaves the terminal clean for the result.
    pub(crate) fn clear(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

impl Drop for MakingProgress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// For whoever makes things by name: shows progress, and clears it where there is none.
pub(crate) fn show_making() -> impl Fn(&str, Option<&BuildProgress>) {
    let shown: RefCell<Option<MakingProgress>> = RefCell::new(None);
    move |name, progress| match progress {
        Some(progress) => shown.borrow_mut().get_or_insert_with(|| MakingProgress::new(name)).show(progress),
        None => shown.take().iter().for_each(MakingProgress::clear),
    }
}

/// What is being done and how long it will take, as far as that is known.
pub(crate) fn words(progress: &BuildProgress) -> String {
    let left = progress.eta_s.map(|s| format!(", about {} left", short_time(s))).unwrap_or_default();
    format!("{}{left}", progress.doing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_gets_a_line_at_once_and_then_one_per_interval() {
        let pace = Pace::default();
        let start = Instant::now();
        let seconds = (0..=12).filter(|&s| pace.is_due_at(start + Duration::from_secs(s))).collect::<Vec<_>>();
        assert_eq!(seconds, [0, 5, 10]);
    }
}
