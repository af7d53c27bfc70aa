//! A session that misbehaves on purpose, for tests of faults that nothing real produces. No backend name leads here;
//! a worker wraps its session only when its job says so.

use std::io::Write as _;
use std::time::Duration;

use prony_types::{BackendRecord, Fault, TensorData, TensorSpec, TensorView};

use crate::{BackendError, Session, SlotInput, Timing};

/// A session with a fault.
pub struct FaultySession {
    inner: Box<dyn Session>,
    fault: Fault,
    calls: u64,
    spoiled: Vec<f32>,
}

impl FaultySession {
    /// Wraps a session.
    pub fn new(inner: Box<dyn Session>, fault: Fault) -> FaultySession {
        FaultySession { inner, fault, calls: 0, spoiled: Vec::new() }
    }

    fn before(&mut self) -> Result<(), BackendError> {
        self.calls += 1;
        match self.fault {
            Fault::ErrorAt(n) if self.calls >= n => {
                return Err(BackendError::Run { backend: "faulty", reason: format!("injected at call {n}") });
            }
            Fault::AbortAt(n) if self.calls >= n => std::process::abort(),
            Fault::HangAt(n) if self.calls >= n => loop {
                std::thread::sleep(Duration::from_secs(3600));
            },
            Fault::StallAt(n) if self.calls == n => std::thread::sleep(Duration::from_secs(2)),
            Fault::SlowDown => std::thread::sleep(Duration::from_micros(100 * self.calls)),
            Fault::PrintToStdout => {
                let _ = std::io::stdout().write_all(b"{\"not\": \"an event\"}\n");
            }
            _ => {}
        }
        Ok(())
    }

    fn after(&mut self, slot: usize) {
        let value = match self.fault {
            Fault::NanAt(n) if self.calls >= n => f32::NAN,
            Fault::Drift => self.calls as f32,
            _ => return,
        };
        self.spoiled.clear();
        if let TensorData::F32(data) = self.inner.output(slot, 0).data {
            self.spoiled.extend(data.iter().map(|&x| x + value));
        }
    }
}

impl Session for FaultySession {
    fn record(&self) -> BackendRecord {
        self.inner.record()
    }

    fn executed(&self) -> String {
        self.inner.executed()
    }

    fn inputs(&self) -> &[TensorSpec] {
        self.inner.inputs()
    }

    fn slots(&self) -> usize {
        self.inner.slots()
    }

    fn input(&mut self, slot: usize, index: usize) -> SlotInput<'_> {
        self.inner.input(slot, index)
    }

    fn submit(&mut self, slot: usize) -> Result<(), BackendError> {
        self.before()?;
        self.inner.submit(slot)
    }

    fn collect(&mut self, slot: usize) -> Result<Timing, BackendError> {
        let timing = self.inner.collect(slot)?;
        self.after(slot);
        Ok(timing)
    }

    fn run(&mut self, slot: usize) -> Result<Timing, BackendError> {
        self.before()?;
        let timing = self.inner.run(slot)?;
        self.after(slot);
        Ok(timing)
    }

    fn device_use(&self) -> Option<prony_types::DeviceUse> {
        self.inner.device_use()
    }

    fn output_count(&self) -> usize {
        self.inner.output_count()
    }

    fn output(&self, slot: usize, index: usize) -> TensorView<'_> {
        let view = self.inner.output(slot, index);
        if index == 0 && self.spoiled.len() == view.data.len() {
            TensorView { data: TensorData::F32(&self.spoiled), ..view }
        } else {
            view
        }
    }
}
