//! The work of a worker: load, cold start, warm-up, the timed loop in rounds, throughput, checks.
//!
//! A worker is a child process of the same binary. It reads a [`Job`](prony_types::Job) and then commands on its
//! stdin, writes events to the pipe that was its stdout, and puts samples into a shared ring. It knows no store, no
//! report and no terminal.

pub mod agreement;
mod channel;
mod clock;
mod consistency;
mod digest;
mod evaluate;
mod failure;
mod frames;
mod measure;
mod outputs;
pub mod parts;
mod planned;
mod reference;
mod ring;
pub mod tensors;
mod trtexec;
mod worker;

pub use clock::now_ns;
pub use digest::outputs_sha256;
pub use measure::WARMUP_LIMIT_S;
pub use reference::reference_by;
pub use ring::{RingError, RingReader, RingWriter, Shared};
pub use worker::run_worker;
