//! `prony export`.

use prony_types::ExitCode;

use crate::args::ExportArgs;

pub(crate) fn export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("{}: not there yet", args.model)
}
