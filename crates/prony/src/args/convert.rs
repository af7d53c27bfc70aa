//! Arguments of `prony convert`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// A model file (.onnx, .pt), or builtin-rgb, builtin-thermal
    pub(crate) model: String,
}
