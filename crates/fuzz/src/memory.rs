//! Memory as a case uses it, counted where it is asked for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Beyond this the answer is no, which ends the process: better than the machine.
const REFUSED: usize = 4 << 30;

/// The system's allocator with a tally a thread. A binary that measures cases must have it as its global one.
#[derive(Debug)]
pub struct Counting;

/// What a case of this many bytes may hold at once.
pub fn allowed(input: usize) -> usize {
    (64 << 20) + 64 * input
}

/// Starts counting anew on this thread.
pub fn begin() {
    LIVE.set(0);
    PEAK.set(0);
}

/// The most that this thread held at once since [`begin`].
pub fn peak() -> usize {
    PEAK.get()
}

fn grow(bytes: usize) -> bool {
    // A thread that is being taken apart is not counted.
    LIVE.try_with(|live| {
        let now = live.get().saturating_add(bytes);
        live.set(now);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now)));
        now <= REFUSED
    })
    .unwrap_or(true)
}

fn shrink(bytes: usize) {
    // What was there before counting began may be given back: that is no debt.
    let _ = LIVE.try_with(|live| live.set(live.get().saturating_sub(bytes)));
}

#[expect(unsafe_code, reason = "an allocator is one")]
// SAFETY: every call goes to the system's allocator as it came; counting touches nothing but two numbers of the thread,
// which neither allocate nor have a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !grow(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise on `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !grow(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise on `layout` is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: `at` came from the system's allocator with this layout, as every block here does.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks may be there for a moment, but the old one is not new memory.
        if size > layout.size() && !grow(size - layout.size()) {
            return std::ptr::null_mut();
        }
        if size < layout.size() {
            shrink(layout.size() - size);
        }
        // SAFETY: `at` came from the system's allocator with this layout; the caller's promise on `size` is passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}
