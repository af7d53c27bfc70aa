//! How an engine is to be built.

use std::sync::Arc;

use crate::object::{Held, Kind, Object, call, try_call};
use crate::pointer::Ptr;
use crate::tables::{
    Method, Value, builder_flag, config, device_type, hardware_compatibility_level as compatibility, memory_pool_type,
    profiling_verbosity,
};
use crate::{Calibrator, Error, Family, OptimizationProfile, ProgressMonitor, TimingCache};

/// Something that a build may or must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flag {
    /// May use fp16.
    Fp16,
    /// May use bfloat16.
    Bf16,
    /// May use int8.
    Int8,
    /// May use fp8.
    Fp8,
    /// May use int4 weights.
    Int4,
    /// May use fp4.
    Fp4,
    /// May use TF32 for fp32; on unless cleared.
    Tf32,
    /// Layers that DLA cannot do go to the GPU.
    GpuFallback,
    /// Weights can be replaced.
    Refit,
    /// Weights are left out and refitted when it is loaded.
    StripPlan,
    /// Runs with later versions.
    VersionCompatible,
    /// A version-compatible engine without the lean runtime in it.
    ExcludeLeanRuntime,
    /// May use that weights are sparse.
    SparseWeights,
    /// Fails where types that were set cannot be had.
    ObeyPrecision,
    /// Warns where types that were set cannot be had.
    PreferPrecision,
    /// Measures every tactic anew.
    DisableTimingCache,
}

impl Flag {
    fn value(self) -> &'static Value {
        match self {
            Flag::Fp16 => &builder_flag::FP16,
            Flag::Bf16 => &builder_flag::BF16,
            Flag::Int8 => &builder_flag::INT8,
            Flag::Fp8 => &builder_flag::FP8,
            Flag::Int4 => &builder_flag::INT4,
            Flag::Fp4 => &builder_flag::FP4,
            Flag::Tf32 => &builder_flag::TF32,
            Flag::GpuFallback => &builder_flag::GPU_FALLBACK,
            Flag::Refit => &builder_flag::REFIT,
            Flag::StripPlan => &builder_flag::STRIP_PLAN,
            Flag::VersionCompatible => &builder_flag::VERSION_COMPATIBLE,
            Flag::ExcludeLeanRuntime => &builder_flag::EXCLUDE_LEAN_RUNTIME,
            Flag::SparseWeights => &builder_flag::SPARSE_WEIGHTS,
            Flag::ObeyPrecision => &builder_flag::OBEY_PRECISION_CONSTRAINTS,
            Flag::PreferPrecision => &builder_flag::PREFER_PRECISION_CONSTRAINTS,
            Flag::DisableTimingCache => &builder_flag::DISABLE_TIMING_CACHE,
        }
    }
}

/// Memory that can be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pool {
    /// Scratch memory of a layer.
    Workspace,
    /// SRAM of a DLA core.
    DlaManagedSram,
    /// Host memory that a DLA core uses for intermediate results.
    DlaLocalDram,
    /// Host memory that a DLA core uses for weights.
    DlaGlobalDram,
    /// Device memory that tactics may use while they are measured.
    TacticDram,
    /// Shared memory that tactics may use.
    TacticSharedMemory,
}

impl Pool {
    fn value(self) -> &'static Value {
        match self {
            Pool::Workspace => &memory_pool_type::WORKSPACE,
            Pool::DlaManagedSram => &memory_pool_type::DLA_MANAGED_SRAM,
            Pool::DlaLocalDram => &memory_pool_type::DLA_LOCAL_DRAM,
            Pool::DlaGlobalDram => &memory_pool_type::DLA_GLOBAL_DRAM,
            Pool::TacticDram => &memory_pool_type::TACTIC_DRAM,
            Pool::TacticSharedMemory => &memory_pool_type::TACTIC_SHARED_MEMORY,
        }
    }
}

/// How an engine is to be built.
#[derive(Debug)]
pub struct BuilderConfig {
    pub(crate) object: Held,
    builder: Arc<Object>,
}

