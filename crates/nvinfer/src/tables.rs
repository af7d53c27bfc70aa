//! Where every method is that we call, and what every number means that we pass.
//!
//! A line names a method, its signature (without the object itself) and its slot in 8.x, 10.x and 11.x: `-` where the
//! major has none, `20 @ (6, 0)` where it came with x.6.0 and not with the major's first version. Reading past the end of
//! a table of functions cannot be noticed, so the `since` decides before anything is read. `facts.json` holds the same
//! numbers as they were found in TensorRT's releases; a test compares both.

use std::marker::PhantomData;

use crate::pointer::{Ptr, Str};
use crate::shape::{Dims32, Dims64};
use crate::{Error, Family, Version};

/// A slot or a value in one major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) number: i32,
    pub(crate) since: Version,
}

/// The same thing in 8.x, 10.x and 11.x.
pub(crate) type Places = [Option<At>; 3];

/// The entry that counts for a version.
fn place(places: &Places, version: Version, what: impl FnOnce() -> String) -> Result<i32, Error> {
    let family = Family::of(version).map(|family| family as usize);
    match family.and_then(|family| places[family]) {
        Some(at) if version.at_least(at.since) => Ok(at.number),
        Some(at) => Err(Error::TooOld { what: what(), since: at.since, version }),
        None => Err(Error::Unsupported { what: what(), version }),
    }
}

/// A method that not every version has. `F` is its signature with the object in front.
pub(crate) struct Method<F> {
    class: &'static str,
    name: &'static str,
    places: Places,
    signature: PhantomData<F>,
}

impl<F> Method<F> {
    const fn new(class: &'static str, name: &'static str, places: Places) -> Method<F> {
        Method { class, name, places, signature: PhantomData }
    }

    /// Its slot, where the version has it.
    pub(crate) fn slot(&self, version: Version) -> Result<usize, Error> {
        let slot = place(&self.places, version, || format!("{}.{}", self.class, self.name))?;
        Ok(slot.unsigned_abs() as usize)
    }
}

/// A method that every version has.
pub(crate) struct Everywhere<F> {
    slots: [usize; 3],
    signature: PhantomData<F>,
}

impl<F> Everywhere<F> {
    /// Does not compile where a version has it not.
    const fn new(_class: &'static str, _name: &'static str, places: Places) -> Everywhere<F> {
        let mut slots = [0; 3];
        let families = [Family::V8, Family::V10, Family::V11];
        let mut i = 0;
        while i < 3 {
            match places[i] {
                Some(at) if families[i].first().at_least(at.since) => slots[i] = at.number.unsigned_abs() as usize,
                _ => panic!("not every version has this method"),
            }
            i += 1;
        }
        Everywhere { slots, signature: PhantomData }
    }

    /// Its slot.
    pub(crate) fn slot(&self, family: Family) -> usize {
        self.slots[family as usize]
    }
}

/// A value of an enum.
#[derive(Debug)]
pub(crate) struct Value {
    class: &'static str,
    name: &'static str,
    places: Places,
}

impl Value {
    /// Its number, where the version knows it.
    pub(crate) fn number(&self, version: Version) -> Result<i32, Error> {
        place(&self.places, version, || format!("{}::{}", self.class, self.name))
    }

    /// Whether some major has this number for it.
    pub(crate) fn is(&self, number: i32) -> bool {
        self.places.iter().flatten().any(|at| at.number == number)
    }
}

/// A line of a table, for the comparison with the facts.
#[cfg(test)]
pub(crate) struct Row {
    pub(crate) class: &'static str,
    pub(crate) name: &'static str,
    /// Empty for values.
    pub(crate) signature: &'static str,
    pub(crate) places: Places,
}

/// One cell of a line.
macro_rules! cell {
    ($family:ident, -) => {
        None
    };
    ($family:ident, $number:literal) => {
        Some(At { number: $number, since: Family::$family.first() })
    };
    ($family:ident, $number:literal, ($minor:literal, $patch:literal)) => {
        Some(At { number: $number, since: Version::new(Family::$family.first().major, $minor, $patch) })
    };
}

/// The three cells of a line.
macro_rules! places {
    ($a:tt $(@ $since_a:tt)?, $b:tt $(@ $since_b:tt)?, $c:tt $(@ $since_c:tt)?) => {
        [cell!(V8, $a $(, $since_a)?), cell!(V10, $b $(, $since_b)?), cell!(V11, $c $(, $since_c)?)]
    };
}

