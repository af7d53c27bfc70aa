//! What became of each engine, as a table or as JSON.

use std::fs;
use std::path::PathBuf;

use prony_types::os_text::path_to_text;
use prony_types::{ArtifactSpec, ExitCode, FailureKind, ModelSpec, Precision};
use serde_json::{Value, json};

use crate::error::{CliError, OrCliError as _};
use crate::output::print;
use prony_work::megabytes;
use prony_work::short_time;

/// The end of one engine.
pub(super) struct Outcome {
    pub(super) precision: Precision,
    pub(super) status: Status,
    /// Where it was put beside the cache.
    pub(super) copied_to: Option<PathBuf>,
}

/// How it ended.
pub(super) enum Status {
    Made {
        artifact: ArtifactSpec,
        build_ms: Option<f64>,
        rebuilt_because: Option<String>,
        notes: Vec<String>,
    },
    /// It cannot be done here.
    Skipped(String),
    Failed(FailureKind, String),
    Interrupted,
}

impl Outcome {
    /// What it means for the command's exit code.
    pub(super) fn code(&self) -> ExitCode {
        match &self.status {
            Status::Made { .. } => ExitCode::Ok,
            Status::Failed(FailureKind::Model | FailureKind::Input, _) => ExitCode::Usage,
            Status::Failed(FailureKind::Budget, _) => ExitCode::Gate,
            Status::Failed(..) | Status::Skipped(_) => ExitCode::CellFailed,
            Status::Interrupted => ExitCode::Interrupted,
        }
    }
}

/// That of all: interrupted, then a failure, then what was asked for, then a limit.
pub(super) fn code(outcomes: &[Outcome]) -> ExitCode {
    let graver = [ExitCode::Interrupted, ExitCode::CellFailed, ExitCode::Usage, ExitCode::Gate];
    let codes: Vec<ExitCode> = outcomes.iter().map(Outcome::code).collect();
    // Bad input among engines that were made is a failure of its part, not of the whole.
    let made = codes.contains(&ExitCode::Ok);
    match graver.into_iter().find(|code| codes.contains(code)) {
        Some(ExitCode::Usage) if made => ExitCode::CellFailed,
        Some(code) => code,
        None => ExitCode::Ok,
    }
}

pub(super) fn show(model: &ModelSpec, outcomes: &[Outcome], json: bool) -> Result<(), CliError> {
    let text = if json {
        let engines: Vec<Value> = outcomes.iter().map(as_json).collect();
        let all = json!({ "schema": "prony.build/1", "model": model, "engines": engines });
        serde_json::to_string_pretty(&all).failed()? + "\n"
    } else {
        outcomes.iter().map(|outcome| as_text(&model.name, outcome)).collect()
    };
    print(text)?;
    Ok(())
}

fn size(artifact: &ArtifactSpec) -> Option<u64> {
    fs::metadata(&artifact.path).ok().map(|file| file.len())
}

fn as_json(outcome: &Outcome) -> Value {
    let precision = outcome.precision;
    match &outcome.status {
        Status::Made { artifact, build_ms, rebuilt_because, notes } => json!({
            "precision": precision,
            "status": "completed",
            "engine": path_to_text(&artifact.path),
            "copied_to": outcome.copied_to.as_deref().map(path_to_text),
            "sha256": artifact.sha256,
            "size_bytes": size(artifact),
            "build_ms": build_ms,
            "from_cache": artifact.from_cache,
            "rebuilt_because": rebuilt_because,
            "notes": notes,
        }),
        Status::Skipped(reason) => json!({ "precision": precision, "status": "skipped", "reason": reason }),
        Status::Failed(_, reason) => json!({ "precision": precision, "status": "failed", "reason": reason }),
        Status::Interrupted => json!({ "precision": precision, "status": "interrupted" }),
    }
}

fn as_text(model: &str, outcome: &Outcome) -> String {
    let precision = outcome.precision;
    match &outcome.status {
        Status::Made { artifact, build_ms, rebuilt_because, notes } => {
            let took = build_ms.map(|ms| short_time(ms / 1e3)).unwrap_or_default();
            let size = size(artifact).map(megabytes).unwrap_or_default();
            let how = match (artifact.from_cache, rebuilt_because) {
                (true, _) => "from the cache".to_owned(),
                (false, Some(why)) => format!("rebuilt because: {why}"),
                (false, None) => "built".to_owned(),
            };
            let path = outcome.copied_to.as_ref().unwrap_or(&artifact.path).display();
            let notes: String = notes.iter().map(|note| format!("       {note}\n")).collect();
            format!("{precision:6} {size:>9} {took:>8}  {path}  {how}\n{notes}")
        }
        Status::Skipped(reason) => format!("{precision:6} {model}: skipped: {reason}\n"),
        Status::Failed(_, reason) => format!("{precision:6} {model}: failed: {reason}\n"),
        Status::Interrupted => format!("{precision:6} {model}: interrupted\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(from_cache: bool, because: Option<&str>) -> Outcome {
        let artifact = ArtifactSpec { path: "/c/k.engine".into(), sha256: "ab".into(), from_cache };
        let status = Status::Made {
            artifact,
            build_ms: Some(50_000.0),
            rebuilt_because: because.map(str::to_owned),
            notes: vec!["level 0".into()],
        };
        Outcome { precision: Precision::Fp16, status, copied_to: None }
    }

    #[test]
    fn a_line_says_where_it_is_and_where_it_comes_from() {
        let text = as_text("yolo", &outcome(true, None));
        assert!(text.starts_with("fp16 ") && text.contains("50 s  /c/k.engine  from the cache\n"), "{text}");
        assert!(text.ends_with("       level 0\n"), "{text}");
        let text = as_text("yolo", &outcome(false, Some("driver 580.1 -> 580.2")));
        assert!(text.contains("rebuilt because: driver 580.1 -> 580.2"), "{text}");
        let failed = Outcome { status: Status::Failed(FailureKind::Runtime, "no".into()), ..outcome(true, None) };
        assert_eq!(as_text("yolo", &failed), "fp16   yolo: failed: no\n");
        assert_eq!(as_json(&failed)["status"], "failed");
    }
}
