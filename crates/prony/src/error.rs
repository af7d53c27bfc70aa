//! How a command ends that did not do what was asked for, and the exit code of each way. `main` decides by it and nobody
//! else: at the edge of a command every `?` says what its error is.

use std::fmt;
use std::io;

use prony_backend::BackendError;
use prony_forge::ForgeError;
use prony_source::SourceError;
use prony_store::StoreError;
use prony_types::{ExitCode, FailureKind};

use crate::output::StdoutError;

/// Why a command did not do what was asked for.
#[derive(Debug)]
pub(crate) enum CliError {
    /// Wrong usage or bad input: flags, and files that the user named. Nothing ran.
    Usage(anyhow::Error),
    /// What was asked for failed, or its result could not be written.
    Failed(anyhow::Error),
    /// A limit does not hold. The result was printed and says which.
    Gate,
    /// The user gave up; what became of the work, where that is worth a line.
    Interrupted(Option<String>),
}

impl CliError {
    /// The exit code of each kind.
    pub(crate) fn code(&self) -> ExitCode {
        match self {
            CliError::Usage(_) => ExitCode::Usage,
            CliError::Failed(_) => ExitCode::CellFailed,
            CliError::Gate => ExitCode::Gate,
            CliError::Interrupted(_) => ExitCode::Interrupted,
        }
    }

    /// Says it to the user.
    pub(crate) fn report(&self) {
        match self {
            CliError::Usage(error) | CliError::Failed(error) => say!("error: {error:#}"),
            CliError::Interrupted(Some(text)) => say!("{text}"),
            CliError::Gate | CliError::Interrupted(None) => {}
        }
    }

    /// The user gave up, and there is this to know.
    pub(crate) fn interrupted(text: impl Into<String>) -> CliError {
        CliError::Interrupted(Some(text.into()))
    }

    /// What the user gave is wrong, or it is the doing of a backend or of the machine.
    fn by_cause(error: anyhow::Error) -> CliError {
        let error = match error.downcast::<CliError>() {
            Ok(own) => return own,
            Err(error) => error,
        };
        let kind = match (error.downcast_ref::<ForgeError>(), error.downcast_ref::<BackendError>()) {
            (Some(error), _) => Some(error.kind()),
            (_, Some(error)) => Some(error.kind()),
            _ => None,
        };
        match kind {
            None | Some(FailureKind::Input | FailureKind::Model) => CliError::Usage(error),
            Some(_) => CliError::Failed(error),
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Usage(error) | CliError::Failed(error) => write!(f, "{error:#}"),
            CliError::Gate => f.write_str("a limit does not hold"),
            CliError::Interrupted(text) => f.write_str(text.as_deref().unwrap_or("interrupted")),
        }
    }
}

impl std::error::Error for CliError {}

/// A result that does not reach its reader: whatever was done, the command failed.
impl From<StdoutError> for CliError {
    fn from(error: StdoutError) -> CliError {
        CliError::Failed(error.into())
    }
}

/// Says what an error is.
pub(crate) trait OrCliError<T> {
    /// Bad input.
    fn usage(self) -> Result<T, CliError>;
    /// A failure.
    fn failed(self) -> Result<T, CliError>;
    /// Bad input, or a failure of the backend: its error knows.
    fn by_cause(self) -> Result<T, CliError>;
}

impl<T, E: Into<anyhow::Error>> OrCliError<T> for Result<T, E> {
    fn usage(self) -> Result<T, CliError> {
        self.map_err(|error| CliError::Usage(error.into()))
    }

    fn failed(self) -> Result<T, CliError> {
        self.map_err(|error| CliError::Failed(error.into()))
    }

    fn by_cause(self) -> Result<T, CliError> {
        self.map_err(|error| CliError::by_cause(error.into()))
    }
}

/// Says what the error of an output is.
pub(crate) trait OrUnwritten<T> {
    /// Bad input where the place that was named cannot hold it; a failure where writing went wrong.
    fn written(self) -> Result<T, CliError>;
}

