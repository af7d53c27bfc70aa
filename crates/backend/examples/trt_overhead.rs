//! The `tensorrt` backend against a minimal C++ loop over the same engine, in one process, on one library.
//!
//! Blocks of calls are timed in the order A B B A, so that what happens to the GPU happens to both. `bench/tensorrt_vs_cpp`
//! builds the loop (`bench/tensorrt_loop.cpp`) and reads the lines: mode, side, nanoseconds of each call.
//!
//! usage: trt_overhead LIBNVINFER LOOP.so ENGINE ROUNDS CALLS
#![expect(clippy::disallowed_macros, reason = "a tool for developers, whose output nobody cuts short")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should say where it stopped")]
#![expect(unsafe_code, reason = "calls of the C++ loop")]

use std::ffi::{CString, c_char, c_int, c_ulonglong, c_void};
use std::time::Instant;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};
use prony_backend::{ModelFile, Session, SessionSpec, backend};
use prony_types::{BackendName, ModelSource, Precision, RuntimeSpec};

type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
type One = unsafe extern "C" fn(*mut c_void, c_int, *mut c_ulonglong, *mut c_ulonglong) -> c_int;
type Two = unsafe extern "C" fn(*mut c_void, c_int, *mut c_ulonglong, *mut c_ulonglong) -> c_int;

/// The C++ side.
struct Bare {
    one: Symbol<One>,
    two: Symbol<Two>,
    handle: *mut c_void,
}

impl Bare {
    fn open(path: &str, engine: &str) -> Bare {
        // SAFETY: the library is the one that tensorrt_loop.cpp was built into; the types above are its declarations.
        unsafe {
            let library = Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL).unwrap();
            let open: Symbol<Open> = library.get(b"loop_open\0").unwrap();
            let (one, two) = (library.get(b"loop_one\0").unwrap(), library.get(b"loop_two\0").unwrap());
            let name = CString::new(engine).unwrap();
            let handle = open(name.as_ptr(), 1);
            assert!(!handle.is_null(), "the C++ loop cannot be set up");
            // It stays until the process ends.
            std::mem::forget(library);
            Bare { one, two, handle }
        }
    }

    /// Host's time of each call, and its computing.
    fn one(&self, calls: usize) -> [Vec<u64>; 2] {
        let (mut total, mut inference) = (vec![0; calls], vec![0; calls]);
        // SAFETY: both vectors have room for as many calls.
        let status = unsafe { (self.one)(self.handle, calls as c_int, total.as_mut_ptr(), inference.as_mut_ptr()) };
        assert_eq!(status, 0);
        [total, inference]
    }

    /// Computing of each call, and the time of all.
    fn two(&self, calls: usize) -> (Vec<u64>, u64) {
        let (mut inference, mut wall) = (vec![0; calls], 0);
        // SAFETY: as above.
        let status = unsafe { (self.two)(self.handle, calls as c_int, inference.as_mut_ptr(), &raw mut wall) };
        assert_eq!(status, 0);
        (inference, wall)
    }
}

fn one(session: &mut dyn Session, calls: usize) -> [Vec<u64>; 2] {
    let (mut total, mut inference) = (Vec::with_capacity(calls), Vec::with_capacity(calls));
    for _ in 0..calls {
        let begun = Instant::now();
        let timing = session.run(0).unwrap();
        total.push(begun.elapsed().as_nanos() as u64);
        inference.push(timing.inference_ns);
    }
    [total, inference]
}

fn two(session: &mut dyn Session, calls: usize) -> (Vec<u64>, u64) {
    let begun = Instant::now();
    let mut inference = Vec::with_capacity(calls);
    session.submit(0).unwrap();
    for call in 1..calls {
        session.submit(call % 2).unwrap();
        inference.push(session.collect((call + 1) % 2).unwrap().inference_ns);
    }
    inference.push(session.collect((calls + 1) % 2).unwrap().inference_ns);
    (inference, begun.elapsed().as_nanos() as u64)
}

fn tell(mode: &str, side: &str, values: &[u64]) {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    println!("{mode} {side} {}", values.join(" "));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [library, loop_library, engine, rounds, calls] = &arguments[..] else {
        eprintln!("usage: trt_overhead LIBNVINFER LOOP.so ENGINE ROUNDS CALLS");
        std::process::exit(2);
    };
    let (rounds, calls): (usize, usize) = (rounds.parse().unwrap(), calls.parse().unwrap());
    let model = ModelFile::open(&ModelSource::File(engine.into())).unwrap();
    let spec = SessionSpec {
        precision: Precision::Native,
        slots: 2,
        runtime: Some(RuntimeSpec::new(library, "")),
        ..SessionSpec::new(&model)
    };
    let mut session = backend(BackendName::Tensorrt).open(&spec).unwrap();
    eprintln!("{}", session.record().settings.join("; "));
    let bare = Bare::open(loop_library, engine);
    one(&mut *session, calls);
    bare.one(calls);
    for _ in 0..rounds {
        for side in ["prony", "bare", "bare", "prony"] {
            let [total, inference] = if side == "bare" { bare.one(calls) } else { one(&mut *session, calls) };
            tell("one-total", side, &total);
            tell("one-inference", side, &inference);
        }
        for side in ["prony", "bare", "bare", "prony"] {
            let (inference, wall) = if side == "bare" { bare.two(calls) } else { two(&mut *session, calls) };
            tell("two-inference", side, &inference);
            tell("two-wall", side, &[wall]);
        }
    }
}
