//! The builder: makes engines of networks.

use crate::object::{Held, Kind, Object, call, try_call};
use crate::pointer::Ptr;
use crate::tables::{Method, builder, network_definition_creation_flag as creation};
use crate::{
    BuilderConfig, Driver, Error, ErrorRecorder, Family, GpuAllocator, HostMemory, Library, Logger, Network,
    OptimizationProfile,
};

/// Makes engines for the device that is current.
#[derive(Debug)]
pub struct Builder {
    object: Held,
}

impl Library {
    /// Something that builds engines.
    pub fn builder(&self, driver: &Driver, logger: &Logger) -> Result<Builder, Error> {
        let create = self
            .create_builder()
            .ok_or_else(|| Error::Symbol { path: self.path().to_owned(), symbol: "createInferBuilder_INTERNAL" })?;
        Ok(Builder { object: Object::create(self, create, "builder", driver, logger)? })
    }
}

impl Builder {
    /// Threads that a build may use, since 8.4.
    pub fn set_max_threads(&self, threads: i32) -> Result<(), Error> {
        let since = self.object.now();
        // SAFETY: a plain number.
        let done = unsafe { try_call!(self.object, builder::SET_MAX_THREADS, threads) };
        self.object.accepted(done, || format!("{threads} threads for building"), since)
    }

    /// Where device memory of builds comes from.
    pub fn set_allocator(&self, allocator: &GpuAllocator) {
        let pointer = allocator.object(self.object.family());
        self.object.keep(pointer, allocator.clone());
        // SAFETY: the builder keeps the allocator.
        unsafe { call!(self.object, builder::SET_GPU_ALLOCATOR, pointer) }
    }

    /// Where errors of builds go.
    pub fn set_error_recorder(&self, recorder: &ErrorRecorder) {
        let pointer = recorder.object(self.object.family());
        self.object.keep_recorder(pointer, recorder);
        // SAFETY: the builder keeps the recorder.
        unsafe { call!(self.object, builder::SET_ERROR_RECORDER, pointer) }
    }

    /// DLA cores of the device.
    pub fn dla_cores(&self) -> i32 {
        // SAFETY: no arguments.
        unsafe { call!(self.object, builder::GET_NB_DLA_CORES) }
    }

    /// Whether the device is fast with fp16; 11.x does not tell.
    pub fn has_fast_fp16(&self) -> Option<bool> {
        self.ask(&builder::PLATFORM_HAS_FAST_FP16)
    }

    /// Whether the device is fast with int8; 11.x does not tell.
    pub fn has_fast_int8(&self) -> Option<bool> {
        self.ask(&builder::PLATFORM_HAS_FAST_INT8)
    }

    fn ask(&self, method: &Method<unsafe extern "C" fn(Ptr) -> bool>) -> Option<bool> {
        // SAFETY: a method of the builder without arguments.
        unsafe { self.object.method(method).ok().map(|(function, this)| function(this)) }
    }

    /// An empty network. Strongly typed, its tensors have the types that the model says: 10.x can, 11.x must.
    pub fn network(&self, strongly_typed: bool) -> Result<Network, Error> {
        let version = self.object.version();
        let bit = match (self.object.family(), strongly_typed) {
            (Family::V8, false) => 1 << creation::EXPLICIT_BATCH.number(version)?,
            (Family::V10, false) => 0,
            (Family::V11, false) => {
                return Err(Error::Unsupported { what: "a network without strong types".to_owned(), version });
            }
            (_, true) => 1 << creation::STRONGLY_TYPED.number(version)?,
        };
        let since = self.object.now();
        // SAFETY: a plain number.
        let pointer = unsafe { call!(self.object, builder::CREATE_NETWORK_V2, bit) };
        Ok(Network::new(self.object.child(Kind::Owned, "network", pointer, since)?))
    }

    /// A configuration with TensorRT's defaults.
    pub fn config(&self) -> Result<BuilderConfig, Error> {
        let since = self.object.now();
        // SAFETY: no arguments.
        let pointer = unsafe { call!(self.object, builder::CREATE_BUILDER_CONFIG) };
        Ok(BuilderConfig::new(self.object.child(Kind::Owned, "builder configuration", pointer, since)?, &self.object))
    }

    /// An empty range of shapes.
    pub fn profile(&self) -> Result<OptimizationProfile, Error> {
        let since = self.object.now();
        // SAFETY: no arguments.
        let pointer = unsafe { call!(self.object, builder::CREATE_OPTIMIZATION_PROFILE) };
        Ok(OptimizationProfile::new(self.object.child(Kind::Borrowed, "optimisation profile", pointer, since)?))
    }

    /// Builds an engine. The error carries what TensorRT said meanwhile.
    pub fn build(&mut self, network: &Network, config: &BuilderConfig) -> Result<HostMemory, Error> {
        let since = self.object.now();
        // SAFETY: network and configuration outlive the call, and they keep what they were given.
        let pointer = unsafe {
            let (network, config) = (network.object.public(), config.object.public());
            call!(self.object, builder::BUILD_SERIALIZED_NETWORK, network, config)
        };
        match self.object.product("engine", pointer, since) {
            Err(Error::NotCreated { log, .. }) => Err(Error::Refused { what: "to build the engine".to_owned(), log }),
            engine => Ok(HostMemory::new(engine?)),
        }
    }
}