macro_rules! methods {
    ($($module:ident $class:literal {
        $($kind:ident $constant:ident: $name:literal fn($($arg:ty),*) $(-> $ret:ty)? [$($places:tt)*];)*
    })*) => {
        $(
            #[doc = concat!("Methods of `", $class, "`.")]
            pub(crate) mod $module {
                use super::*;

                $(
                    pub(crate) const $constant: $kind<unsafe extern "C" fn(Ptr $(, $arg)*) $(-> $ret)?> =
                        $kind::new($class, $name, places!($($places)*));
                )*
            }
        )*

        /// Every line.
        #[cfg(test)]
        pub(crate) const METHODS: &[Row] = &[$($(
            Row {
                class: $class,
                name: $name,
                signature: stringify!(fn($($arg),*) $(-> $ret)?),
                places: places!($($places)*),
            },
        )*)*];
    };
}

macro_rules! values {
    ($($module:ident $class:literal { $($constant:ident: $name:literal [$($places:tt)*];)* })*) => {
        $(
            #[doc = concat!("Values of `", $class, "`.")]
            pub(crate) mod $module {
                use super::*;

                $(
                    pub(crate) static $constant: Value =
                        Value { class: $class, name: $name, places: places!($($places)*) };
                )*
            }
        )*

        /// Every line.
        #[cfg(test)]
        pub(crate) const VALUES: &[Row] = &[$($(
            Row { class: $class, name: $name, signature: "", places: places!($($places)*) },
        )*)*];
    };
}

