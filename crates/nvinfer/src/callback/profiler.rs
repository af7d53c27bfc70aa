//! The profiler: how long each layer took.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::sync::{Arc, Mutex};

use super::{Face, Object, Table, body, destroy, guarded, lock, plain, text, versioned};
use crate::Family;

#[derive(Default)]
struct Body(Mutex<Vec<(String, f32)>>);

/// Collects the time of each layer, inference after inference.
#[derive(Clone)]
pub struct Profiler(Arc<Object<Body>>);

pub(super) static OLD: Table<5> = plain!["reportLayerTime" => report, "~complete" => destroy, "~deleting" => destroy];
pub(super) static NEW: Table<7> = versioned![c"IProfiler"; "reportLayerTime" => report];

impl Profiler {
    /// An empty one.
    #[expect(clippy::new_without_default, reason = "an object with an address is made on purpose")]
    pub fn new() -> Profiler {
        Profiler(Arc::new(Object::new(Body::default(), [OLD.slots(), OLD.slots(), NEW.slots()])))
    }

    /// Takes out what was reported, layer and milliseconds, in the order of the calls.
    pub fn take(&self) -> Vec<(String, f32)> {
        std::mem::take(&mut *lock(&self.0.body.0))
    }

    /// What a library of this family is given.
    pub(crate) fn object(&self, family: Family) -> *mut c_void {
        self.0.address(family)
    }
}

impl fmt::Debug for Profiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Profiler")
    }
}

extern "C" fn report(this: *const Face<Body>, layer: *const c_char, ms: f32) {
    // SAFETY: called through a table of ours (who was given a profiler keeps it), with a text that outlives the call.
    guarded((), || unsafe { lock(&body(this).0).push((text(layer).into_owned(), ms)) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback::calls::{FAMILIES, destructors, information, slot};

    #[test]
    fn layers_arrive_in_order_in_every_layout() {
        for family in FAMILIES {
            let profiler = Profiler::new();
            let object = profiler.object(family);
            // SAFETY: slot 0 in 8.x and 10.x, 4 in 11.x, with this signature.
            unsafe {
                let report: unsafe extern "C" fn(*mut c_void, *const c_char, f32) =
                    slot(object, if family == Family::V11 { 4 } else { 0 });
                report(object, c"conv".as_ptr(), 1.5);
                report(object, c"relu".as_ptr(), 0.25);
            }
            assert_eq!(profiler.take(), [("conv".to_owned(), 1.5), ("relu".to_owned(), 0.25)]);
            assert_eq!(profiler.take(), []);
            destructors(object, if family == Family::V11 { 2 } else { 1 });
        }
        assert_eq!(information(Profiler::new().object(Family::V11)), (0, "IProfiler".to_owned(), 1, 0));
    }
}
