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
mod export;
mod inspect;
mod manual;
mod quantize;
mod report;
mod run;
mod runtime;
mod target;
mod turn;

use prony_runtimes::Found;
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
pub(crate) use self::run::run;
pub(crate) use self::runtime::runtime;
use crate::error::{CliError, OrCliError as _};
use crate::output::{Sign, View, is_live};
use crate::version::VERSION;

/// One job for a parent process.
pub(crate) fn worker() -> Result<ExitCode, CliError> {
    // A log that cannot be written, on a full disk say, is no reason to die.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .log_internal_errors(false)
        .init();
    let done = prony_bench::run_worker(VERSION, prony_probe::peak_rss_bytes, prony_probe::load_snapshot).usage()?;
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
fn with_sign_of_life<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let _sign = is_live().then(|| Sign::of(what));
    work()
}

/// The same for a file that is made; in a pipe it is a line now and then.
fn with_making_progress<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let _sign = Sign::of(what);
    work()
}

/// Says what was opened although it should not be.
fn tell_trusted(found: &Found) {
    found.tell_trusted(&View);
}