impl BuilderConfig {
    pub(crate) fn new(object: Held, builder: &Arc<Object>) -> BuilderConfig {
        BuilderConfig { object, builder: Arc::clone(builder) }
    }

    /// Sets or clears a flag.
    pub fn set_flag(&mut self, flag: Flag, on: bool) -> Result<(), Error> {
        let number = flag.value().number(self.object.version())?;
        let method = if on { config::SET_FLAG } else { config::CLEAR_FLAG };
        // SAFETY: a plain number that this version knows.
        unsafe { call!(self.object, method, number) };
        Ok(())
    }

    /// Before 8.4 the workspace was the one pool and had methods of its own.
    fn old_workspace(&self, pool: Pool) -> bool {
        pool == Pool::Workspace && config::SET_MEMORY_POOL_LIMIT.slot(self.object.version()).is_err()
    }

    /// Limits a pool.
    pub fn set_memory_pool(&mut self, pool: Pool, bytes: u64) -> Result<(), Error> {
        // SAFETY: plain numbers.
        unsafe {
            if self.old_workspace(pool) {
                try_call!(self.object, config::SET_MAX_WORKSPACE_SIZE, bytes);
            } else {
                let number = pool.value().number(self.object.version())?;
                try_call!(self.object, config::SET_MEMORY_POOL_LIMIT, number, bytes);
            }
        }
        Ok(())
    }

    /// The limit of a pool.
    pub fn memory_pool(&self, pool: Pool) -> Result<u64, Error> {
        // SAFETY: a plain number at most.
        Ok(unsafe {
            if self.old_workspace(pool) {
                try_call!(self.object, config::GET_MAX_WORKSPACE_SIZE)
            } else {
                let number = pool.value().number(self.object.version())?;
                try_call!(self.object, config::GET_MEMORY_POOL_LIMIT, number)
            }
        })
    }

    /// How hard to look for fast tactics, 0 to 5; since 8.6.
    pub fn set_optimization_level(&mut self, level: i32) -> Result<(), Error> {
        self.set_number(&config::SET_BUILDER_OPTIMIZATION_LEVEL, level)
    }

    /// Libraries that tactics may come from, as a mask whose bits differ between majors; 0 is none but TensorRT's own.
    pub fn set_tactic_sources(&mut self, sources: u32) -> Result<bool, Error> {
        // SAFETY: a plain number.
        Ok(unsafe { call!(self.object, config::SET_TACTIC_SOURCES, sources) })
    }

    /// Adds a range of shapes and returns its number.
    pub fn add_profile(&mut self, profile: OptimizationProfile) -> Result<i32, Error> {
        let since = self.object.now();
        // SAFETY: the profile is the builder's, which the configuration keeps.
        let index = unsafe { call!(self.object, config::ADD_OPTIMIZATION_PROFILE, profile.object.public()) };
        drop(profile);
        if index < 0 { Err(self.object.refused("an optimisation profile", since)) } else { Ok(index) }
    }

    /// The shapes to calibrate with, where they are free; 8.x and 10.x.
    pub fn set_calibration_profile(&mut self, profile: &OptimizationProfile) -> Result<(), Error> {
        let since = self.object.now();
        // SAFETY: the profile is the builder's, which the configuration keeps.
        let done = unsafe { try_call!(self.object, config::SET_CALIBRATION_PROFILE, profile.object.public()) };
        self.object.accepted(done, || "a calibration profile".to_owned(), since)
    }

    /// Who gives batches for int8; 8.x and 10.x.
    pub fn set_calibrator(&mut self, calibrator: &Calibrator) -> Result<(), Error> {
        let pointer = calibrator.object(self.object.family());
        self.object.keep(pointer, calibrator.clone());
        self.give(&config::SET_INT8_CALIBRATOR, pointer)
    }

    /// A timing cache from an earlier build's bytes, or an empty one.
    pub fn timing_cache(&self, bytes: &[u8]) -> Result<TimingCache, Error> {
        let data: Ptr = if bytes.is_empty() { std::ptr::null_mut() } else { bytes.as_ptr().cast_mut().cast() };
        let since = self.object.now();
        // SAFETY: the bytes outlive the call and are only read.
        let pointer = unsafe { call!(self.object, config::CREATE_TIMING_CACHE, data, bytes.len() as u64) };
        // A child of the builder: the configuration keeps the cache, and two that keep each other would stay for ever.
        Ok(TimingCache::new(self.builder.child(Kind::Owned, "timing cache", pointer, since)?))
    }

