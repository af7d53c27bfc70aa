//! The GPU allocator: every byte that TensorRT wants on the device is asked for here.

use std::ffi::c_void;
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;

use super::{Face, Object, Table, body, destroy, guarded, plain, versioned};
use crate::Family;

/// Where device memory comes from. Called from any thread, several at a time.
pub trait DeviceAllocator: Send + Sync {
    /// Device memory of `bytes`, which are never zero, at a multiple of `alignment`; null refuses.
    fn allocate(&self, bytes: u64, alignment: u64) -> *mut c_void;
    /// Gives memory back, never null; whether that worked.
    fn free(&self, memory: *mut c_void) -> bool;
}

struct Body(Arc<dyn DeviceAllocator>);

/// What TensorRT allocates device memory with.
#[derive(Clone)]
pub struct GpuAllocator(Arc<Object<Body>>);

pub(super) static OLD: Table<8> = plain![
    "allocate" => allocate,
    "free" => free,
    "~complete" => destroy,
    "~deleting" => destroy,
    "reallocate" => reallocate,
    "deallocate" => deallocate,
];
pub(super) static NEW: Table<11> = versioned![
    c"IGpuAllocator";
    "allocate" => allocate,
    "reallocate" => reallocate,
    "deallocate" => deallocate,
    "allocateAsync" => allocate_async,
    "deallocateAsync" => deallocate_async,
];

impl GpuAllocator {
    /// An allocator that takes its memory from there.
    pub fn new(from: Arc<dyn DeviceAllocator>) -> GpuAllocator {
        GpuAllocator(Arc::new(Object::new(Body(from), [OLD.slots(), NEW.slots(), NEW.slots()])))
    }

    /// What a library of this family is given.
    pub(crate) fn object(&self, family: Family) -> *mut c_void {
        self.0.address(family)
    }
}

impl fmt::Debug for GpuAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GpuAllocator")
    }
}

extern "C" fn allocate(this: *const Face<Body>, bytes: u64, alignment: u64, _flags: u32) -> *mut c_void {
    // The interface demands null for nothing.
    if bytes == 0 {
        return null_mut();
    }
    // SAFETY: called through a table of ours; who was given an allocator keeps it.
    guarded(null_mut(), || unsafe { body(this) }.0.allocate(bytes, alignment))
}

/// Refused, which makes TensorRT allocate anew: a device allocation cannot grow in place.
extern "C" fn reallocate(_this: *const Face<Body>, _memory: *mut c_void, _alignment: u64, _bytes: u64) -> *mut c_void {
    null_mut()
}

extern "C" fn deallocate(this: *const Face<Body>, memory: *mut c_void) -> bool {
    // SAFETY: as for `allocate`.
    memory.is_null() || guarded(false, || unsafe { body(this) }.0.free(memory))
}

extern "C" fn free(this: *const Face<Body>, memory: *mut c_void) {
    deallocate(this, memory);
}

/// The stream changes nothing: memory is there when the call returns.
extern "C" fn allocate_async(
    this: *const Face<Body>,
    bytes: u64,
    alignment: u64,
    flags: u32,
    _stream: *mut c_void,
) -> *mut c_void {
    allocate(this, bytes, alignment, flags)
}

