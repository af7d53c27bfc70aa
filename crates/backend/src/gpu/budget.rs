//! The budget of device memory: what TensorRT's allocator and our own buffers take comes out of one limit, and what goes
//! beyond it is refused and written down.

use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::result;
use cudarc::driver::sys::CUdeviceptr;
use prony_nvinfer::DeviceAllocator;
use prony_types::Violation;
use rustix::time::{ClockId, clock_gettime};

use super::{Gpu, GpuError};

/// Refusals that are kept one by one. A builder that is short of memory is refused thousands of times.
const KEPT: usize = 256;
/// Share of the limit from which on it is said that little is left, in percent.
const NEARLY: u64 = 90;
/// A test hook: the number of the allocation that is refused, from 1. See CONTRIBUTING.md.
const FAIL_ALLOCATION: &str = "PRONY_FAIL_ALLOCATION";

/// Where memory really comes from.
trait Source: Send + Sync {
    fn take(&self, bytes: u64) -> Result<u64, GpuError>;
    fn give(&self, address: u64) -> bool;
}

impl Source for Gpu {
    fn take(&self, bytes: u64) -> Result<u64, GpuError> {
        self.bind()?;
        // More than there can be is refused by the driver.
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // SAFETY: the context is current; TensorRT gives it back through `give`, or the process ends.
        unsafe { result::malloc_sync(bytes) }.map_err(GpuError::from)
    }

    fn give(&self, address: u64) -> bool {
        // SAFETY: only addresses that `take` handed out and that were not given back come here.
        self.bind().is_ok() && unsafe { result::free_sync(address as CUdeviceptr) }.is_ok()
    }
}

/// Device memory, counted and limited. It is what TensorRT is given as its allocator.
pub struct Budget {
    source: Box<dyn Source>,
    limit: Option<u64>,
    failing_at: Option<u64>,
    ledger: Mutex<Ledger>,
}

#[derive(Default)]
struct Ledger {
    /// Sizes by address of what the allocator handed out.
    blocks: HashMap<u64, u64>,
    held: u64,
    peak: u64,
    requests: u64,
    closed: bool,
    warned: bool,
    refusals: u64,
    violations: Vec<Violation>,
    last_refusal: Option<String>,
}

impl Budget {
    /// A budget on a GPU; without a limit it only counts.
    pub fn new(gpu: &Gpu, limit: Option<u64>) -> Arc<Budget> {
        let injected = std::env::var(FAIL_ALLOCATION).ok().and_then(|n| n.parse().ok());
        Arc::new(Budget::of(Box::new(gpu.clone()), limit).failing_at(injected))
    }

    fn of(source: Box<dyn Source>, limit: Option<u64>) -> Budget {
        Budget { source, limit, failing_at: None, ledger: Mutex::default() }
    }

    /// Refuses one allocation, counted from 1, as if memory had run out.
    fn failing_at(self, number: Option<u64>) -> Budget {
        Budget { failing_at: number, ..self }
    }

    /// The limit, if there is one.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// What is held now.
    pub fn held(&self) -> u64 {
        self.ledger().held
    }

    /// The most that was ever held.
    pub fn peak(&self) -> u64 {
        self.ledger().peak
    }

    /// That the limit was nearly reached, in words; `None` where it was not, or where there is none.
    pub fn nearly_spent(&self) -> Option<String> {
        let (peak, limit) = (self.peak(), self.limit?);
        let spent = format!("{peak} of {limit} bytes of the GPU memory limit were in use, more than {NEARLY} %");
        is_nearly(peak, limit).then_some(spent)
    }

    /// The requests that went beyond the limit; of very many, the first.
    pub fn violations(&self) -> Vec<Violation> {
        self.ledger().violations.clone()
    }

    /// How many requests were refused, for whatever reason.
    pub fn refusals(&self) -> u64 {
        self.ledger().refusals
    }

    /// Why the last request was refused, in words.
    pub fn last_refusal(&self) -> Option<String> {
        self.ledger().last_refusal.clone()
    }

    /// Refuses everything from now on. That ends a build of TensorRT 8, which cannot be asked to stop.
    pub fn close(&self) {
        self.ledger().closed = true;
    }

    /// Takes so much out of the budget for memory that the caller makes; it is back when the token is dropped.
    pub fn reserve(self: &Arc<Budget>, bytes: u64) -> Result<Reserved, GpuError> {
        self.claim(bytes)?;
        Ok(Reserved { budget: Arc::clone(self), bytes })
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, or refuses it.
    fn claim(&self, bytes: u64) -> Result<(), GpuError> {
        let mut ledger = self.ledger();
        if ledger.closed {
            return Err(GpuError::Closed);
        }
        ledger.requests += 1;
        let held = ledger.held;
        if self.failing_at == Some(ledger.requests) {
            let number = ledger.requests;
            return Err(ledger.refuse(GpuError::OnPurpose { number }));
        }
        let after = held.saturating_add(bytes);
        if let Some(limit) = self.limit {
            if after > limit {
                if ledger.violations.len() < KEPT {
                    ledger.violations.push(Violation { t_ns: now_ns(), asked_bytes: bytes, held_bytes: held });
                }
                return Err(ledger.refuse(GpuError::Limit { bytes, held, limit }));
            }
            if is_nearly(after, limit) && !ledger.warned {
                ledger.warned = true;
                tracing::warn!("GPU memory: {after} of {limit} bytes of the limit are in use, more than {NEARLY} %");
            }
        }
        ledger.held = after;
        ledger.peak = ledger.peak.max(after);
        Ok(())
    }

    fn release(&self, bytes: u64) {
        let mut ledger = self.ledger();
        ledger.held = ledger.held.saturating_sub(bytes);
    }
}

impl Ledger {
    fn refuse(&mut self, why: GpuError) -> GpuError {
        self.refusals += 1;
        tracing::warn!("GPU memory refused: {why}");
        self.last_refusal = Some(why.to_string());
        why
    }
}

impl DeviceAllocator for Budget {
    fn allocate(&self, bytes: u64, alignment: u64) -> *mut c_void {
        if self.claim(bytes).is_err() {
            return null_mut();
        }
        // Not under the lock: the driver may take its time, and other threads count meanwhile.
        let refusal = match self.source.take(bytes) {
            Ok(address) if address % alignment.max(1) == 0 => {
                self.ledger().blocks.insert(address, bytes);
                return without_provenance_mut(usize::try_from(address).unwrap_or(0));
            }
            Ok(address) => {
                self.source.give(address);
                GpuError::Misaligned { alignment }
            }
            Err(reason) => GpuError::DeviceMemory { bytes, reason: reason.to_string() },
        };
        self.release(bytes);
        self.ledger().refuse(refusal);
        null_mut()
    }

    fn free(&self, memory: *mut c_void) -> bool {
        let address = memory.addr() as u64;
        // Taken out first: once the driver has it back, it may hand the address out again.
        let Some(bytes) = self.ledger().blocks.remove(&address) else {
            tracing::error!("GPU memory: {memory:p} is given back and was not handed out");
            return false;
        };
        let given = self.source.give(address);
        self.release(bytes);
        given
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ledger = self.ledger();
        let limit = self.limit;
        write!(f, "Budget {{ limit: {limit:?}, held: {}, peak: {} }}", ledger.held, ledger.peak)
    }
}

/// A part of a budget that is in use.
#[derive(Debug)]
pub struct Reserved {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

/// Whether so much is nearly all of a limit.
fn is_nearly(bytes: u64, limit: u64) -> bool {
    bytes.saturating_mul(100) > limit.saturating_mul(NEARLY)
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
