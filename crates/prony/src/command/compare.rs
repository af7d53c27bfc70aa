//! `prony compare`: a run against an earlier one.

use std::cell::RefCell;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::{Context as _, anyhow, ensure};
use prony_judge::across::{METHOD, regressions, rows, wrong_outputs};
use prony_judge::gate::{Baseline, gates};
use prony_types::{COMPARE_SCHEMA, ExitCode, Gate, RowComparison, RowOutcome, RunComparison, RunRecord};

use crate::args::CompareArgs;
use crate::command::terminal_width;
use crate::error::{CliError, OrCliError as _};
use crate::output::print_painted;
use prony_plan::gate_options;
use prony_run::{Recorded, Scores, paired};

pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode, CliError> {
    let limits = gate_options::limits_of(&args.gate).usage()?;
    let baseline = read(&args.baseline).usage()?;
    let run = read(&args.run).usage()?;
    // The data of both is opened once for all rows.
    let scores = RefCell::new(Scores::default());
    let before = Recorded { run: &baseline, path: &args.baseline };
    let now = Recorded { run: &run, path: &args.run };
    let rows =
        rows(&baseline, &run, args.force, &|then, cell| paired(&mut scores.borrow_mut(), before, now, [then, cell]));
    if rows.is_empty() {
        return Err(anyhow!(
            "nothing to compare: {} has {}, {} has {}, and no cell is in both",
            baseline.run.id,
            cells(&baseline),
            run.run.id,
            cells(&run)
        ))
        .usage();
    }
    let of_pair = |gate: &Gate| rows.iter().any(|row| row.cell == gate.cell && row.outcome != RowOutcome::Refused);
    let mut gates = match args.gate.is_empty() {
        true => regressions(&rows, &baseline, &run),
        false => {
            let all = gates(&run, &limits, Some(Baseline { run: &baseline, force: args.force }));
            all.into_iter().filter(of_pair).collect()
        }
    };
    // No limit of one's own makes wrong outputs right.
    gates.extend(wrong_outputs(&run));
    let comparison = RunComparison {
        schema: COMPARE_SCHEMA.to_owned(),
        baseline: baseline.run.id.clone(),
        run: run.run.id.clone(),
        method: METHOD.to_owned(),
        only_in_baseline: only_in(&baseline, &run),
        only_in_run: only_in(&run, &baseline),
        notes: [&baseline, &run].into_iter().filter_map(state).collect(),
        exit_code: ending(&rows, &gates),
        rows,
        gates,
    };
    let text = match args.print.json {
        true => serde_json::to_string_pretty(&comparison).failed()? + "\n",
        false => {
            let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            prony_report::comparison(&comparison, terminal_width(), colour)
        }
    };
    print_painted(&text)?;
    Ok(comparison.exit_code)
}

fn read(path: &Path) -> anyhow::Result<RunRecord> {
    let record = prony_store::read_record_at(path).context("cannot compare")?;
    ensure!(!record.cells.is_empty(), "{} has no cells; nothing of it was measured", path.display());
    Ok(record)
}

/// A limit that does not hold weighs most; a row that could not be compared is never passed over, and where none was,
/// nothing is known.
fn ending(rows: &[RowComparison], gates: &[Gate]) -> ExitCode {
    match () {
        () if gates.iter().any(Gate::is_broken) => ExitCode::Gate,
        () if rows.iter().any(|row| row.outcome == RowOutcome::Refused) => ExitCode::Usage,
        () if gates.iter().any(|gate| gate.inconclusive) => ExitCode::Inconclusive,
        () if !rows.iter().any(has_figures) => ExitCode::Usage,
        () => ExitCode::Ok,
    }
}

/// Whether any figure of the two stands beside the other.
fn has_figures(row: &RowComparison) -> bool {
    let scored = row.accuracy.as_ref().is_some_and(|accuracy| accuracy.delta.is_some());
    row.latency.is_some() || row.memory.is_some() || scored
}

fn cells(run: &RunRecord) -> String {
    run.cells.iter().map(|cell| cell.id.as_str()).collect::<Vec<_>>().join(", ")
}

fn only_in(run: &RunRecord, other: &RunRecord) -> Vec<String> {
    let missing = run.cells.iter().filter(|cell| !other.cells.iter().any(|theirs| theirs.id == cell.id));
    missing.map(|cell| cell.id.clone()).collect()
}

/// What to know about a run that is not whole.
fn state(run: &RunRecord) -> Option<String> {
    let id = &run.run.id;
    match run.run.exit_code {
        None => Some(format!("{id} is still under way or was killed; it is compared as far as it got")),
        Some(ExitCode::Interrupted) => Some(format!("{id} was interrupted; cells without figures are not compared")),
        _ if run.run.redacted => Some(format!("{id} is redacted; figures and hardware are as they were")),
        _ => None,
    }
}
