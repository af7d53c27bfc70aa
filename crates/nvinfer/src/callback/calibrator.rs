//! The int8 calibrator: batches of real input from which ranges are learnt. 8.x and 10.x.

use std::borrow::Cow;
use std::ffi::{c_char, c_void};
use std::fmt;
use std::ptr::null;
use std::sync::{Arc, Mutex};

use super::{ABSENT, Face, Object, Slot, Table, body, destroy, guarded, lock, plain, text, versioned};
use crate::Family;

/// Where the batches come from and where the cache goes.
pub trait Calibration: Send {
    /// Images in a batch.
    fn batch_size(&self) -> i32;
    /// Puts the device address of each input's next batch; false when there are no more.
    fn next_batch(&mut self, names: &[&str], device_addresses: &mut [*mut c_void]) -> bool;
    /// What an earlier calibration wrote, which makes the batches unnecessary.
    fn read_cache(&mut self) -> Option<Vec<u8>>;
    /// Takes what was learnt.
    fn write_cache(&mut self, cache: &[u8]);
}

struct Body(Mutex<State>);

struct State {
    from: Box<dyn Calibration>,
    /// TensorRT reads the cache after the call that handed it out.
    cache: Vec<u8>,
}

/// What TensorRT calibrates with.
#[derive(Clone)]
pub struct Calibrator {
    object: Arc<Object<Body>>,
    algorithm: &'static str,
}

pub(super) static ENTROPY_OLD: Table<9> = plain![
    "getBatchSize" => batch_size,
    "getBatch" => batch,
    "readCalibrationCache" => read,
    "writeCalibrationCache" => write,
    "getAlgorithm" => entropy2,
    "~complete" => destroy,
    "~deleting" => destroy,
];
pub(super) static ENTROPY_NEW: Table<11> = versioned![
    c"IInt8EntropyCalibrator2";
    "getBatchSize" => batch_size,
    "getBatch" => batch,
    "readCalibrationCache" => read,
    "writeCalibrationCache" => write,
    "getAlgorithm" => entropy2,
];
pub(super) static MINMAX_OLD: Table<9> = plain![
    "getBatchSize" => batch_size,
    "getBatch" => batch,
    "readCalibrationCache" => read,
    "writeCalibrationCache" => write,
    "getAlgorithm" => min_max,
    "~complete" => destroy,
    "~deleting" => destroy,
];
pub(super) static MINMAX_NEW: Table<11> = versioned![
    c"IInt8MinMaxCalibrator";
    "getBatchSize" => batch_size,
    "getBatch" => batch,
    "readCalibrationCache" => read,
    "writeCalibrationCache" => write,
    "getAlgorithm" => min_max,
];

impl Calibrator {
    /// By entropy (`IInt8EntropyCalibrator2`), which suits convolutional networks.
    pub fn entropy(from: Box<dyn Calibration>) -> Calibrator {
        Calibrator::new(from, "entropy", [ENTROPY_OLD.slots(), ENTROPY_NEW.slots(), ABSENT])
    }

    /// By smallest and largest value (`IInt8MinMaxCalibrator`).
    pub fn minmax(from: Box<dyn Calibration>) -> Calibrator {
        Calibrator::new(from, "minmax", [MINMAX_OLD.slots(), MINMAX_NEW.slots(), ABSENT])
    }

    fn new(from: Box<dyn Calibration>, algorithm: &'static str, tables: [*const Slot; 3]) -> Calibrator {
        let body = Body(Mutex::new(State { from, cache: Vec::new() }));
        Calibrator { object: Arc::new(Object::new(body, tables)), algorithm }
    }

    /// What a library of this family is given; null for 11.x, which has no calibrators.
    pub(crate) fn object(&self, family: Family) -> *mut c_void {
        self.object.address(family)
    }
}

impl fmt::Debug for Calibrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calibrator").field("algorithm", &self.algorithm).finish()
    }
}

