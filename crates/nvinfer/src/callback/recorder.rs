//! The error recorder: what failed, with a number, beside the logger's lines.

use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt;
use std::ptr::null;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use super::{Face, Object, Table, body, destroy, guarded, lock, plain, versioned};
use crate::Family;

/// Errors that a recorder keeps; more are counted as an overflow.
const KEPT: usize = 256;
/// `ErrorCode::kUNSPECIFIED_ERROR`, for an index that is not there.
pub(super) const UNSPECIFIED: i32 = 1;

#[derive(Default)]
struct Body {
    errors: Mutex<Errors>,
    references: AtomicI32,
}

#[derive(Default)]
struct Errors {
    list: Vec<(i32, CString)>,
    overflowed: bool,
}

/// Collects errors from the objects that it is given to.
#[derive(Clone)]
pub struct ErrorRecorder(Arc<Object<Body>>);

pub(super) static OLD: Table<12> = plain![
    "~complete" => destroy,
    "~deleting" => destroy,
    "getNbErrors" => count,
    "getErrorCode" => code,
    "getErrorDesc" => description,
    "hasOverflowed" => overflowed,
    "clear" => clear,
    "reportError" => report,
    "incRefCount" => add_reference,
    "decRefCount" => drop_reference,
];
pub(super) static NEW: Table<14> = versioned![
    c"IErrorRecorder";
    "getNbErrors" => count,
    "getErrorCode" => code,
    "getErrorDesc" => description,
    "hasOverflowed" => overflowed,
    "clear" => clear,
    "reportError" => report,
    "incRefCount" => add_reference,
    "decRefCount" => drop_reference,
];

impl ErrorRecorder {
    /// An empty one.
    #[expect(clippy::new_without_default, reason = "an object with an address is made on purpose")]
    pub fn new() -> ErrorRecorder {
        ErrorRecorder(Arc::new(Object::new(Body::default(), [OLD.slots(), NEW.slots(), NEW.slots()])))
    }

    /// Takes out what was recorded: `ErrorCode` and text, oldest first.
    pub fn take(&self) -> Vec<(i32, String)> {
        let errors = std::mem::take(&mut *lock(&self.0.body.errors));
        errors.list.into_iter().map(|(code, text)| (code, text.to_string_lossy().into_owned())).collect()
    }

    /// The texts of what was recorded, which stays.
    pub(crate) fn texts(&self) -> Vec<String> {
        lock(&self.0.body.errors).list.iter().map(|(_, text)| text.to_string_lossy().into_owned()).collect()
    }

    /// What a library of this family is given.
    pub(crate) fn object(&self, family: Family) -> *mut c_void {
        self.0.address(family)
    }
}

impl fmt::Debug for ErrorRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorRecorder").field("errors", &lock(&self.0.body.errors).list).finish()
    }
}

/// The entry at TensorRT's index.
fn at(errors: &Errors, index: i32) -> Option<&(i32, CString)> {
    errors.list.get(usize::try_from(index).ok()?)
}

extern "C" fn count(this: *const Face<Body>) -> i32 {
    // SAFETY: called through a table of ours; who was given a recorder keeps it.
    guarded(0, || i32::try_from(lock(unsafe { &body(this).errors }).list.len()).unwrap_or(i32::MAX))
}

extern "C" fn code(this: *const Face<Body>, index: i32) -> i32 {
    // SAFETY: as for `count`.
    guarded(UNSPECIFIED, || at(&lock(unsafe { &body(this).errors }), index).map_or(UNSPECIFIED, |error| error.0))
}

/// The text stays where it is until the recorder is cleared.
extern "C" fn description(this: *const Face<Body>, index: i32) -> *const c_char {
    // SAFETY: as for `count`.
    guarded(null(), || at(&lock(unsafe { &body(this).errors }), index).map_or(c"".as_ptr(), |error| error.1.as_ptr()))
}

extern "C" fn overflowed(this: *const Face<Body>) -> bool {
    // SAFETY: as for `count`.
    guarded(false, || lock(unsafe { &body(this).errors }).overflowed)
}

extern "C" fn clear(this: *const Face<Body>) {
    // SAFETY: as for `count`.
    guarded((), || *lock(unsafe { &body(this).errors }) = Errors::default());
}

/// Every error ends the call that met it.
extern "C" fn report(this: *const Face<Body>, code: i32, text: *const c_char) -> bool {
    guarded(true, || {
        // SAFETY: as for `count`.
        let mut errors = lock(unsafe { &body(this).errors });
        if errors.list.len() < KEPT {
            // SAFETY: null, or a text that lives until we return.
            let text = if text.is_null() { CString::default() } else { unsafe { CStr::from_ptr(text) }.to_owned() };
            errors.list.push((code, text));
        } else {
            errors.overflowed = true;
        }
        true
    })
}

