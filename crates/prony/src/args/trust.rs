//! Which libraries a command may open. No plan file decides that: it may come from somebody else.

use clap::Args;

use super::Verb;
use prony_runtimes::policy::Policy;

/// Part of every command that opens libraries.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct TrustArgs {
    /// Open libraries and programs even if other users own them or may write to them or to a folder above them; the report
    /// says which
    #[arg(long, help_heading = "Runtimes")]
    pub(crate) trust_library: bool,
}

/// Part of every command that can do without libraries.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LibrariesArgs {
    #[command(flatten)]
    pub(crate) trust: TrustArgs,

    /// Open no library and run no program: what is found is listed, and only rten can run a model
    #[arg(long, help_heading = "Runtimes", conflicts_with = "trust_library")]
    pub(crate) no_libraries: bool,
}

impl TrustArgs {
    const fn policy(self) -> Policy {
        if self.trust_library { Policy::TrustAll } else { Policy::OwnOnly }
    }
}

impl LibrariesArgs {
    /// Whether any of the flags was given.
    pub(crate) const fn given(self) -> bool {
        self.no_libraries || self.trust.trust_library
    }

    const fn policy(self) -> Policy {
        if self.no_libraries { Policy::OpenNone } else { self.trust.policy() }
    }
}

impl Verb {
    /// What the flags of a command let it open.
    pub(crate) fn policy(&self) -> Policy {
        match self {
            Verb::Bench(args) => args.libraries.policy(),
            Verb::Eval(args) => args.libraries.policy(),
            Verb::Inspect(args) => args.libraries.policy(),
            Verb::Doctor(args) => args.libraries.policy(),
            Verb::Run(args) => args.trust.policy(),
            Verb::Quantize(args) => args.trust.policy(),
            Verb::Build(args) => args.trust.policy(),
            Verb::CompareOutputs(args) => args.trust.policy(),
            Verb::Export(_)
            | Verb::Convert(_)
            | Verb::Cache(_)
            | Verb::Data(_)
            | Verb::Compare(_)
            | Verb::Report(_)
            | Verb::Runtime(_)
            | Verb::Completions(_)
            | Verb::Man(_) => Policy::OwnOnly,
        }
    }
}
