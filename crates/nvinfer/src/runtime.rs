//! The runtime: loads engines.

use std::sync::PoisonError;

use crate::object::{Held, Kind, Object, call, try_call};
use crate::pointer::Ptr;
use crate::tables::runtime;
use crate::{Driver, Engine, Error, ErrorRecorder, Family, GpuAllocator, Library, Logger, StreamReader};

/// Loads engines of a library.
#[derive(Debug)]
pub struct Runtime {
    object: Held,
}

/// Drivers of CUDA 12 run whatever 8.x was built for. With older ones it is tried out first, which loads the builder with
/// all its kernels: ten seconds and gigabytes.
const SUITS_EVERY_8: i32 = 12_000;

impl Library {
    /// Something that loads engines.
    pub fn runtime(&self, driver: &Driver, logger: &Logger) -> Result<Runtime, Error> {
        if self.family() == Family::V8 && self.can_build() && driver.version() < SUITS_EVERY_8 {
            self.try_builder(driver, logger)?;
        }
        Ok(Runtime { object: Object::create(self, self.create_runtime(), "runtime", driver, logger)? })
    }

    /// In 8.x a runtime that cannot be made, because the driver is too old, crashes where a builder is merely null, so a builder is made first, once.
    fn try_builder(&self, driver: &Driver, logger: &Logger) -> Result<(), Error> {
        let mut tried = self.builder_tried().lock().unwrap_or_else(PoisonError::into_inner);
        if !*tried {
            drop(self.builder(driver, logger)?);
            *tried = true;
        }
        Ok(())
    }
}

impl Runtime {
    /// Where errors of this runtime and of its engines go.
    pub fn set_error_recorder(&self, recorder: &ErrorRecorder) {
        let pointer = recorder.object(self.object.family());
        self.object.keep_recorder(pointer, recorder);
        // SAFETY: the runtime keeps the recorder.
        unsafe { call!(self.object, runtime::SET_ERROR_RECORDER, pointer) }
    }

    /// Where device memory of its engines comes from. Must be set before the first engine is loaded.
    pub fn set_allocator(&self, allocator: &GpuAllocator) {
        let pointer = allocator.object(self.object.family());
        self.object.keep(pointer, allocator.clone());
        // SAFETY: the runtime keeps the allocator.
        unsafe { call!(self.object, runtime::SET_GPU_ALLOCATOR, pointer) }
    }

    /// Threads that may be used for loading, since 8.4.
    pub fn set_max_threads(&self, threads: i32) -> Result<(), Error> {
        let since = self.object.now();
        // SAFETY: a plain number.
        let done = unsafe { try_call!(self.object, runtime::SET_MAX_THREADS, threads) };
        self.object.accepted(done, || format!("{threads} threads for loading"), since)
    }

    /// The DLA core on which engines for one run.
    pub fn set_dla_core(&self, core: i32) {
        // SAFETY: a plain number; TensorRT checks it and logs.
        unsafe { call!(self.object, runtime::SET_DLA_CORE, core) }
    }

    /// Whether an engine may bring code for the host, as version-compatible engines do; since 8.6.
    pub fn allow_host_code(&self, allowed: bool) -> Result<(), Error> {
        // SAFETY: a plain value.
        unsafe { try_call!(self.object, runtime::SET_ENGINE_HOST_CODE_ALLOWED, allowed) };
        Ok(())
    }

    /// Loads an engine. The bytes are not needed afterwards.
    pub fn deserialize(&self, engine: &[u8]) -> Result<Engine, Error> {
        let (data, size): (Ptr, u64) = (engine.as_ptr().cast_mut().cast(), engine.len() as u64);
        let since = self.object.now();
        // SAFETY: the bytes outlive the call and are only read. 8.x takes a factory of plugins that nobody makes any more.
        let pointer = unsafe {
            match self.object.family() {
                Family::V8 => {
                    try_call!(self.object, runtime::DESERIALIZE_CUDA_ENGINE_8, data, size, std::ptr::null_mut())
                }
                _ => try_call!(self.object, runtime::DESERIALIZE_CUDA_ENGINE, data, size),
            }
        };
        Ok(Engine::new(self.object.child(Kind::Owned, "engine", pointer, since)?))
    }

    /// Loads an engine piece by piece; 10.x alone.
    pub fn deserialize_stream(&self, reader: StreamReader) -> Result<Engine, Error> {
        let since = self.object.now();
        let source = reader.object(self.object.family());
        // SAFETY: the reader outlives the call, and the engine keeps it.
        let pointer = unsafe { try_call!(self.object, runtime::DESERIALIZE_CUDA_ENGINE_STREAM, source) };
        let engine = self.object.child(Kind::Owned, "engine", pointer, since)?;
        engine.keep(source, reader);
        Ok(Engine::new(engine))
    }
}
