//! One timed run at a time on a machine. The lock is an abstract socket: the kernel lets go of it when the process
//! dies, whatever way, and nothing is left on disk. Such sockets belong to a network namespace, so a container with a
//! network of its own has a lock of its own.

mod holder;

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};

pub use self::holder::Holder;
use prony_work::Interrupt;

const NAME: &str = "prony.measuring";
/// How often the lock is tried.
const TRY_EVERY: Duration = Duration::from_millis(100);
/// How often it is looked up who holds it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Held while cells are timed.
#[derive(Debug)]
pub struct MachineLock {
    _socket: UnixListener,
}

/// How waiting for the lock ended.
#[derive(Debug)]
pub enum Turn {
    /// The machine is ours.
    Ours(MachineLock),
    /// The user asked to stop.
    Interrupted,
    /// The time is up, and this process still has the lock.
    TimedOut(Holder),
}

impl MachineLock {
    /// Takes the machine if nobody else measures on it.
    pub fn if_free() -> Result<MachineLock, Holder> {
        match MachineLock::attempt() {
            Ok(Some(lock)) => Ok(lock),
            Ok(None) | Err(_) => Err(Holder::find(NAME)),
        }
    }

    /// Waits for the machine, for ever where there is no `limit`. `on_wait` is called with the holder and the time so far
    /// whenever the lock was tried in vain.
    pub fn acquire(
        interrupt: &Interrupt,
        limit: Option<Duration>,
        mut on_wait: impl FnMut(&Holder, Duration),
    ) -> io::Result<Turn> {
        let begun = Instant::now();
        let mut found: Option<(Holder, Instant)> = None;
        loop {
            if let Some(lock) = MachineLock::attempt()? {
                return Ok(Turn::Ours(lock));
            }
            if interrupt.asked() {
                return Ok(Turn::Interrupted);
            }
            let (holder, looked) = match found.take() {
                Some((holder, looked)) if looked.elapsed() < LOOK_EVERY => (holder, looked),
                Some((holder, _)) => (holder.again(NAME), Instant::now()),
                None => (Holder::find(NAME), Instant::now()),
            };
            let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
            if left == Some(Duration::ZERO) {
                return Ok(Turn::TimedOut(holder));
            }
            on_wait(&holder, begun.elapsed());
            found = Some((holder, looked));
            std::thread::sleep(left.map_or(TRY_EVERY, |left| left.min(TRY_EVERY)));
        }
    }

    /// `None` where somebody has it.
    fn attempt() -> io::Result<Option<MachineLock>> {
        let address = SocketAddr::from_abstract_name(NAME)?;
        match UnixListener::bind_addr(&address) {
            Ok(socket) => Ok(Some(MachineLock { _socket: socket })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }
}
