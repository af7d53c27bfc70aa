//! How long a command waits for another measurement on the machine: part of every command that times something.

use clap::Args;

use prony_plan::options::Seconds;

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct WaitArgs {
    /// Give up with exit code 1 if another measurement on this machine does not end within this time [default: wait until it
    /// ends]
    #[arg(long, value_name = "TIME", help_heading = "Machine")]
    pub(crate) wait: Option<Seconds>,

    /// Give up at once if there is another measurement on this machine. Measurements in other containers (network
    /// namespaces) are not seen
    #[arg(long, help_heading = "Machine", conflicts_with = "wait")]
    pub(crate) no_wait: bool,
}
