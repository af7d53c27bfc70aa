//! How the tests call our objects: by slot number, as C++ does.

use std::ffi::{CStr, CString, c_char, c_void};

use crate::Family;

/// All of them.
pub(crate) const FAMILIES: [Family; 3] = [Family::V8, Family::V10, Family::V11];

/// The function in a slot of an object's table.
///
/// # Safety
/// `F` is the signature of that slot.
pub(crate) unsafe fn slot<F: Copy>(object: *mut c_void, index: usize) -> F {
    assert!(!object.is_null());
    assert_eq!(size_of::<F>(), size_of::<*const c_void>());
    // SAFETY: an object's first word is its table, a slot is the address of a function, and `F` is a function pointer.
    unsafe {
        let table = *object.cast::<*const *const c_void>();
        assert!(!(*table.add(index)).is_null());
        std::mem::transmute_copy(&*table.add(index))
    }
}

/// Calls both destructors, after which an object of ours must be as it was, and checks the words in front of the table.
pub(crate) fn destructors(object: *mut c_void, first: usize) {
    for index in [first, first + 1] {
        // SAFETY: a destructor takes the object and gives nothing.
        let destroy: unsafe extern "C" fn(*mut c_void) = unsafe { slot(object, index) };
        // SAFETY: as above.
        unsafe { destroy(object) };
    }
    // SAFETY: every table has two words in front of it.
    let front = unsafe {
        let table = *object.cast::<*const usize>();
        [*table.sub(2), *table.sub(1)]
    };
    assert_eq!(front, [0, 0]);
}

/// What a versioned interface says: language, kind, major, minor.
pub(crate) fn information(object: *mut c_void) -> (i32, String, i32, i32) {
    #[repr(C)]
    struct Info {
        kind: *const c_char,
        major: i32,
        minor: i32,
    }
    // SAFETY: slots 0 and 1 of a versioned interface.
    unsafe {
        let language: unsafe extern "C" fn(*mut c_void) -> i32 = slot(object, 0);
        let info: unsafe extern "C" fn(*mut c_void) -> Info = slot(object, 1);
        let info = info(object);
        (language(object), CStr::from_ptr(info.kind).to_str().unwrap().to_owned(), info.major, info.minor)
    }
}

/// A text for C.
pub(crate) fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}
