//! Waiting for the machine: one measurement at a time.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use indicatif::ProgressBar;

use crate::args::WaitArgs;
use crate::error::{CliError, OrCliError as _};
use crate::output::{bars, is_live};
use prony_run::{Holder, MachineLock, Turn};
use prony_work::{Interrupt, short_time};

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// The machine stayed in use for longer than the user wants to wait. Nothing was measured.
#[derive(Debug)]
struct MachineBusy {
    holder: Holder,
    /// `None` where there was to be no wait.
    waited: Option<Duration>,
}

impl fmt::Display for MachineBusy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing was measured: the measuring lock of this machine is held by {}", self.holder)?;
        match self.waited {
            Some(waited) => write!(f, " (waited {}, --wait)", short_time(waited.as_secs_f64())),
            None => f.write_str(" (--no-wait)"),
        }
    }
}

impl std::error::Error for MachineBusy {}

/// Takes the measuring lock; `None` when the user interrupted the wait, a failure when it took too long.
pub(super) fn wait_for_machine(interrupt: &Interrupt, wait: WaitArgs) -> Result<Option<MachineLock>, CliError> {
    let limit = match wait.no_wait {
        true => Some(Duration::ZERO),
        false => wait.wait.map(|limit| Duration::from_secs_f64(limit.0)),
    };
    let mut clock = Clock::default();
    let waited = MachineLock::acquire(interrupt, limit, |holder, so_far| clock.show(holder, so_far));
    drop(clock);
    match waited.context("cannot take the measuring lock of this machine").usage()? {
        Turn::Ours(lock) => Ok(Some(lock)),
        Turn::Interrupted => Ok(None),
        Turn::TimedOut(holder) => Err(MachineBusy { holder, waited: limit.filter(|limit| !limit.is_zero()) }).failed(),
    }
}

/// Says who is waited for and how long already: a line that counts up on a terminal, elsewhere a line now and then.
#[derive(Default)]
struct Clock {
    bar: Option<ProgressBar>,
    said: Option<(Holder, Instant)>,
}

impl Clock {
    fn show(&mut self, holder: &Holder, so_far: Duration) {
        let due = match &self.said {
            None => {
                note!(
                    "waiting for the measuring lock of this machine, held by {holder} (Ctrl-C gives up, --wait sets a limit)"
                );
                self.bar = is_live().then(ProgressBar::new_spinner);
                true
            }
            Some((before, when)) => {
                let due = before != holder || when.elapsed() >= LINE_EVERY;
                if due && self.bar.is_none() {
                    note!("still waiting after {}: held by {holder}", short_time(so_far.as_secs_f64()));
                }
                due
            }
        };
        if due {
            self.said = Some((holder.clone(), Instant::now()));
        }
        if let Some(bar) = &self.bar {
            bars::message(bar, &format!("waited {} for {holder}", short_time(so_far.as_secs_f64())));
            bar.tick();
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}