extern "C" fn batch_size(this: *const Face<Body>) -> i32 {
    // SAFETY: called through a table of ours; who was given a calibrator keeps it.
    guarded(0, || lock(unsafe { &body(this).0 }).from.batch_size())
}

/// A panic is the end of the batches, as no address of this one can be trusted.
extern "C" fn batch(
    this: *const Face<Body>,
    addresses: *mut *mut c_void,
    names: *const *const c_char,
    count: i32,
) -> bool {
    guarded(false, || {
        let count = usize::try_from(count).unwrap_or(0);
        if count == 0 || addresses.is_null() || names.is_null() {
            return false;
        }
        // SAFETY: TensorRT hands over `count` places and as many names, for the length of the call.
        let (addresses, names) =
            unsafe { (std::slice::from_raw_parts_mut(addresses, count), std::slice::from_raw_parts(names, count)) };
        // SAFETY: as above.
        let names: Vec<Cow<'_, str>> = names.iter().map(|name| unsafe { text(*name) }).collect();
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        // SAFETY: as for `batch_size`.
        lock(unsafe { &body(this).0 }).from.next_batch(&names, addresses)
    })
}

extern "C" fn read(this: *const Face<Body>, length: *mut usize) -> *const c_void {
    // Written first, so that it holds after a panic too.
    // SAFETY: a reference in C++, so never null.
    unsafe { *length = 0 };
    guarded(null(), || {
        // SAFETY: as for `batch_size`.
        let mut state = lock(unsafe { &body(this).0 });
        let Some(cache) = state.from.read_cache().filter(|cache| !cache.is_empty()) else {
            return null();
        };
        state.cache = cache;
        // SAFETY: as above.
        unsafe { *length = state.cache.len() };
        state.cache.as_ptr().cast()
    })
}

extern "C" fn write(this: *const Face<Body>, cache: *const c_void, length: usize) {
    guarded((), || {
        if cache.is_null() {
            return;
        }
        // SAFETY: TensorRT hands over so many bytes for the length of the call.
        let cache = unsafe { std::slice::from_raw_parts(cache.cast(), length) };
        // SAFETY: as for `batch_size`.
        lock(unsafe { &body(this).0 }).from.write_cache(cache);
    });
}

/// `CalibrationAlgoType::kENTROPY_CALIBRATION_2`.
extern "C" fn entropy2(_this: *const Face<Body>) -> i32 {
    2
}