methods! {
    runtime "VRuntime" {
        Method DESERIALIZE_CUDA_ENGINE_8: "deserializeCudaEngine" fn(Ptr, u64, Ptr) -> Ptr [2, -, -];
        Method DESERIALIZE_CUDA_ENGINE: "deserializeCudaEngine" fn(Ptr, u64) -> Ptr [-, 3, 3];
        Method DESERIALIZE_CUDA_ENGINE_STREAM: "deserializeCudaEngine(IStreamReader)" fn(Ptr) -> Ptr [-, 4, -];
        Everywhere SET_DLA_CORE: "setDLACore" fn(i32) [3, 5, 4];
        Everywhere SET_GPU_ALLOCATOR: "setGpuAllocator" fn(Ptr) [6, 8, 7];
        Everywhere SET_ERROR_RECORDER: "setErrorRecorder" fn(Ptr) [7, 9, 8];
        Method SET_MAX_THREADS: "setMaxThreads" fn(i32) -> bool [10 @ (4, 1), 12, 11];
        Method SET_ENGINE_HOST_CODE_ALLOWED: "setEngineHostCodeAllowed" fn(bool) [20 @ (6, 0), 21, 20];
    }
    engine "VCudaEngine" {
        Everywhere GET_NB_LAYERS: "getNbLayers" fn() -> i32 [9, 3, 3];
        Everywhere SERIALIZE: "serialize" fn() -> Ptr [10, 4, 4];
        Method CREATE_EXECUTION_CONTEXT_8: "createExecutionContext" fn() -> Ptr [11, -, -];
        Method CREATE_EXECUTION_CONTEXT: "createExecutionContext" fn(i32) -> Ptr [-, 5, 5];
        Method GET_DEVICE_MEMORY_SIZE: "getDeviceMemorySize" fn() -> u64 [14, 7, -];
        Method GET_DEVICE_MEMORY_SIZE_V2: "getDeviceMemorySizeV2" fn() -> i64 [-, 52 @ (1, 0), 44];
        Everywhere IS_REFITTABLE: "isRefittable" fn() -> bool [15, 8, 6];
        Everywhere GET_NAME: "getName" fn() -> Str [21, 9, 7];
        Everywhere GET_NB_OPTIMIZATION_PROFILES: "getNbOptimizationProfiles" fn() -> i32 [22, 10, 8];
        Method HAS_IMPLICIT_BATCH_DIMENSION: "hasImplicitBatchDimension" fn() -> bool [30, 15, -];
        Method CREATE_ENGINE_INSPECTOR: "createEngineInspector" fn() -> Ptr [33 @ (2, 1), 18, 14];
        Method GET_TENSOR_SHAPE_8: "getTensorShape" fn(Str) -> Dims32 [34 @ (5, 1), -, -];
        Method GET_TENSOR_SHAPE: "getTensorShape" fn(Str) -> Dims64 [-, 19, 15];
        Method GET_TENSOR_DATA_TYPE: "getTensorDataType" fn(Str) -> i32 [35 @ (5, 1), 20, 16];
        Method GET_TENSOR_LOCATION: "getTensorLocation" fn(Str) -> i32 [36 @ (5, 1), 21, 17];
        Method GET_TENSOR_IO_MODE: "getTensorIOMode" fn(Str) -> i32 [38 @ (5, 1), 23, 19];
        Method GET_TENSOR_COMPONENTS_PER_ELEMENT: "getTensorComponentsPerElement" fn(Str) -> i32 [40 @ (5, 1), 25, 21];
        Method GET_TENSOR_FORMAT: "getTensorFormat" fn(Str) -> i32 [41 @ (5, 1), 26, 22];
        Method GET_TENSOR_VECTORIZED_DIM: "getTensorVectorizedDim" fn(Str) -> i32 [43 @ (5, 1), 28, 24];
        Method GET_PROFILE_SHAPE_8: "getProfileShape" fn(Str, i32, i32) -> Dims32 [44 @ (5, 1), -, -];
        Method GET_PROFILE_SHAPE: "getProfileShape" fn(Str, i32, i32) -> Dims64 [-, 29, 25];
        Method GET_NB_IO_TENSORS: "getNbIOTensors" fn() -> i32 [45 @ (5, 1), 30, 26];
        Method GET_IO_TENSOR_NAME: "getIOTensorName" fn(i32) -> Str [46 @ (5, 1), 31, 27];
        Method GET_NB_BINDINGS: "getNbBindings" fn() -> i32 [2, -, -];
        Method GET_BINDING_NAME: "getBindingName" fn(i32) -> Str [4, -, -];
        Method BINDING_IS_INPUT: "bindingIsInput" fn(i32) -> bool [5, -, -];
        Method GET_BINDING_DIMENSIONS: "getBindingDimensions" fn(i32) -> Dims32 [6, -, -];
        Method GET_BINDING_DATA_TYPE: "getBindingDataType" fn(i32) -> i32 [7, -, -];
        Method GET_LOCATION: "getLocation" fn(i32) -> i32 [12, -, -];
        Method GET_BINDING_COMPONENTS_PER_ELEMENT: "getBindingComponentsPerElement" fn(i32) -> i32 [17, -, -];
        Method GET_BINDING_FORMAT: "getBindingFormat" fn(i32) -> i32 [18, -, -];
        Method GET_BINDING_VECTORIZED_DIM: "getBindingVectorizedDim" fn(i32) -> i32 [20, -, -];
        Method GET_PROFILE_DIMENSIONS: "getProfileDimensions" fn(i32, i32, i32) -> Dims32 [23, -, -];
    }
    context "VExecutionContext" {
        Everywhere SET_PROFILER: "setProfiler" fn(Ptr) [6, 5, 5];
        Everywhere SET_OPTIMIZATION_PROFILE_ASYNC: "setOptimizationProfileAsync" fn(i32, Ptr) -> bool [25, 17, 16];
        Method SET_ENQUEUE_EMITS_PROFILE: "setEnqueueEmitsProfile" fn(bool) [26 @ (2, 1), 18, 17];
        Method REPORT_TO_PROFILER: "reportToProfiler" fn() -> bool [28 @ (2, 1), 20, 19];
        Method SET_INPUT_SHAPE: "setInputShape" fn(Str, Ptr) -> bool [29 @ (5, 1), 21, 20];
        Method GET_TENSOR_SHAPE_8: "getTensorShape" fn(Str) -> Dims32 [30 @ (5, 1), -, -];
        Method GET_TENSOR_SHAPE: "getTensorShape" fn(Str) -> Dims64 [-, 22, 21];
        Method SET_TENSOR_ADDRESS: "setTensorAddress" fn(Str, Ptr) -> bool [32 @ (5, 1), 24, 23];
        Method INFER_SHAPES: "inferShapes" fn(i32, Ptr) -> i32 [35 @ (5, 1), 28, 27];
        Method SET_OUTPUT_ALLOCATOR: "setOutputAllocator" fn(Str, Ptr) -> bool [39 @ (5, 1), 32, 31];
        Method GET_MAX_OUTPUT_SIZE: "getMaxOutputSize" fn(Str) -> i64 [41 @ (5, 1), 34, 33];
        Method ENQUEUE_V3: "enqueueV3" fn(Ptr) -> bool [44 @ (5, 1), 37, 36];
        Method SET_BINDING_DIMENSIONS: "setBindingDimensions" fn(i32, Dims32) -> bool [15, -, -];
        Method GET_BINDING_DIMENSIONS: "getBindingDimensions" fn(i32) -> Dims32 [16, -, -];
        Everywhere ALL_INPUT_DIMENSIONS_SPECIFIED: "allInputDimensionsSpecified" fn() -> bool [19, 12, 12];
        Method ALL_INPUT_SHAPES_SPECIFIED: "allInputShapesSpecified" fn() -> bool [20, 13, -];
        Method ENQUEUE_V2: "enqueueV2" fn(Ptr, Ptr, Ptr) -> bool [24, -, -];
    }
    inspector "VEngineInspector" {
        Method SET_EXECUTION_CONTEXT: "setExecutionContext" fn(Ptr) -> bool [2 @ (2, 1), 3, 3];
        Method GET_ENGINE_INFORMATION: "getEngineInformation" fn(i32) -> Str [5 @ (2, 1), 6, 6];
    }
    builder "VBuilder" {
        Method PLATFORM_HAS_FAST_FP16: "platformHasFastFp16" fn() -> bool [4, 2, -];
        Method PLATFORM_HAS_FAST_INT8: "platformHasFastInt8" fn() -> bool [5, 3, -];
        Everywhere GET_NB_DLA_CORES: "getNbDLACores" fn() -> i32 [7, 5, 3];
        Everywhere SET_GPU_ALLOCATOR: "setGpuAllocator" fn(Ptr) [8, 6, 4];
        Everywhere CREATE_BUILDER_CONFIG: "createBuilderConfig" fn() -> Ptr [9, 7, 5];
        Everywhere CREATE_NETWORK_V2: "createNetworkV2" fn(u32) -> Ptr [11, 8, 6];
        Everywhere CREATE_OPTIMIZATION_PROFILE: "createOptimizationProfile" fn() -> Ptr [12, 9, 7];
        Everywhere SET_ERROR_RECORDER: "setErrorRecorder" fn(Ptr) [13, 10, 8];
        Everywhere BUILD_SERIALIZED_NETWORK: "buildSerializedNetwork" fn(Ptr, Ptr) -> Ptr [17, 14, 11];
        Method SET_MAX_THREADS: "setMaxThreads" fn(i32) -> bool [20 @ (4, 1), 17, 14];
    }
    config "VBuilderConfig" {
        Everywhere SET_AVG_TIMING_ITERATIONS: "setAvgTimingIterations" fn(i32) [4, 2, 2];
        Method SET_INT8_CALIBRATOR: "setInt8Calibrator" fn(Ptr) [8, 6, -];
        Method SET_MAX_WORKSPACE_SIZE: "setMaxWorkspaceSize" fn(u64) [10, -, -];
        Method GET_MAX_WORKSPACE_SIZE: "getMaxWorkspaceSize" fn() -> u64 [11, -, -];
        Everywhere CLEAR_FLAG: "clearFlag" fn(i32) [14, 10, 8];
        Everywhere SET_FLAG: "setFlag" fn(i32) [15, 11, 9];
        Everywhere SET_DLA_CORE: "setDLACore" fn(i32) [22, 18, 16];
        Everywhere SET_DEFAULT_DEVICE_TYPE: "setDefaultDeviceType" fn(i32) [24, 20, 18];
        Everywhere ADD_OPTIMIZATION_PROFILE: "addOptimizationProfile" fn(Ptr) -> i32 [29, 25, 23];
        Everywhere SET_PROFILING_VERBOSITY: "setProfilingVerbosity" fn(i32) [31, 27, 25];
        Method SET_CALIBRATION_PROFILE: "setCalibrationProfile" fn(Ptr) -> bool [35, 31, -];
        Everywhere SET_TACTIC_SOURCES: "setTacticSources" fn(u32) -> bool [42, 38, 27];
        Everywhere CREATE_TIMING_CACHE: "createTimingCache" fn(Ptr, u64) -> Ptr [44, 40, 29];
        Everywhere SET_TIMING_CACHE: "setTimingCache" fn(Ptr, bool) -> bool [45, 41, 30];
        Method SET_MEMORY_POOL_LIMIT: "setMemoryPoolLimit" fn(i32, u64) [47 @ (4, 1), 43, 32];
        Method GET_MEMORY_POOL_LIMIT: "getMemoryPoolLimit" fn(i32) -> u64 [48 @ (4, 1), 44, 33];
        Method SET_BUILDER_OPTIMIZATION_LEVEL: "setBuilderOptimizationLevel" fn(i32) [51 @ (6, 0), 47, 36];
        Method SET_HARDWARE_COMPATIBILITY_LEVEL: "setHardwareCompatibilityLevel" fn(i32) [53 @ (6, 0), 49, 38];
        Method SET_MAX_AUX_STREAMS: "setMaxAuxStreams" fn(i32) [58 @ (6, 0), 54, -];
        Method SET_MAX_AUX_STREAMS_11: "setMaxAuxStreams" fn(i32) -> bool [-, -, 43];
        Method SET_PROGRESS_MONITOR: "setProgressMonitor" fn(Ptr) [-, 56, 45];
    }
    network "VNetworkDefinition" {
        Everywhere GET_NB_LAYERS: "getNbLayers" fn() -> i32 [17, 12, 12];
        Everywhere GET_NB_INPUTS: "getNbInputs" fn() -> i32 [19, 14, 14];
        Everywhere GET_INPUT: "getInput" fn(i32) -> Ptr [20, 15, 15];
        Everywhere GET_NB_OUTPUTS: "getNbOutputs" fn() -> i32 [21, 16, 16];
        Everywhere GET_OUTPUT: "getOutput" fn(i32) -> Ptr [22, 17, 17];
    }
    tensor "VTensor" {
        Everywhere GET_NAME: "getName" fn() -> Str [3, 3, 3];
        Method GET_DIMENSIONS_8: "getDimensions" fn() -> Dims32 [5, -, -];
        Method GET_DIMENSIONS: "getDimensions" fn() -> Dims64 [-, 5, 5];
        Everywhere GET_TYPE: "getType" fn() -> i32 [7, 7, 6];
        Everywhere GET_LOCATION: "getLocation" fn() -> i32 [13, 13, 11];
        Everywhere GET_ALLOWED_FORMATS: "getAllowedFormats" fn() -> u32 [20, 20, 14];
    }
    memory "VHostMemory" {
        Everywhere DATA: "data" fn() -> Ptr [2, 2, 2];
        Everywhere SIZE: "size" fn() -> u64 [3, 3, 3];
    }
    profile "VOptimizationProfile" {
        Method SET_DIMENSIONS_8: "setDimensions" fn(Str, i32, Dims32) -> bool [2, -, -];
        Method SET_DIMENSIONS: "setDimensions" fn(Str, i32, Ptr) -> bool [-, 2, 2];
        Everywhere IS_VALID: "isValid" fn() -> bool [9, 9, 7];
    }
    timing "VTimingCache" {
        Everywhere SERIALIZE: "serialize" fn() -> Ptr [2, 2, 2];
        Everywhere COMBINE: "combine" fn(Ptr, bool) -> bool [3, 3, 3];
    }
    parser "IParser" {
        Everywhere PARSE: "parse" fn(Ptr, u64, Str) -> bool [0, 0, 0];
        Everywhere PARSE_FROM_FILE: "parseFromFile" fn(Str, i32) -> bool [1, 1, 1];
        Everywhere GET_NB_ERRORS: "getNbErrors" fn() -> i32 [6, 5, 3];
        Everywhere GET_ERROR: "getError" fn(i32) -> Ptr [7, 6, 4];
        Everywhere DELETE: "~deleting" fn() [10, 9, 7];
    }
    parser_error "IParserError" {
        Everywhere CODE: "code" fn() -> i32 [0, 0, 0];
        Everywhere DESC: "desc" fn() -> Str [1, 1, 1];
        Everywhere NODE: "node" fn() -> i32 [5, 5, 5];
        Method NODE_NAME: "nodeName" fn() -> Str [-, 6, 6];
        Method NODE_OPERATOR: "nodeOperator" fn() -> Str [-, 7, 7];
    }
}

