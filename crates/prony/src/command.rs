//! What each verb does.

mod bench;
mod build;
mod cache;
mod compare;
mod compare_outputs;
mod convert;
mod data;
mod doctor;
mod eval;
mod executor;
mod export;
mod inspect;
mod manual;
mod quantize;
mod report;
mod run;
mod runtime;
mod target;
mod turn;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use prony_types::ExitCode;

pub(crate) use self::bench::bench;
pub(crate) use self::build::build;
pub(crate) use self::cache::cache;
pub(crate) use self::compare::compare;
pub(crate) use self::compare_outputs::compare_outputs;
pub(crate) use self::convert::convert;
pub(crate) use self::data::data;
pub(crate) use self::doctor::doctor;
pub(crate) use self::eval::eval;
pub(crate) use self::export::export;
pub(crate) use self::inspect::inspect;
pub(crate) use self::manual::{completions, man};
pub(crate) use self::quantize::quantize;
pub(crate) use self::report::report;
pub(crate) use self::run::{OwnLibrary, Shape, run};
pub(crate) use self::runtime::runtime;
pub(crate) use self::turn::MachineBusy;
use crate::output::is_live;
use crate::version::VERSION;

/// One job for a parent process.
pub(crate) fn worker() -> anyhow::Result<ExitCode> {
    // A log that cannot be written, on a full disk say, is no reason to die.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .log_internal_errors(false)
        .init();
    let done = prony_bench::run_worker(VERSION, prony_probe::peak_rss_bytes, prony_probe::load_snapshot)?;
    Ok(if done { ExitCode::Ok } else { ExitCode::CellFailed })
}

/// Width of the terminal, for tables; 100 columns where there is none.
fn terminal_width() -> usize {
    rustix::termios::tcgetwinsize(rustix::stdio::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|&columns| columns > 0)
        .unwrap_or(100)
}

/// Says on a terminal what is going on when it takes more than a second.
fn with_sign_of_life<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    if is_live() { watched(what, spin, work) } else { work() }
}

/// The same for a file that is made; in a pipe it is a line now and then.
pub(crate) fn with_making_progress<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    watched(what, if is_live() { spin } else { count_seconds }, work)
}

/// Whether something is under way that says so.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Does something, and has `show` say so until it is done when that takes more than a second.
fn watched<T>(what: &'static str, show: fn(&str, &Receiver<()>), work: impl FnOnce() -> T) -> T {
    // What is done as a part of something else is not told beside it.
    if WATCHED.swap(true, Ordering::Relaxed) {
        return work();
    }
    let (done, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                show(what, &waiting);
            }
        });
        let made = work();
        drop(done);
        WATCHED.store(false, Ordering::Relaxed);
        made
    })
}

/// Turns until the other side is dropped.
fn spin(what: &str, waiting: &Receiver<()>) {
    let spinner = ProgressBar::new_spinner().with_message(what.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(100));
    let _ = waiting.recv();
    spinner.finish_and_clear();
}

/// A line at once and one every ten seconds until the other side is dropped.
fn count_seconds(what: &str, waiting: &Receiver<()>) {
    let begun = Instant::now();
    note!("{what}");
    while waiting.recv_timeout(Duration::from_secs(10)) == Err(RecvTimeoutError::Timeout) {
        note!("{what}: {} s so far", begun.elapsed().as_secs() + 1);
    }
}