/// `CalibrationAlgoType::kMINMAX_CALIBRATION`.
extern "C" fn min_max(_this: *const Face<Body>) -> i32 {
    3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback::calls::{destructors, information, slot};

    /// Two batches, then none; a cache that it was made with; notes what is written. Panics for an input of that name.
    struct Two {
        left: usize,
        cache: Option<Vec<u8>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Calibration for Two {
        fn batch_size(&self) -> i32 {
            4
        }

        fn next_batch(&mut self, names: &[&str], device_addresses: &mut [*mut c_void]) -> bool {
            assert!(names[0] != "panic", "batch");
            assert_eq!(names, ["images", "sizes"]);
            for (index, address) in device_addresses.iter_mut().enumerate() {
                *address = std::ptr::without_provenance_mut(1000 * (index + 1) + self.left);
            }
            self.left = self.left.saturating_sub(1);
            device_addresses[0].addr() > 1000
        }

        fn read_cache(&mut self) -> Option<Vec<u8>> {
            assert!(self.cache.as_ref().is_none_or(|cache| cache != b"panic"), "read");
            self.cache.clone()
        }

        fn write_cache(&mut self, cache: &[u8]) {
            assert!(cache != b"panic", "write");
            self.written.lock().unwrap().extend_from_slice(cache);
        }
    }

    fn two(cache: Option<&[u8]>) -> (Box<dyn Calibration>, Arc<Mutex<Vec<u8>>>) {
        let written = Arc::new(Mutex::default());
        (Box::new(Two { left: 2, cache: cache.map(<[u8]>::to_vec), written: Arc::clone(&written) }), written)
    }

    type Batch = unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *const *const c_char, i32) -> bool;
    type Read = unsafe extern "C" fn(*mut c_void, *mut usize) -> *const c_void;
    type Write = unsafe extern "C" fn(*mut c_void, *const c_void, usize);

    #[test]
    fn batches_and_caches_pass_in_both_layouts() {
        for family in [Family::V8, Family::V10] {
            let first = if family == Family::V8 { 0 } else { 4 };
            let (from, written) = two(Some(b"ranges"));
            let calibrator = Calibrator::entropy(from);
            let object = calibrator.object(family);
            // SAFETY: the slots of the family with their signatures; arrays and texts outlive the calls.
            unsafe {
                let size: unsafe extern "C" fn(*mut c_void) -> i32 = slot(object, first);
                let batch: Batch = slot(object, first + 1);
                let read: Read = slot(object, first + 2);
                let write: Write = slot(object, first + 3);
                assert_eq!(size(object), 4);
                let names = [c"images".as_ptr(), c"sizes".as_ptr()];
                let mut addresses = [std::ptr::null_mut(); 2];
                let mut seen = Vec::new();
                while batch(object, addresses.as_mut_ptr(), names.as_ptr(), 2) {
                    seen.push(addresses.map(|address| address.addr()));
                }
                assert_eq!(seen, [[1002, 2002], [1001, 2001]]);
                assert!(!batch(object, addresses.as_mut_ptr(), [c"panic".as_ptr()].as_ptr(), 1), "a panic");
                assert!(!batch(object, addresses.as_mut_ptr(), names.as_ptr(), -1));
                let mut length = 99;
                let cache = read(object, &raw mut length);
                assert_eq!(std::slice::from_raw_parts(cache.cast::<u8>(), length), b"ranges");
                write(object, b"learnt".as_ptr().cast(), 6);
                write(object, b"panic".as_ptr().cast(), 5);
                write(object, null(), 5);
            }
            assert_eq!(*written.lock().unwrap(), b"learnt");
            destructors(object, if family == Family::V8 { 5 } else { 2 });
        }
    }

    #[test]
    fn a_cache_that_is_not_there_is_null_and_zero() {
        for cache in [None, Some(&b""[..]), Some(b"panic")] {
            let calibrator = Calibrator::minmax(two(cache).0);
            let object = calibrator.object(Family::V8);
            let mut length = 99;
            // SAFETY: slot 2 of 8.x.
            let read: Read = unsafe { slot(object, 2) };
            // SAFETY: an object and a method of ours.
            assert!(unsafe { read(object, &raw mut length) }.is_null());
            assert_eq!(length, 0, "{cache:?}");
        }
    }

    #[test]
    fn each_says_which_it_is_and_11_has_none() {
        let algorithm = |calibrator: &Calibrator, family, index| {
            let object = calibrator.object(family);
            // SAFETY: `getAlgorithm` of the family.
            let algorithm: unsafe extern "C" fn(*mut c_void) -> i32 = unsafe { slot(object, index) };
            // SAFETY: an object and a method of ours.
            unsafe { algorithm(object) }
        };
        let (entropy, minmax) = (Calibrator::entropy(two(None).0), Calibrator::minmax(two(None).0));
        for (calibrator, number, kind) in
            [(&entropy, 2, "IInt8EntropyCalibrator2"), (&minmax, 3, "IInt8MinMaxCalibrator")]
        {
            assert_eq!([algorithm(calibrator, Family::V8, 4), algorithm(calibrator, Family::V10, 8)], [number; 2]);
            assert_eq!(information(calibrator.object(Family::V10)), (0, kind.to_owned(), 1, 0));
            assert!(calibrator.object(Family::V11).is_null());
        }
    }
}
