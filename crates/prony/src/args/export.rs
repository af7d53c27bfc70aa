//! Arguments of `prony export`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// A checkpoint (.pt)
    pub(crate) model: String,
}