impl<T> OrUnwritten<T> for Result<T, StoreError> {
    fn written(self) -> Result<T, CliError> {
        self.map_err(|error| match &error {
            StoreError::Io { cause, .. } if !is_wrong_place(cause) => CliError::Failed(error.into()),
            _ => CliError::Usage(error.into()),
        })
    }
}

impl<T> OrUnwritten<T> for Result<T, SourceError> {
    fn written(self) -> Result<T, CliError> {
        self.map_err(|error| match &error {
            SourceError::Io { cause, .. } if !is_wrong_place(cause) => CliError::Failed(error.into()),
            _ => CliError::Usage(error.into()),
        })
    }
}

impl<T> OrUnwritten<T> for anyhow::Result<T> {
    fn written(self) -> Result<T, CliError> {
        self.or_else(|error| match error.downcast::<StoreError>() {
            Ok(error) => Err(error).written(),
            Err(error) => Err(CliError::Failed(error)),
        })
    }
}

/// Whether nothing can be written there: a folder, a socket, a folder that is missing or belongs to others.
pub(crate) fn is_wrong_place(cause: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        cause.kind(),
        Kind::NotFound
            | Kind::NotADirectory
            | Kind::IsADirectory
            | Kind::PermissionDenied
            | Kind::ReadOnlyFilesystem
            | Kind::InvalidInput
            | Kind::InvalidFilename
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(kind: io::ErrorKind) -> StoreError {
        StoreError::Io { action: "write", path: "page.html".into(), cause: kind.into() }
    }

    /// The exit codes that a text names, in its order: numbers at the start of it or behind a semicolon.
    fn codes(text: &str) -> Vec<u8> {
        let parts = text.split(['\n', ';']).flat_map(|part| part.split_whitespace().next());
        parts.filter_map(|word| word.parse().ok()).collect()
    }

    #[test]
    fn readme_and_help_have_every_exit_code_that_there_is() {
        let all: Vec<u8> = (0..=u8::MAX).filter(|&code| ExitCode::try_from(code).is_ok()).collect();
        let readme = include_str!("../../../README.md");
        let (_, table) = readme.split_once("Exit codes: ").unwrap();
        let (table, _) = table.split_once(". Where several apply").unwrap();
        assert_eq!(codes(&table.replace('\n', " ")), all, "{table}");
        let help = <crate::args::Cli as clap::CommandFactory>::command().render_long_help().to_string();
        let (_, table) = help.split_once("Exit codes: ").unwrap();
        assert_eq!(codes(&table.trim_end().replace('\n', " ")), all, "{table}");
        let error = || anyhow::anyhow!("no");
        let kinds = [
            CliError::Usage(error()),
            CliError::Failed(error()),
            CliError::Gate,
            CliError::interrupted("nothing was written"),
        ];
        assert_eq!(kinds.map(|kind| u8::from(kind.code())), [2, 1, 3, 130]);
    }

    #[test]
    fn a_full_disk_was_bad_input() {
        let code = |kind| Err::<(), _>(cause(kind)).written().unwrap_err().code();
        assert_eq!(code(io::ErrorKind::StorageFull), ExitCode::CellFailed);
        assert_eq!(code(io::ErrorKind::NotFound), ExitCode::Usage);
        assert_eq!(code(io::ErrorKind::IsADirectory), ExitCode::Usage);
    }

    #[test]
    fn a_backends_error_says_whose_fault_it_is() {
        let of = |error: BackendError| Err::<(), _>(error).by_cause().unwrap_err().code();
        let missing = BackendError::Unsupported { backend: "tensorrt", what: "no GPU".into() };
        assert_eq!(of(missing), ExitCode::CellFailed);
        assert_eq!(Err::<(), _>(anyhow::anyhow!("--imgsz 0")).by_cause().unwrap_err().code(), ExitCode::Usage);
    }
}
