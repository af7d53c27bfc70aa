//! Arguments of `prony quantize`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct QuantizeArgs {
    /// A model file (.onnx, .pt), or builtin-rgb, builtin-thermal
    pub(crate) model: String,
}
