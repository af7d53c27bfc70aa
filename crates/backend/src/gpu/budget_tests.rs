use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::*;
use crate::gpu::DriverStatus;

/// Hands out addresses that are multiples of 256, and remembers which; runs dry at a certain size.
#[derive(Default)]
struct Fake {
    next: AtomicU64,
    out: Arc<Mutex<Vec<u64>>>,
}

const TOO_MUCH: u64 = 1 << 40;

impl Source for Fake {
    fn take(&self, bytes: u64) -> Result<u64, GpuError> {
        if bytes >= TOO_MUCH {
            return Err(GpuError::Driver(DriverStatus { code: 2, text: "CUDA_ERROR_OUT_OF_MEMORY".into() }));
        }
        let address = (self.next.fetch_add(1, Ordering::Relaxed) + 1) * 256;
        self.out.lock().unwrap().push(address);
        Ok(address)
    }

    fn give(&self, address: u64) -> bool {
        let mut out = self.out.lock().unwrap();
        let at = out.iter().position(|known| *known == address);
        at.map(|at| out.swap_remove(at)).is_some()
    }
}

fn budget(limit: Option<u64>) -> (Arc<Budget>, Arc<Mutex<Vec<u64>>>) {
    let fake = Fake::default();
    let out = Arc::clone(&fake.out);
    (Arc::new(Budget::of(Box::new(fake), limit)), out)
}

#[test]
fn what_is_held_and_the_peak_are_counted() {
    let (budget, out) = budget(None);
    let first = budget.allocate(1000, 256);
    let second = budget.allocate(500, 256);
    assert_eq!((budget.held(), budget.peak()), (1500, 1500));
    assert!(budget.free(first));
    let third = budget.allocate(100, 256);
    assert_eq!((budget.held(), budget.peak()), (600, 1500));
    assert!(budget.free(second) && budget.free(third));
    assert_eq!((budget.held(), out.lock().unwrap().len()), (0, 0));
}

#[test]
fn beyond_the_limit_is_refused_and_written_down() {
    let (budget, out) = budget(Some(1000));
    assert!(!budget.allocate(800, 256).is_null());
    assert!(budget.allocate(201, 256).is_null());
    assert!(!budget.allocate(200, 256).is_null(), "exactly the limit is within it");
    let [violation] = budget.violations()[..] else { panic!("one violation") };
    assert_eq!((violation.asked_bytes, violation.held_bytes), (201, 800));
    assert!(violation.t_ns > 0);
    assert_eq!((budget.held(), budget.refusals(), out.lock().unwrap().len()), (1000, 1, 2));
    assert!(budget.allocate(u64::MAX, 256).is_null(), "no overflow");
}

#[test]
fn our_own_buffers_come_out_of_the_same_limit() {
    let (budget, _) = budget(Some(1000));
    let buffer = budget.reserve(700).unwrap();
    assert!(budget.allocate(400, 256).is_null());
    let why = budget.reserve(400).unwrap_err();
    assert_eq!(why.to_string(), "400 bytes were asked for where 700 of 1000 are held (--gpu-mem-limit)");
    drop(buffer);
    assert!(!budget.allocate(400, 256).is_null());
    assert_eq!((budget.peak(), budget.violations().len()), (700, 2));
}

#[test]
fn memory_that_ran_out_is_a_refusal_but_no_violation() {
    let (budget, _) = budget(None);
    assert!(budget.allocate(TOO_MUCH, 256).is_null());
    assert!(budget.last_refusal().unwrap().contains("CUDA_ERROR_OUT_OF_MEMORY"));
    assert_eq!((budget.held(), budget.violations().len(), budget.refusals()), (0, 0, 1));
    assert!(budget.allocate(16, 1 << 20).is_null(), "aligned to more than the driver does");
    assert_eq!(budget.held(), 0);
}

#[test]
fn one_allocation_can_be_made_to_fail() {
    let budget = Budget::of(Box::new(Fake::default()), None).failing_at(Some(2));
    assert!(!budget.allocate(16, 256).is_null());
    assert!(budget.allocate(16, 256).is_null());
    assert!(!budget.allocate(16, 256).is_null());
    assert!(budget.last_refusal().unwrap().contains("on purpose"));
    assert_eq!(budget.violations(), [], "nothing went beyond a limit");
}

#[test]
fn what_was_not_handed_out_is_not_taken_back() {
    let (budget, _) = budget(None);
    let memory = budget.allocate(16, 256);
    assert!(!budget.free(without_provenance_mut(64)));
    assert!(budget.free(memory));
    assert!(!budget.free(memory), "twice");
    assert_eq!(budget.held(), 0);
}

#[test]
fn very_many_refusals_are_counted_and_only_the_first_kept() {
    let (budget, _) = budget(Some(1));
    for _ in 0..2 * KEPT {
        assert!(budget.allocate(2, 256).is_null());
    }
    assert_eq!((budget.violations().len(), budget.refusals()), (KEPT, 2 * KEPT as u64));
}

#[test]
fn threads_share_one_limit() {
    let (budget, out) = budget(Some(64));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let memory = budget.allocate(16, 256);
                    assert!(budget.held() <= 64);
                    if !memory.is_null() {
                        assert!(budget.free(memory));
                    }
                }
            });
        }
    });
    assert_eq!((budget.held(), out.lock().unwrap().len()), (0, 0));
    assert!(budget.peak() <= 64);
}

#[test]
fn a_closed_budget_gives_nothing_and_counts_nothing() {
    let (budget, _) = budget(Some(1000));
    let held = budget.allocate(400, 256);
    budget.close();
    assert!(budget.allocate(1, 256).is_null() && budget.reserve(1).is_err());
    assert_eq!((budget.refusals(), budget.last_refusal(), budget.violations().len()), (0, None, 0));
    assert!(budget.free(held), "what is out can still come back");
}