    /// Uses a timing cache. One of another device is refused unless `ignore_mismatch`.
    pub fn set_timing_cache(&mut self, cache: &TimingCache, ignore_mismatch: bool) -> Result<(), Error> {
        let pointer = cache.object.public();
        self.object.keep(pointer, Arc::clone(&cache.object));
        let since = self.object.now();
        // SAFETY: the configuration keeps the cache.
        let done = unsafe { call!(self.object, config::SET_TIMING_CACHE, pointer, ignore_mismatch) };
        self.object.accepted(done, || "the timing cache".to_owned(), since)
    }

    /// Whether the engine can tell everything about its layers.
    pub fn set_detailed_profiling(&mut self, detailed: bool) -> Result<(), Error> {
        let value = if detailed { &profiling_verbosity::DETAILED } else { &profiling_verbosity::LAYER_NAMES_ONLY };
        let number = value.number(self.object.version())?;
        // SAFETY: a plain number that this version knows.
        unsafe { call!(self.object, config::SET_PROFILING_VERBOSITY, number) };
        Ok(())
    }

    /// Puts every layer on a DLA core.
    pub fn set_dla(&mut self, core: i32) -> Result<(), Error> {
        let number = device_type::DLA.number(self.object.version())?;
        // SAFETY: plain numbers.
        unsafe {
            call!(self.object, config::SET_DEFAULT_DEVICE_TYPE, number);
            call!(self.object, config::SET_DLA_CORE, core);
        }
        Ok(())
    }

    /// Who hears of the progress; since 10.0.
    pub fn set_progress_monitor(&mut self, monitor: &ProgressMonitor) -> Result<(), Error> {
        let pointer = monitor.object(self.object.family());
        self.object.keep(pointer, monitor.clone());
        self.give(&config::SET_PROGRESS_MONITOR, pointer)
    }

    /// Whether the engine runs on every GPU since Ampere, more slowly; since 8.6.
    pub fn set_hardware_compatibility(&mut self, ampere_plus: bool) -> Result<(), Error> {
        let value = if ampere_plus { &compatibility::AMPERE_PLUS } else { &compatibility::NONE };
        let number = value.number(self.object.version())?;
        self.set_number(&config::SET_HARDWARE_COMPATIBILITY_LEVEL, number)
    }

    /// Streams that an inference may use beside its own; since 8.6.
    pub fn set_max_aux_streams(&mut self, streams: i32) -> Result<(), Error> {
        if self.object.family() != Family::V11 {
            return self.set_number(&config::SET_MAX_AUX_STREAMS, streams);
        }
        let since = self.object.now();
        // SAFETY: a plain number.
        let done = unsafe { try_call!(self.object, config::SET_MAX_AUX_STREAMS_11, streams) };
        self.object.accepted(done, || format!("{streams} auxiliary streams"), since)
    }

    /// Measurements that are averaged for a tactic.
    pub fn set_avg_timing_iterations(&mut self, iterations: i32) -> Result<(), Error> {
        // SAFETY: a plain number; TensorRT checks it and logs.
        unsafe { call!(self.object, config::SET_AVG_TIMING_ITERATIONS, iterations) };
        Ok(())
    }

    fn set_number(&self, method: &Method<unsafe extern "C" fn(Ptr, i32)>, number: i32) -> Result<(), Error> {
        // SAFETY: a method of the configuration with a plain number.
        unsafe { try_call!(self.object, *method, number) };
        Ok(())
    }

    /// Hands over an object of ours that the configuration keeps.
    fn give(&self, method: &Method<unsafe extern "C" fn(Ptr, Ptr)>, ours: Ptr) -> Result<(), Error> {
        // SAFETY: a method of the configuration that takes such an object.
        unsafe { try_call!(self.object, *method, ours) };
        Ok(())
    }
}
