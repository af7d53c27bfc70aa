//! A crash inside TensorRT ends a process, and whoever started that can name the signal.
#![expect(clippy::disallowed_macros, reason = "tests")]

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use prony_standin::{Standin, VERSIONS};

use crate::place::Place;

/// Set in the process that is to crash: the version.
const CHILD: &str = "PRONY_NVINFER_CRASH";

#[test]
fn a_crash_while_loading_is_a_signal_that_the_parent_can_name() {
    if let Ok(version) = std::env::var(CHILD) {
        let place = Place::new(&version).unwrap();
        let bytes = place.engine();
        let runtime = place.runtime();
        place.standin.set("deserialize", "crash");
        println!("about to load");
        let _ = runtime.deserialize(&bytes);
        println!("survived");
        return;
    }
    for version in VERSIONS {
        if Standin::new(version).is_none() {
            return;
        }
        let name = "crash::a_crash_while_loading_is_a_signal_that_the_parent_can_name";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(CHILD, version)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(said.contains("about to load") && !said.contains("survived"), "{version}: {said}");
        // 11 is SIGSEGV.
        assert_eq!((child.status.code(), child.status.signal()), (None, Some(11)), "{version}");
    }
}
