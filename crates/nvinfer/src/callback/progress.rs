//! The progress monitor: how far a build is. Since 10.0.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::sync::Arc;

use super::{ABSENT, Face, Object, Table, body, guarded, text, versioned};
use crate::Family;

/// Hears of the phases of a build, which nest. Called from any thread.
pub trait BuildListener: Send + Sync {
    /// A phase of so many steps begins, inside of another.
    fn phase_start(&self, phase: &str, parent: Option<&str>, steps: i32);
    /// A step of a phase is done, the first is 0; whether to go on with the build.
    fn step(&self, phase: &str, step: i32) -> bool;
    /// A phase is over, also where not all of its steps were done.
    fn phase_finish(&self, phase: &str);
}

struct Body(Arc<dyn BuildListener>);

/// What TensorRT reports the progress of a build to.
#[derive(Clone)]
pub struct ProgressMonitor(Arc<Object<Body>>);

pub(super) static TABLE: Table<9> = versioned![
    c"IProgressMonitor";
    "phaseStart" => phase_start,
    "stepComplete" => step_complete,
    "phaseFinish" => phase_finish,
];

impl ProgressMonitor {
    /// A monitor that tells this.
    pub fn new(listener: Arc<dyn BuildListener>) -> ProgressMonitor {
        ProgressMonitor(Arc::new(Object::new(Body(listener), [ABSENT, TABLE.slots(), TABLE.slots()])))
    }

    /// What a library of this family is given; null for 8.x, which has no monitor.
    pub(crate) fn object(&self, family: Family) -> *mut c_void {
        self.0.address(family)
    }
}

impl fmt::Debug for ProgressMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressMonitor")
    }
}

extern "C" fn phase_start(this: *const Face<Body>, phase: *const c_char, parent: *const c_char, steps: i32) {
    guarded((), || {
        // SAFETY: called through a table of ours (who was given a monitor keeps it), with texts that outlive the call.
        let (body, phase, outer) = unsafe { (body(this), text(phase), text(parent)) };
        body.0.phase_start(&phase, if parent.is_null() { None } else { Some(&outer) }, steps);
    });
}

/// A listener that panics does not stop a build.
extern "C" fn step_complete(this: *const Face<Body>, phase: *const c_char, step: i32) -> bool {
    // SAFETY: as for `phase_start`.
    guarded(true, || unsafe { body(this).0.step(&text(phase), step) })
}

extern "C" fn phase_finish(this: *const Face<Body>, phase: *const c_char) {
    // SAFETY: as for `phase_start`.
    guarded((), || unsafe { body(this).0.phase_finish(&text(phase)) });
}

#[cfg(test)]
mod tests {
    use std::ptr::null;
    use std::sync::Mutex;

    use super::*;
    use crate::callback::calls::{destructors, information, slot};

    /// Writes down what it hears; ends a build at step 3, panics at phases of that name.
    #[derive(Default)]
    struct Diary(Mutex<Vec<String>>);

    impl BuildListener for Diary {
        fn phase_start(&self, phase: &str, parent: Option<&str>, steps: i32) {
            assert!(phase != "panic", "start");
            self.0.lock().unwrap().push(format!("{phase} in {parent:?} of {steps}"));
        }

        fn step(&self, phase: &str, step: i32) -> bool {
            assert!(phase != "panic", "step");
            step < 3
        }

        fn phase_finish(&self, phase: &str) {
            assert!(phase != "panic", "finish");
            self.0.lock().unwrap().push(format!("{phase} done"));
        }
    }

    #[test]
    fn phases_and_steps_arrive_and_a_step_can_end_the_build() {
        for family in [Family::V10, Family::V11] {
            let diary = Arc::new(Diary::default());
            let monitor = ProgressMonitor::new(Arc::clone(&diary) as Arc<dyn BuildListener>);
            let object = monitor.object(family);
            // SAFETY: the slots of the interface by signature, with texts that outlive the calls.
            unsafe {
                let start: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char, i32) = slot(object, 4);
                let step: unsafe extern "C" fn(*mut c_void, *const c_char, i32) -> bool = slot(object, 5);
                let finish: unsafe extern "C" fn(*mut c_void, *const c_char) = slot(object, 6);
                start(object, c"Build".as_ptr(), null(), 2);
                start(object, c"Tactics".as_ptr(), c"Build".as_ptr(), 9);
                assert!(step(object, c"Tactics".as_ptr(), 2));
                assert!(!step(object, c"Tactics".as_ptr(), 3));
                finish(object, c"Tactics".as_ptr());
                start(object, c"panic".as_ptr(), null(), 1);
                assert!(step(object, c"panic".as_ptr(), 0), "a panic goes on");
                finish(object, c"panic".as_ptr());
            }
            let heard = ["Build in None of 2", "Tactics in Some(\"Build\") of 9", "Tactics done"];
            assert_eq!(*diary.0.lock().unwrap(), heard);
            assert_eq!(information(object), (0, "IProgressMonitor".to_owned(), 1, 0));
            destructors(object, 2);
        }
        assert!(ProgressMonitor::new(Arc::new(Diary::default())).object(Family::V8).is_null());
    }
}
