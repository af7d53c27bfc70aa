//! `prony convert`.

use prony_types::ExitCode;

use crate::args::ConvertArgs;

pub(crate) fn convert(args: &ConvertArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("{}: not there yet", args.model)
}
