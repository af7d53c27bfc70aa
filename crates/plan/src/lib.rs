//! What was asked for: options as flags and as keys of a plan file, from text to types that cannot be wrong. Deciding what
//! they mean on this machine is still the binary's (`prony/src/resolve`).

pub mod engine_options;
pub mod gate_options;
pub mod images;
pub mod options;
