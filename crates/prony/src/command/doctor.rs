//! `prony doctor`: what this machine is, what it can run, and whether it is fit to be measured on.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use prony_types::ExitCode;
use prony_types::os_text::path_to_text;
use prony_types::text::printable_lines;
use serde_json::json;

use crate::args::DoctorArgs;
use crate::command::{tell_trusted, with_sign_of_life};
use crate::error::{CliError, OrCliError as _, OrUnwritten as _};
use crate::output::{print, print_json, print_painted};
use prony_run::machine;

/// It reports and does not gate: a machine without anything, or one with a FAIL, is no error.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<ExitCode, CliError> {
    // Runs go below the current folder unless told otherwise.
    let explicit: Vec<_> = args.library.iter().map(|library| (library.name, library.path.clone())).collect();
    let look = || machine(Path::new("."), args.home.as_deref(), &explicit);
    let (environment, found) = with_sign_of_life("looking at this machine", look).usage()?;
    tell_trusted(&found);
    let text = match args.print.json {
        true => serde_json::to_string_pretty(&environment).failed()? + "\n",
        false => prony_probe::env_report(&environment),
    };
    match &args.out {
        Some(path) if path.as_os_str() != "-" => {
            prony_store::write_atomic(path, text.as_bytes()).written()?;
            match args.print.json {
                true => print_json(&json!({ "file": path_to_text(path) }))?,
                false => print(format!("{}\n", path.display()))?,
            }
        }
        _ => {
            let colour = !args.print.json && io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            match colour {
                true => print_painted(&coloured(&printable_lines(&text)))?,
                false => print(text)?,
            }
        }
    }
    Ok(ExitCode::Ok)
}

/// The outcomes of the preflight in colour; no other line begins like them.
fn coloured(text: &str) -> String {
    let colours = [("PASS", 32), ("WARN", 33), ("FAIL", 31)];
    let line = |line: &str| {
        let outcome = colours.iter().find(|(word, _)| line.starts_with(&format!("  {word}  ")));
        match outcome {
            Some((word, colour)) => format!("  \x1b[1;{colour}m{word}\x1b[0m{}\n", &line[2 + word.len()..]),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_outcomes_are_coloured() {
        let text = "Preflight\n  PASS  load  fine\n  FAIL  disk  PASS  full\n        fix: du\nPASS  x\n";
        let want = "Preflight\n  \x1b[1;32mPASS\x1b[0m  load  fine\n  \x1b[1;31mFAIL\x1b[0m  disk  PASS  full\n        fix: du\nPASS  x\n";
        assert_eq!(coloured(text), want);
    }
}
