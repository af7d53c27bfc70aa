//! The timing cache: how fast each tactic was on this device, so that the next build need not measure again.

use crate::object::{Held, call};
use crate::tables::timing;
use crate::{Error, HostMemory};

/// Measured tactics. A build with a configuration that was given this adds to it.
#[derive(Debug)]
pub struct TimingCache {
    pub(crate) object: Held,
}

impl TimingCache {
    pub(crate) fn new(object: Held) -> TimingCache {
        TimingCache { object }
    }

    /// All of it, to be written to a file.
    pub fn serialize(&self) -> Result<HostMemory, Error> {
        let since = self.object.now();
        // SAFETY: no arguments.
        let pointer = unsafe { call!(self.object, timing::SERIALIZE) };
        Ok(HostMemory::new(self.object.product("serialised timing cache", pointer, since)?))
    }

    /// Adds what another has. A cache of another device is refused unless `ignore_mismatch`.
    pub fn combine(&mut self, other: &TimingCache, ignore_mismatch: bool) -> Result<(), Error> {
        let since = self.object.now();
        // SAFETY: the other cache outlives the call.
        let done = unsafe { call!(self.object, timing::COMBINE, other.object.public(), ignore_mismatch) };
        self.object.accepted(done, || "to combine timing caches".to_owned(), since)
    }
}
