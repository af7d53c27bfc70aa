//! What a person sees of a step that takes its time: a line that stays, and how far it is. All of it on stderr.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use prony_work::{Length, Step, Watcher};

use super::{bars, is_live};

/// What is done sooner is not worth a word.
const SOON: Duration = Duration::from_secs(1);
/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows steps on a terminal, or in a line now and then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View;

impl Watcher for View {
    fn say(&self, text: &str) {
        note!("{text}");
    }

    fn warn(&self, text: &str) {
        say!("{text}");
    }

    fn step(&self, text: &str, length: Length) -> Box<dyn Step> {
        match length {
            Length::Unknown => Box::new(Sign::of(text)),
            Length::Bytes(total) => Box::new(Bar::new(text, total)),
        }
    }
}

/// Bytes that are counted.
struct Bar(ProgressBar);

impl Bar {
    fn new(text: &str, total: Option<u64>) -> Bar {
        if !is_live() {
            return Bar(ProgressBar::hidden());
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
        bars::message(&bar, text);
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar(bar)
    }
}

impl Step for Bar {
    fn at(&self, done: u64) {
        self.0.set_position(done);
    }

    fn begin_at(&self, done: u64) {
        self.0.set_position(done);
        self.0.reset_eta();
    }

    fn says(&self, text: &str) {
        bars::message(&self.0, text);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A sign of life for what has no length: nothing within a second, then a spinner, or a line now and then.
pub(crate) struct Sign {
    text: Arc<Mutex<String>>,
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sign {
    pub(crate) fn of(text: &str) -> Sign {
        let text = Arc::new(Mutex::new(text.to_owned()));
        let (done, waiting) = mpsc::channel();
        let shown = Arc::clone(&text);
        let thread = std::thread::spawn(move || {
            if waiting.recv_timeout(SOON) == Err(RecvTimeoutError::Timeout) {
                if is_live() { spin(&shown, &waiting) } else { count_seconds(&shown, &waiting) }
            }
        });
        Sign { text, done: Some(done), thread: Some(thread) }
    }
}

impl Step for Sign {
    fn at(&self, _done: u64) {}

    fn begin_at(&self, _done: u64) {}

    fn says(&self, text: &str) {
        text.clone_into(&mut self.text.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        self.done = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read(text: &Mutex<String>) -> String {
    text.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Turns until the other side is dropped.
fn spin(text: &Mutex<String>, waiting: &Receiver<()>) {
    const TURN: Duration = Duration::from_millis(100);
    let spinner = ProgressBar::new_spinner();
    loop {
        bars::message(&spinner, &read(text));
        spinner.tick();
        if waiting.recv_timeout(TURN) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    spinner.finish_and_clear();
}

/// A line at once and one every ten seconds until the other side is dropped.
fn count_seconds(text: &Mutex<String>, waiting: &Receiver<()>) {
    let begun = Instant::now();
    note!("{}", read(text));
    while waiting.recv_timeout(LINE_EVERY) == Err(RecvTimeoutError::Timeout) {
        note!("{}: {} s so far", read(text), begun.elapsed().as_secs() + 1);
    }
}
