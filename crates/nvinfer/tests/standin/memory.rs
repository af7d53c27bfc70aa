//! Device memory through our allocator: balanced, refused without a crash, and kept while it is needed.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use prony_nvinfer::{DeviceAllocator, Error, ErrorRecorder, GpuAllocator, Pool};
use prony_standin::onnx::Model;

use crate::place::everywhere;

/// Host memory, counted; refuses above a limit and says when it is dropped.
struct Counted {
    out: Mutex<BTreeMap<usize, Layout>>,
    largest: Mutex<usize>,
    limit: usize,
    gone: Arc<AtomicBool>,
}

impl Counted {
    fn new(limit: usize) -> (Arc<Counted>, GpuAllocator) {
        let counted = Arc::new(Counted {
            out: Mutex::default(),
            largest: Mutex::default(),
            limit,
            gone: Arc::new(AtomicBool::new(false)),
        });
        let allocator = GpuAllocator::new(Arc::clone(&counted) as Arc<dyn DeviceAllocator>);
        (counted, allocator)
    }

    fn in_use(&self) -> usize {
        self.out.lock().unwrap().values().map(Layout::size).sum()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
    }
}

impl DeviceAllocator for Counted {
    fn allocate(&self, bytes: u64, alignment: u64) -> *mut c_void {
        let bytes = usize::try_from(bytes).unwrap();
        if self.in_use() + bytes > self.limit {
            return null_mut();
        }
        let layout = Layout::from_size_align(bytes, usize::try_from(alignment).unwrap()).unwrap();
        // SAFETY: nobody asks for nothing.
        let memory = unsafe { alloc(layout) };
        self.out.lock().unwrap().insert(memory.addr(), layout);
        let mut largest = self.largest.lock().unwrap();
        *largest = bytes.max(*largest);
        memory.cast()
    }

    fn free(&self, memory: *mut c_void) -> bool {
        let Some(layout) = self.out.lock().unwrap().remove(&memory.addr()) else { return false };
        // SAFETY: handed out above with this layout.
        unsafe { dealloc(memory.cast(), layout) };
        true
    }
}

const REFUSED: &str = "could not be allocated. There may not be enough free memory for allocation to succeed.";

#[test]
fn builds_and_engines_take_their_memory_from_the_allocator_and_give_it_back() {
    everywhere(|place| {
        let (counted, allocator) = Counted::new(usize::MAX);
        let bytes = place.build(&Model::detector(), |builder, config| {
            builder.set_allocator(&allocator);
            config.set_memory_pool(Pool::Workspace, 3 << 20).unwrap();
        });
        assert_eq!((*counted.largest.lock().unwrap(), counted.in_use()), (3 << 20, 0));
        let runtime = place.runtime();
        runtime.set_allocator(&allocator);
        let engine = runtime.deserialize(&bytes.unwrap()).unwrap();
        assert_eq!(counted.in_use(), 65536);
        let context = engine.context().unwrap();
        assert_eq!(counted.in_use(), 65536 + 4096);
        drop((context, engine));
        assert_eq!(counted.in_use(), 0);
    });
}

#[test]
fn memory_that_is_refused_fails_the_build_the_load_or_the_context_by_name() {
    everywhere(|place| {
        let (counted, allocator) = Counted::new(1 << 20);
        let recorder = ErrorRecorder::new();
        let error = place.build(&Model::detector(), |builder, config| {
            builder.set_allocator(&allocator);
            builder.set_error_recorder(&recorder);
            config.set_memory_pool(Pool::Workspace, 2 << 20).unwrap();
        });
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        let reason = format!("Requested amount of GPU memory (2097152 bytes) {REFUSED}");
        assert_eq!(error.to_string(), format!("TensorRT refused to build the engine: {reason}"));
        assert_eq!(recorder.take(), [(5, reason)]);
        assert_eq!(counted.in_use(), 0);
        let bytes = place.engine();
        for (limit, what) in [(60_000, "engine"), (68_000, "execution context")] {
            let (counted, allocator) = Counted::new(limit);
            let runtime = place.runtime();
            runtime.set_allocator(&allocator);
            let error = runtime.deserialize(&bytes).and_then(|engine| engine.context()).unwrap_err();
            assert!(matches!(error, Error::NotCreated { .. }), "{error}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("TensorRT made no {what}: ")) && text.ends_with(REFUSED), "{text}");
            assert_eq!(counted.in_use(), 0);
        }
    });
}

/// An engine gives its memory back to the allocator that it came from.
#[test]
fn an_allocator_stays_until_its_engines_are_gone_also_when_it_was_replaced() {
    everywhere(|place| {
        let (first, allocator) = Counted::new(usize::MAX);
        let gone = Arc::clone(&first.gone);
        let runtime = place.runtime();
        runtime.set_allocator(&allocator);
        let engine = runtime.deserialize(&place.engine()).unwrap();
        let (_second, other) = Counted::new(usize::MAX);
        runtime.set_allocator(&other);
        drop((first, allocator));
        assert!(!gone.load(Ordering::SeqCst), "the engine still needs it");
        drop(engine);
        drop(runtime);
        assert!(gone.load(Ordering::SeqCst));
    });
}

/// TensorRT lets go of a recorder by calling it.
#[test]
fn a_recorder_that_is_replaced_is_still_there_when_tensorrt_lets_go_of_it() {
    everywhere(|place| {
        let (builder, runtime) = (place.builder(), place.runtime());
        for _ in 0..3 {
            builder.set_error_recorder(&ErrorRecorder::new());
            runtime.set_error_recorder(&ErrorRecorder::new());
        }
        let last = ErrorRecorder::new();
        runtime.set_error_recorder(&last);
        runtime.deserialize(b"no engine").unwrap_err();
        assert_eq!(last.take().len(), 1);
    });
}
