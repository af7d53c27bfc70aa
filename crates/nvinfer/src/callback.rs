//! Objects that TensorRT calls: written in Rust, laid out as a C++ compiler would.
//!
//! A C++ object with virtual methods begins with the address of a table of functions, and which method is where differs
//! between the majors. So one object of ours has one face a family, all with the same body behind them. TensorRT calls
//! from threads of its own and its code cannot be unwound through: every function here catches panics.

mod allocator;
mod calibrator;
mod logger;
mod output;
mod profiler;
mod progress;
mod reader;
mod recorder;

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use allocator::{DeviceAllocator, GpuAllocator};
pub use calibrator::{Calibration, Calibrator};
pub(crate) use logger::Mark;
pub use logger::{Logger, Severity};
pub use output::{OutputAllocator, OutputMemory};
pub use profiler::Profiler;
pub use progress::{BuildListener, ProgressMonitor};
pub use reader::{EngineReader, StreamReader};
pub use recorder::ErrorRecorder;

use crate::Family;

/// Address of a method.
type Slot = *const c_void;

/// A virtual table: offset to top and type information (both zero: nothing casts our objects), then the slots.
#[repr(C)]
struct Table<const N: usize> {
    slots: [Slot; N],
    /// What C++ calls the methods, for the comparison with the facts.
    #[cfg(test)]
    names: &'static [&'static str],
}

// SAFETY: the addresses of functions never change.
unsafe impl<const N: usize> Sync for Table<N> {}

impl<const N: usize> Table<N> {
    /// What an object's first word is: the address of slot 0.
    const fn slots(&'static self) -> *const Slot {
        // SAFETY: every table has the two words in front and at least one slot.
        unsafe { self.slots.as_ptr().add(2) }
    }
}

/// What TensorRT sees: a table, and behind it where the body is.
#[repr(C)]
struct Face<T> {
    slots: *const Slot,
    body: *const T,
}

/// A body with a face for each family. The faces keep their addresses, and so does the body, until it is dropped.
struct Object<T> {
    faces: Box<[Face<T>; 3]>,
    body: Box<T>,
}

// SAFETY: the pointers of a face are to a static table and to the body in the same object, which is only ever shared.
unsafe impl<T: Send + Sync> Send for Object<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Object<T> {}

impl<T> Object<T> {
    /// With the tables of 8.x, 10.x and 11.x; null where that major has no such interface.
    fn new(body: T, tables: [*const Slot; 3]) -> Object<T> {
        let body = Box::new(body);
        let faces = Box::new(tables.map(|slots| Face { slots, body: &raw const *body }));
        Object { faces, body }
    }

    /// What to hand to a library of this family; null where the family has no such interface.
    fn address(&self, family: Family) -> *mut c_void {
        let face = &self.faces[match family {
            Family::V8 => 0,
            Family::V10 => 1,
            Family::V11 => 2,
        }];
        if face.slots.is_null() { std::ptr::null_mut() } else { (&raw const *face).cast_mut().cast() }
    }
}

/// The body behind the object that a method was called on.
///
/// # Safety
/// `this` is an address that [`Object::address`] gave out, and that object is still there.
unsafe fn body<'a, T>(this: *const Face<T>) -> &'a T {
    // SAFETY: the caller's promise; the body is as old as its faces.
    unsafe { &*(*this).body }
}

/// What a versioned interface says about itself.
#[repr(C)]
struct InterfaceInfo {
    kind: *const c_char,
    major: i32,
    minor: i32,
}

/// `getAPILanguage`: C++, which is what the layout is that of.
extern "C" fn api_language(_this: *const c_void) -> i32 {
    0
}

/// Both destructors. Nothing of ours is destroyed by TensorRT.
extern "C" fn destroy(_this: *mut c_void) {}

/// The table of a versioned interface: language, information and destructors come first, in that order.
macro_rules! versioned {
    ($kind:literal; $($name:literal => $slot:expr),+ $(,)?) => {{
        extern "C" fn info(_this: *const std::ffi::c_void) -> $crate::callback::InterfaceInfo {
            $crate::callback::InterfaceInfo { kind: $kind.as_ptr(), major: 1, minor: 0 }
        }
        $crate::callback::plain![
            "getAPILanguage" => $crate::callback::api_language,
            "getInterfaceInfo" => info,
            "~complete" => $crate::callback::destroy,
            "~deleting" => $crate::callback::destroy,
            $($name => $slot),+
        ]
    }};
}

/// A table of these slots, each after what C++ calls it.
macro_rules! plain {
    ($($name:literal => $slot:expr),+ $(,)?) => {
        $crate::callback::Table {
            slots: [std::ptr::null(), std::ptr::null(), $($slot as *const std::ffi::c_void),+],
            #[cfg(test)]
            names: &[$($name),+],
        }
    };
}

use {plain, versioned};

/// Where a family has no such interface.
const ABSENT: *const Slot = null();

/// Runs what a callback does; a panic ends here and TensorRT gets `otherwise`.
fn guarded<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        // What was thrown could panic again when it is dropped.
        std::mem::forget(payload);
        otherwise
    })
}

/// A text from TensorRT; empty where there is none.
///
/// # Safety
/// Null, or a text with a NUL that lives as long as what is returned.
unsafe fn text<'a>(from: *const c_char) -> Cow<'a, str> {
    if from.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: not null, the rest is the caller's promise.
    unsafe { CStr::from_ptr(from) }.to_string_lossy()
}

/// A lock that a caught panic does not spoil: what is behind it is whole after every single change.
fn lock<T: ?Sized>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod calls;
#[cfg(test)]
mod facts;
