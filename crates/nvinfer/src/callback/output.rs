//! The output allocator: memory for an output whose size is known only when it is there. Since 8.5.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;

use super::{Face, Object, Table, body, destroy, guarded, plain, text, versioned};
use crate::Family;
use crate::shape::{Dims32, Dims64, MOST};

/// Memory for outputs of a size that the data decide. Called while the context enqueues.
pub trait OutputMemory: Send + Sync {
    /// Device memory of at least `bytes` for a tensor whose memory so far is `current`; null refuses.
    fn reallocate(&self, tensor: &str, current: *mut c_void, bytes: u64, alignment: u64) -> *mut c_void;
    /// The shape that the tensor has now.
    fn shape(&self, tensor: &str, dims: &[i64]);
}

struct Body(Arc<dyn OutputMemory>);

/// What a context asks for an output's memory.
#[derive(Clone)]
pub struct OutputAllocator(Arc<Object<Body>>);

pub(super) static OLD: Table<7> = plain![
    "getInterfaceVersion" => interface_version,
    "reallocateOutput" => reallocate,
    "notifyShape" => notify32,
    "~complete" => destroy,
    "~deleting" => destroy,
];
pub(super) static NEW: Table<9> = versioned![
    c"IOutputAllocator";
    "reallocateOutput" => reallocate,
    "reallocateOutputAsync" => reallocate_async,
    "notifyShape" => notify64,
];

impl OutputAllocator {
    /// An allocator that takes its memory from there.
    pub fn new(from: Arc<dyn OutputMemory>) -> OutputAllocator {
        OutputAllocator(Arc::new(Object::new(Body(from), [OLD.slots(), NEW.slots(), NEW.slots()])))
    }

    /// What a library of this family is given.
    pub(crate) fn object(&self, family: Family) -> *mut c_void {
        self.0.address(family)
    }
}

impl fmt::Debug for OutputAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputAllocator")
    }
}

/// `getInterfaceVersion` of 8.x.
extern "C" fn interface_version(_this: *const Face<Body>) -> i32 {
    1
}

extern "C" fn reallocate(
    this: *const Face<Body>,
    tensor: *const c_char,
    current: *mut c_void,
    bytes: u64,
    alignment: u64,
) -> *mut c_void {
    // SAFETY: called through a table of ours (who was given an allocator keeps it), with a text that outlives the call.
    guarded(null_mut(), || unsafe { body(this).0.reallocate(&text(tensor), current, bytes, alignment) })
}

extern "C" fn reallocate_async(
    this: *const Face<Body>,
    tensor: *const c_char,
    current: *mut c_void,
    bytes: u64,
    alignment: u64,
    _stream: *mut c_void,
) -> *mut c_void {
    reallocate(this, tensor, current, bytes, alignment)
}

extern "C" fn notify32(this: *const Face<Body>, tensor: *const c_char, dims: *const Dims32) {
    // SAFETY: a reference in C++, so never null.
    let Dims32 { count, d } = unsafe { &*dims };
    notify(this, tensor, *count, d.map(i64::from));
}

extern "C" fn notify64(this: *const Face<Body>, tensor: *const c_char, dims: *const Dims64) {
    // SAFETY: a reference in C++, so never null.
    let Dims64 { count, d } = unsafe { &*dims };
    notify(this, tensor, *count, *d);
}

fn notify(this: *const Face<Body>, tensor: *const c_char, count: i32, dims: [i64; MOST]) {
    let count = usize::try_from(count).unwrap_or(0).min(MOST);
    // SAFETY: as for `reallocate`.
    guarded((), || unsafe { body(this).0.shape(&text(tensor), &dims[..count]) });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::callback::calls::{FAMILIES, destructors, information, slot};

    /// Addresses that tell what was asked for; panics for a tensor of that name.
    #[derive(Default)]
    struct Notes(Mutex<Vec<(String, Vec<i64>)>>);

    impl OutputMemory for Notes {
        fn reallocate(&self, tensor: &str, current: *mut c_void, bytes: u64, alignment: u64) -> *mut c_void {
            assert!(tensor != "panic", "reallocate");
            std::ptr::without_provenance_mut(current.addr() + usize::try_from(bytes + alignment).unwrap())
        }

        fn shape(&self, tensor: &str, dims: &[i64]) {
            assert!(tensor != "panic", "shape");
            self.0.lock().unwrap().push((tensor.to_owned(), dims.to_vec()));
        }
    }

    type Reallocate = unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_void, u64, u64) -> *mut c_void;
    type Notify<D> = unsafe extern "C" fn(*mut c_void, *const c_char, *const D);

    #[test]
    fn memory_and_shapes_pass_in_every_layout() {
        for family in FAMILIES {
            let notes = Arc::new(Notes::default());
            let allocator = OutputAllocator::new(Arc::clone(&notes) as Arc<dyn OutputMemory>);
            let object = allocator.object(family);
            let current = std::ptr::without_provenance_mut::<c_void>(1 << 20);
            // SAFETY: the slots of the family with their signatures.
            unsafe {
                let reallocate: Reallocate = slot(object, if family == Family::V8 { 1 } else { 4 });
                assert_eq!(reallocate(object, c"boxes".as_ptr(), current, 1024, 256).addr(), (1 << 20) + 1280);
                assert!(reallocate(object, c"panic".as_ptr(), current, 1024, 256).is_null());
                if family == Family::V8 {
                    let version: unsafe extern "C" fn(*mut c_void) -> i32 = slot(object, 0);
                    assert_eq!(version(object), 1);
                    let notify: Notify<Dims32> = slot(object, 2);
                    let dims = Dims32 { count: 2, d: [17, 4, 9, 9, 9, 9, 9, 9] };
                    notify(object, c"boxes".as_ptr(), &raw const dims);
                    notify(object, c"panic".as_ptr(), &raw const dims);
                } else {
                    let notify: Notify<Dims64> = slot(object, 6);
                    let dims = Dims64 { count: 2, d: [17, 4, 9, 9, 9, 9, 9, 9] };
                    notify(object, c"boxes".as_ptr(), &raw const dims);
                    notify(object, c"panic".as_ptr(), &raw const dims);
                    assert_eq!(information(object), (0, "IOutputAllocator".to_owned(), 1, 0));
                }
            }
            assert_eq!(*notes.0.lock().unwrap(), [("boxes".to_owned(), vec![17, 4])]);
            destructors(object, if family == Family::V8 { 3 } else { 2 });
        }
    }
}
