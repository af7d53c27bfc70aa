//! Ctrl-C: the first time politely, the second time at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

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

    /// Asked twice: now.
    pub(crate) fn insisted(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 2
    }
}
