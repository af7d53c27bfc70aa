//! Ctrl-C: the first time politely, the second time at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How often a process looks that ends at the first Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often the user has asked to stop.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicU32>);

impl Interrupt {
    /// Listens from now on.
    pub fn listen() -> std::io::Result<Interrupt> {
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
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 1
    }

    /// Calls `leave` at the first Ctrl-C: nothing is under way any more that has to be ended in order.
    pub fn when_asked(self, leave: fn()) {
        std::thread::spawn(move || {
            while !self.asked() {
                std::thread::sleep(LOOK_EVERY);
            }
            leave();
        });
    }

    /// Asked twice: now.
    pub fn insisted(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 2
    }
}
