//! `prony quantize`.

use prony_types::ExitCode;

use crate::args::QuantizeArgs;

pub(crate) fn quantize(args: &QuantizeArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("{}: not there yet", args.model)
}