/// Counted because TensorRT asks for it; how long a recorder lives is the matter of who was given it.
extern "C" fn add_reference(this: *const Face<Body>) -> i32 {
    // SAFETY: as for `count`.
    guarded(0, || unsafe { body(this) }.references.fetch_add(1, Ordering::Relaxed) + 1)
}

extern "C" fn drop_reference(this: *const Face<Body>) -> i32 {
    // SAFETY: as for `count`.
    guarded(0, || unsafe { body(this) }.references.fetch_sub(1, Ordering::Relaxed) - 1)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::callback::calls::{FAMILIES, c, destructors, information, slot};

    /// The methods of a recorder, found as C++ finds them.
    struct Methods {
        count: unsafe extern "C" fn(*mut c_void) -> i32,
        code: unsafe extern "C" fn(*mut c_void, i32) -> i32,
        description: unsafe extern "C" fn(*mut c_void, i32) -> *const c_char,
        overflowed: unsafe extern "C" fn(*mut c_void) -> bool,
        clear: unsafe extern "C" fn(*mut c_void),
        report: unsafe extern "C" fn(*mut c_void, i32, *const c_char) -> bool,
        add: unsafe extern "C" fn(*mut c_void) -> i32,
        sub: unsafe extern "C" fn(*mut c_void) -> i32,
    }

    fn methods(object: *mut c_void, family: Family) -> Methods {
        let at = if family == Family::V8 { 2 } else { 4 };
        // SAFETY: methods start at 2 in 8.x and at 4 since, in this order.
        unsafe {
            Methods {
                count: slot(object, at),
                code: slot(object, at + 1),
                description: slot(object, at + 2),
                overflowed: slot(object, at + 3),
                clear: slot(object, at + 4),
                report: slot(object, at + 5),
                add: slot(object, at + 6),
                sub: slot(object, at + 7),
            }
        }
    }

    #[test]
    fn errors_are_kept_and_read_back_in_every_layout() {
        for family in FAMILIES {
            let recorder = ErrorRecorder::new();
            let object = recorder.object(family);
            let m = methods(object, family);
            // SAFETY: an object and methods of ours; texts are read while the recorder is not cleared.
            unsafe {
                assert!((m.report)(object, 4, c"no memory".as_ptr()));
                assert!((m.report)(object, 9, std::ptr::null()));
                assert_eq!((m.count)(object), 2);
                assert_eq!([(m.code)(object, 0), (m.code)(object, 2), (m.code)(object, -1)], [4, 1, 1]);
                assert_eq!(CStr::from_ptr((m.description)(object, 0)), c"no memory");
                assert_eq!(CStr::from_ptr((m.description)(object, 7)), c"");
                assert_eq!([(m.add)(object), (m.add)(object), (m.sub)(object)], [1, 2, 1]);
                assert!(!(m.overflowed)(object));
                assert_eq!(recorder.take(), [(4, "no memory".to_owned()), (9, String::new())]);
                (m.report)(object, 1, c"again".as_ptr());
                (m.clear)(object);
                assert_eq!((m.count)(object), 0);
            }
            destructors(object, if family == Family::V8 { 0 } else { 2 });
        }
        for family in [Family::V10, Family::V11] {
            assert_eq!(information(ErrorRecorder::new().object(family)), (0, "IErrorRecorder".to_owned(), 1, 0));
        }
    }

    #[test]
    fn threads_report_side_by_side_and_too_many_are_an_overflow() {
        let recorder = ErrorRecorder::new();
        thread::scope(|scope| {
            for thread in 0..8 {
                let recorder = &recorder;
                scope.spawn(move || {
                    let family = FAMILIES[thread % 3];
                    let object = recorder.object(family);
                    let m = methods(object, family);
                    for error in 0..64 {
                        let text = c(&format!("{thread} {error}"));
                        // SAFETY: an object and methods of ours.
                        unsafe { (m.report)(object, error, text.as_ptr()) };
                    }
                });
            }
        });
        let object = recorder.object(Family::V8);
        let m = methods(object, Family::V8);
        // SAFETY: an object and methods of ours.
        unsafe { assert!((m.overflowed)(object)) };
        assert_eq!(recorder.take().len(), KEPT);
        // SAFETY: as above.
        unsafe { assert!(!(m.overflowed)(object)) };
    }
}
