//! TensorRT without its headers: `libnvinfer` is opened with dlopen and its objects are called by the position of their
//! methods. The only room that knows the C++ ABI.
//!
//! A [`Library`] says which major it is, and with that the tables say where each method is and since
//! which version; a younger method is refused, never called. Nothing is created without a [`Driver`] that was checked,
//! because without one TensorRT crashes or answers with an address that is none. Every wrapper holds its parent, so
//! children always go first, and a clone of each callback object that it was given.
#![expect(unsafe_code, reason = "calls a C++ library by the slots of its tables")]

mod builder;
mod callback;
mod config;
mod context;
mod driver;
mod dtype;
mod engine;
mod error;
mod inspector;
mod library;
mod loader;
mod memory;
mod network;
mod object;
mod parse;
mod parser;
mod pointer;
mod profile;
mod runtime;
mod shape;
mod tables;
mod timing;
mod version;

pub use builder::Builder;
pub use callback::{
    BuildListener, Calibration, Calibrator, DeviceAllocator, EngineReader, ErrorRecorder, GpuAllocator, Logger,
    OutputAllocator, OutputMemory, Profiler, ProgressMonitor, Severity, StreamReader,
};
pub use config::{BuilderConfig, Flag, Pool};
pub use context::Context;
pub use driver::Driver;
pub use dtype::{DataType, IoTensor};
pub use engine::Engine;
pub use error::{Error, ParseError};
pub use inspector::Inspector;
pub use library::Library;
pub use memory::HostMemory;
pub use network::Network;
pub use parser::{Parser, ParserLibrary};
pub use profile::{OptimizationProfile, Selector};
pub use runtime::Runtime;
pub use timing::TimingCache;
pub use version::{Family, Version};
