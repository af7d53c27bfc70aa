//! One timed run at a time on a machine. The lock is an abstract socket: the kernel lets go of it when the process
//! dies, whatever way, and nothing is left on disk.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use super::interrupt::Interrupt;

const NAME: &str = "prony.measuring";

/// Held while cells are timed.
#[derive(Debug)]
pub(crate) struct MachineLock {
    _socket: UnixListener,
}

impl MachineLock {
    /// Takes the machine if nobody else measures on it; `None` where somebody does.
    pub(crate) fn if_free() -> Option<MachineLock> {
        let address = SocketAddr::from_abstract_name(NAME).ok()?;
        UnixListener::bind_addr(&address).ok().map(|socket| MachineLock { _socket: socket })
    }

    /// Waits for the machine; `None` when the user gave up waiting. `on_wait` is called once if there is a wait.
    pub(crate) fn acquire(interrupt: &Interrupt, on_wait: impl FnOnce()) -> io::Result<Option<MachineLock>> {
        let address = SocketAddr::from_abstract_name(NAME)?;
        let mut on_wait = Some(on_wait);
        loop {
            match UnixListener::bind_addr(&address) {
                Ok(socket) => return Ok(Some(MachineLock { _socket: socket })),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    if let Some(tell) = on_wait.take() {
                        tell();
                    }
                    if interrupt.asked() {
                        return Ok(None);
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(error) => return Err(error),
            }
        }
    }
}