extern "C" fn deallocate_async(this: *const Face<Body>, memory: *mut c_void, _stream: *mut c_void) -> bool {
    deallocate(this, memory)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use super::*;
    use crate::callback::calls::{FAMILIES, destructors, information, slot};

    /// Hands out numbers for addresses and remembers them; refuses, and panics, at certain sizes.
    #[derive(Default)]
    struct Ledger {
        out: Mutex<Vec<usize>>,
        last: Mutex<usize>,
    }

    impl DeviceAllocator for Ledger {
        fn allocate(&self, bytes: u64, alignment: u64) -> *mut c_void {
            assert!(bytes != 13, "thirteen");
            if bytes > 4096 {
                return null_mut();
            }
            let mut last = self.last.lock().unwrap();
            *last += usize::try_from(alignment).unwrap();
            self.out.lock().unwrap().push(*last);
            std::ptr::without_provenance_mut(*last)
        }

        fn free(&self, memory: *mut c_void) -> bool {
            assert!(memory.addr() != 13, "thirteen");
            let mut out = self.out.lock().unwrap();
            let at = out.iter().position(|address| *address == memory.addr());
            at.map(|at| out.swap_remove(at)).is_some()
        }
    }

    type Allocate = unsafe extern "C" fn(*mut c_void, u64, u64, u32) -> *mut c_void;
    type Free = unsafe extern "C" fn(*mut c_void, *mut c_void) -> bool;

    fn pair(object: *mut c_void, family: Family) -> (Allocate, Free) {
        let (allocate, free) = if family == Family::V8 { (0, 5) } else { (4, 6) };
        // SAFETY: the slots of the family, with their signatures.
        unsafe { (slot(object, allocate), slot(object, free)) }
    }

    #[test]
    fn memory_is_handed_out_refused_and_given_back_in_every_layout() {
        for family in FAMILIES {
            let ledger = Arc::new(Ledger::default());
            let allocator = GpuAllocator::new(Arc::clone(&ledger) as Arc<dyn DeviceAllocator>);
            let object = allocator.object(family);
            let (allocate, free) = pair(object, family);
            let stray = std::ptr::without_provenance_mut::<c_void>(13);
            // SAFETY: an object and methods of ours; nobody looks into the memory.
            unsafe {
                let memory = allocate(object, 1024, 256, 0);
                assert_eq!(memory.addr(), 256);
                assert!(allocate(object, 4097, 256, 0).is_null(), "a refusal");
                assert!(allocate(object, 13, 256, 0).is_null(), "a panic");
                assert!(allocate(object, 0, 256, 0).is_null(), "nothing");
                assert!(free(object, memory));
                assert!(!free(object, memory), "twice");
                assert!(!free(object, stray), "a panic");
                assert!(free(object, null_mut()), "nothing");
                let reallocate: unsafe extern "C" fn(*mut c_void, *mut c_void, u64, u64) -> *mut c_void =
                    slot(object, if family == Family::V8 { 4 } else { 5 });
                assert!(reallocate(object, memory, 256, 2048).is_null());
            }
            assert_eq!(*ledger.out.lock().unwrap(), [0usize; 0]);
            destructors(object, 2);
        }
    }

    #[test]
    fn the_old_free_and_the_new_asynchronous_pair_reach_the_same_memory() {
        let ledger = Arc::new(Ledger::default());
        let allocator = GpuAllocator::new(Arc::clone(&ledger) as Arc<dyn DeviceAllocator>);
        let old = allocator.object(Family::V8);
        // SAFETY: objects and methods of ours by slot and signature.
        unsafe {
            let free: unsafe extern "C" fn(*mut c_void, *mut c_void) = slot(old, 1);
            let memory = pair(old, Family::V8).0(old, 8, 64, 0);
            assert_eq!(ledger.out.lock().unwrap().len(), 1);
            free(old, memory);
            assert_eq!(ledger.out.lock().unwrap().len(), 0);
        }
        for family in [Family::V10, Family::V11] {
            let object = allocator.object(family);
            // SAFETY: as above.
            unsafe {
                let allocate: unsafe extern "C" fn(*mut c_void, u64, u64, u32, *mut c_void) -> *mut c_void =
                    slot(object, 7);
                let free: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> bool = slot(object, 8);
                let memory = allocate(object, 8, 64, 0, null_mut());
                assert!(!memory.is_null());
                assert!(free(object, memory, null_mut()));
                assert!(allocate(object, 13, 64, 0, null_mut()).is_null(), "a panic");
            }
            assert_eq!(information(object), (0, "IGpuAllocator".to_owned(), 1, 0));
        }
    }

    #[test]
    fn threads_allocate_side_by_side() {
        let ledger = Arc::new(Ledger::default());
        let allocator = GpuAllocator::new(Arc::clone(&ledger) as Arc<dyn DeviceAllocator>);
        thread::scope(|scope| {
            for thread in 0..8 {
                let allocator = &allocator;
                scope.spawn(move || {
                    let family = FAMILIES[thread % 3];
                    let object = allocator.object(family);
                    let (allocate, free) = pair(object, family);
                    for round in 0..100 {
                        // SAFETY: an object and methods of ours.
                        unsafe {
                            let memory = allocate(object, 32, 512, 0);
                            assert!(!memory.is_null());
                            if round % 2 == 0 {
                                assert!(free(object, memory));
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(ledger.out.lock().unwrap().len(), 8 * 50);
    }
}