values! {
    builder_flag "BuilderFlag" {
        FP16: "kFP16" [0 @ (2, 1), 0, -];
        BF16: "kBF16" [-, 17, -];
        INT8: "kINT8" [1 @ (2, 1), 1, -];
        FP8: "kFP8" [17 @ (6, 0), 15, -];
        INT4: "kINT4" [-, 22 @ (3, 0), -];
        FP4: "kFP4" [-, 26 @ (8, 0), -];
        TF32: "kTF32" [7 @ (2, 1), 6, 6];
        GPU_FALLBACK: "kGPU_FALLBACK" [3 @ (2, 1), 3, 3];
        REFIT: "kREFIT" [5 @ (2, 1), 4, 4];
        STRIP_PLAN: "kSTRIP_PLAN" [-, 19, 18];
        VERSION_COMPATIBLE: "kVERSION_COMPATIBLE" [15 @ (6, 0), 13, 12];
        EXCLUDE_LEAN_RUNTIME: "kEXCLUDE_LEAN_RUNTIME" [16 @ (6, 0), 14, 13];
        SPARSE_WEIGHTS: "kSPARSE_WEIGHTS" [8 @ (2, 1), 7, 7];
        OBEY_PRECISION_CONSTRAINTS: "kOBEY_PRECISION_CONSTRAINTS" [10 @ (2, 1), 9, -];
        PREFER_PRECISION_CONSTRAINTS: "kPREFER_PRECISION_CONSTRAINTS" [11 @ (2, 1), 10, -];
        DISABLE_TIMING_CACHE: "kDISABLE_TIMING_CACHE" [6 @ (2, 1), 5, 5];
    }
    network_definition_creation_flag "NetworkDefinitionCreationFlag" {
        EXPLICIT_BATCH: "kEXPLICIT_BATCH" [0 @ (2, 1), 0, -];
        STRONGLY_TYPED: "kSTRONGLY_TYPED" [-, 1, 0];
    }
    memory_pool_type "MemoryPoolType" {
        WORKSPACE: "kWORKSPACE" [0 @ (4, 1), 0, 0];
        DLA_MANAGED_SRAM: "kDLA_MANAGED_SRAM" [1 @ (4, 1), 1, 1];
        DLA_LOCAL_DRAM: "kDLA_LOCAL_DRAM" [2 @ (4, 1), 2, 2];
        DLA_GLOBAL_DRAM: "kDLA_GLOBAL_DRAM" [3 @ (4, 1), 3, 3];
        TACTIC_DRAM: "kTACTIC_DRAM" [4 @ (6, 0), 4, 4];
        TACTIC_SHARED_MEMORY: "kTACTIC_SHARED_MEMORY" [-, 5, 5];
    }
    opt_profile_selector "OptProfileSelector" {
        MIN: "kMIN" [0 @ (2, 1), 0, 0];
        OPT: "kOPT" [1 @ (2, 1), 1, 1];
        MAX: "kMAX" [2 @ (2, 1), 2, 2];
    }
    profiling_verbosity "ProfilingVerbosity" {
        LAYER_NAMES_ONLY: "kLAYER_NAMES_ONLY" [0 @ (2, 1), 0, 0];
        DETAILED: "kDETAILED" [2 @ (2, 1), 2, 2];
    }
    hardware_compatibility_level "HardwareCompatibilityLevel" {
        NONE: "kNONE" [0 @ (6, 0), 0, 0];
        AMPERE_PLUS: "kAMPERE_PLUS" [1 @ (6, 0), 1, 1];
    }
    layer_information_format "LayerInformationFormat" {
        JSON: "kJSON" [1 @ (2, 1), 1, 1];
    }
    execution_context_allocation_strategy "ExecutionContextAllocationStrategy" {
        STATIC: "kSTATIC" [-, 0, 0];
    }
    device_type "DeviceType" {
        DLA: "kDLA" [1 @ (2, 1), 1, 1];
    }
    tensor_location "TensorLocation" {
        HOST: "kHOST" [1 @ (2, 1), 1, 1];
    }
    tensor_io_mode "TensorIOMode" {
        INPUT: "kINPUT" [1 @ (5, 1), 1, 1];
    }
    data_type "DataType" {
        FLOAT: "kFLOAT" [0 @ (2, 1), 0, 0];
        HALF: "kHALF" [1 @ (2, 1), 1, 1];
        INT8: "kINT8" [2 @ (2, 1), 2, 2];
        INT32: "kINT32" [3 @ (2, 1), 3, 3];
        BOOL: "kBOOL" [4 @ (2, 1), 4, 4];
        UINT8: "kUINT8" [5 @ (5, 3), 5, 5];
        FP8: "kFP8" [6 @ (6, 0), 6, 6];
        BF16: "kBF16" [-, 7, 7];
        INT64: "kINT64" [-, 8, 8];
        INT4: "kINT4" [-, 9, 9];
        FP4: "kFP4" [-, 10 @ (8, 0), 10];
        E8M0: "kE8M0" [-, 11 @ (13, 0), 11];
    }
}

#[cfg(test)]
mod tests;
