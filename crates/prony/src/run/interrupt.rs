//! Ctrl-C: the first time politely, the second time at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use prony_types::ExitCode;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How often a process looks that ends at the first Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often the user has asked to stop.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicU32>);

impl Interrupt {
    /// Listens from now on.
    pub(crate) fn listen() -> std::io::Result<Interrupt> {
        let count = Arc::new(AtomicU32::new(0));
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let counter = Arc::clone(&count);
        std::thread::spawn(move || {
            for _ in signals.forever() {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Interrupt(count))
    }

    /// Asked to stop: end what is under way, keep what there is.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 1
    }

    /// From now on the first Ctrl-C ends this process: nothing is under way any more that has to be ended in order.
    pub(crate) fn exit_when_asked(self) {
        std::thread::spawn(move || {
            while !self.asked() {
                std::thread::sleep(LOOK_EVERY);
            }
            // Not through destructors of libraries that are at work in another thread.
            signal_hook::low_level::exit(i32::from(u8::from(ExitCode::Interrupted)));
        });
    }

    /// Asked twice: now.
    pub(crate) fn insisted(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 2
    }
}
