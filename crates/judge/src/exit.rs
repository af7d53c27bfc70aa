//! How a run ends, as a number.

use prony_types::{CellRecord, CellSpec, CellStatus, ExitCode, Gate, Plan, Precision, Verdict};

use crate::difference::same_model;

/// The exit code of a run whose cells were tried: interrupted, then a failed cell, then a broken gate, then a gate that could
/// not be decided. "Nothing ran" is for the caller to say, before any cell exists.
///
/// A cell that was skipped although its backend and precision were named has failed, and so has one without a
/// record, a model that no cell measured, or a model in a precision that was named and that none of its cells completed in.
/// `strict` makes failures of skipped cells and of every verdict but `valid`.
pub fn exit_code(cells: &[CellRecord], plan: &Plan, gates: &[Gate], interrupted: bool) -> ExitCode {
    let in_vain = plan.named_precisions.iter().any(|&precision| precision_failed(cells, precision));
    match of_cells(cells, &plan.cells, gates, plan.strict, interrupted) {
        ExitCode::Ok | ExitCode::Gate | ExitCode::Inconclusive if in_vain || any_model_skipped(cells) => {
            ExitCode::CellFailed
        }
        code => code,
    }
}

/// Whether there is a model of which every cell was skipped: it was asked for, and nothing is known about it.
fn any_model_skipped(cells: &[CellRecord]) -> bool {
    let skipped = |cell: &CellRecord| cell.status == CellStatus::Skipped;
    cells.iter().any(|cell| cells.iter().filter(|other| same_model(cell, other)).all(skipped))
}

/// Whether a model has cells in a precision, and none of them completed.
fn precision_failed(cells: &[CellRecord], precision: Precision) -> bool {
    let of_precision = || cells.iter().filter(|cell| cell.precision.requested == precision);
    let completed = |cell: &CellRecord| {
        let mut same = of_precision().filter(|other| other.model.name == cell.model.name);
        same.any(|other| other.status == CellStatus::Completed || over_budget(other))
    };
    of_precision().any(|cell| !completed(cell))
}

fn over_budget(cell: &CellRecord) -> bool {
    cell.verdict == Some(Verdict::OverBudget)
}

fn of_cells(cells: &[CellRecord], specs: &[CellSpec], gates: &[Gate], strict: bool, interrupted: bool) -> ExitCode {
    if interrupted || cells.iter().any(|c| c.status == CellStatus::Interrupted) {
        return ExitCode::Interrupted;
    }
    let named = |id: &str| specs.iter().any(|s| s.id == id && s.named);
    let failed = |cell: &CellRecord| match cell.status {
        CellStatus::Completed => strict && cell.verdict != Some(Verdict::Valid),
        CellStatus::Skipped => strict || named(&cell.id),
        // What a limit ended has gone beyond it: that is the limit's business, below.
        CellStatus::Failed => !over_budget(cell),
        CellStatus::Pending | CellStatus::Interrupted => true,
    };
    let missing = specs.iter().any(|s| !cells.iter().any(|c| c.id == s.id));
    if missing || cells.iter().any(failed) {
        return ExitCode::CellFailed;
    }
    let fallback_allowed = |id: &str| specs.iter().any(|s| s.id == id && s.provider.allow_fallback);
    let forbidden = |c: &CellRecord| match c.verdict {
        Some(Verdict::WrongOutput | Verdict::OverBudget) => true,
        Some(Verdict::FellBack) => !fallback_allowed(&c.id),
        _ => false,
    };
    if gates.iter().any(Gate::is_broken) || cells.iter().any(forbidden) {
        return ExitCode::Gate;
    }
    if gates.iter().any(|gate| gate.inconclusive) {
        return ExitCode::Inconclusive;
    }
    ExitCode::Ok
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::tests::cell;
    use prony_types::{BackendName, ModelSource, ModelSpec, SceneKind};

    fn spec(id: &str, named: bool) -> CellSpec {
        let source = ModelSource::Builtin(SceneKind::Rgb);
        let model = ModelSpec::new("m", source, "1");
        CellSpec { id: id.into(), named, ..CellSpec::new(model, BackendName::Rten, Precision::Fp32) }
    }

    fn with(status: CellStatus, verdict: Option<Verdict>) -> CellRecord {
        CellRecord { status, verdict, ..cell("a", 6.0) }
    }

    fn code(record: CellRecord, named: bool, strict: bool) -> ExitCode {
        of_cells(&[record], &[spec("a", named)], &[], strict, false)
    }

    #[test]
    fn a_valid_run_is_0_and_a_failed_cell_1() {
        assert_eq!(code(with(CellStatus::Completed, Some(Verdict::Valid)), true, true), ExitCode::Ok);
        assert_eq!(code(with(CellStatus::Failed, None), false, false), ExitCode::CellFailed);
        assert_eq!(of_cells(&[], &[spec("a", false)], &[], false, false), ExitCode::CellFailed);
    }

    #[test]
    fn skipped_is_a_failure_when_named_or_strict() {
        let skipped = || with(CellStatus::Skipped, None);
        assert_eq!(code(skipped(), false, false), ExitCode::Ok);
        assert_eq!(code(skipped(), true, false), ExitCode::CellFailed);
        assert_eq!(code(skipped(), false, true), ExitCode::CellFailed);
    }

    #[test]
    fn verdicts_count_as_the_design_says() {
        let of = |verdict, strict| code(with(CellStatus::Completed, Some(verdict)), false, strict);
        assert_eq!(of(Verdict::Unstable, false), ExitCode::Ok);
        assert_eq!(of(Verdict::Unstable, true), ExitCode::CellFailed);
        assert_eq!(of(Verdict::WrongOutput, false), ExitCode::Gate);
        assert_eq!(of(Verdict::FellBack, false), ExitCode::Gate);
        assert_eq!(of(Verdict::OverBudget, false), ExitCode::Gate);
    }

    #[test]
    fn where_several_hold_the_order_is_130_1_3() {
        let (name, cell) = ("p99_max_ms".into(), "a".into());
        let gate = Gate {
            name,
            cell,
            figure: Some(9.0),
            limit: 8.0,
            pass: false,
            inconclusive: false,
            against: None,
            reason: None,
        };
        let (ok, failed) = (with(CellStatus::Completed, Some(Verdict::Valid)), with(CellStatus::Failed, None));
        let specs = [spec("a", false)];
        let gates = [gate];
        assert_eq!(of_cells(std::slice::from_ref(&ok), &specs, &gates, false, false), ExitCode::Gate);
        assert_eq!(of_cells(std::slice::from_ref(&failed), &specs, &gates, false, false), ExitCode::CellFailed);
        assert_eq!(of_cells(&[failed], &specs, &gates, false, true), ExitCode::Interrupted);
        assert_eq!(code(with(CellStatus::Interrupted, None), false, false), ExitCode::Interrupted);
    }

    #[test]
    fn a_gate_that_could_not_be_measured_is_4_and_a_broken_one_beside_it_3() {
        let gate = |pass, inconclusive| Gate {
            name: "p99_max_ms".into(),
            cell: "a".into(),
            figure: None,
            limit: 8.0,
            pass,
            inconclusive,
            against: None,
            reason: None,
        };
        let specs = [spec("a", false)];
        let code = |record: CellRecord, gates: &[Gate]| of_cells(&[record], &specs, gates, false, false);
        let ok = || with(CellStatus::Completed, Some(Verdict::Valid));
        assert_eq!(code(ok(), &[gate(true, false), gate(false, true)]), ExitCode::Inconclusive);
        assert_eq!(code(ok(), &[gate(false, true), gate(false, false)]), ExitCode::Gate);
        assert_eq!(code(with(CellStatus::Failed, None), &[gate(false, true)]), ExitCode::CellFailed);
        assert_eq!(code(ok(), &[gate(true, false)]), ExitCode::Ok);
    }

    #[test]
    fn a_model_that_nothing_could_measure_is_no_success() {
        let of = |model: &str, status| {
            let mut cell = with(status, None);
            cell.model.name = model.to_owned();
            cell
        };
        let skipped = || of("m", CellStatus::Skipped);
        assert!(any_model_skipped(&[skipped(), skipped()]));
        assert!(!any_model_skipped(&[skipped(), of("m", CellStatus::Completed)]));
        assert!(any_model_skipped(&[skipped(), of("other", CellStatus::Completed)]));
        assert!(!any_model_skipped(&[]));
    }

    #[test]
    fn a_cell_each_of_wrong_failed_and_interrupted_is_130_then_1_then_3() {
        let named = |id: &str, status, verdict| CellRecord { id: id.into(), ..with(status, verdict) };
        let cells = [
            named("a", CellStatus::Completed, Some(Verdict::WrongOutput)),
            named("b", CellStatus::Failed, None),
            named("c", CellStatus::Interrupted, Some(Verdict::Valid)),
        ];
        let specs = ["a", "b", "c"].map(|id| spec(id, true));
        let first = |n: usize| u8::from(of_cells(&cells[..n], &specs[..n], &[], false, false));
        assert_eq!([first(3), first(2), first(1)], [130, 1, 3]);
        assert_eq!(of_cells(&cells[..2], &specs, &[], true, true), ExitCode::Interrupted, "whatever is missing");
    }

    #[test]
    fn a_named_precision_that_nothing_completed_in_has_failed() {
        let in_fp16 = |status| {
            let mut cell = with(status, None);
            cell.precision.requested = Precision::Fp16;
            cell
        };
        let fp32 = with(CellStatus::Completed, Some(Verdict::Valid));
        assert!(precision_failed(&[fp32.clone(), in_fp16(CellStatus::Skipped)], Precision::Fp16));
        assert!(!precision_failed(&[in_fp16(CellStatus::Completed), in_fp16(CellStatus::Skipped)], Precision::Fp16));
        assert!(!precision_failed(&[fp32], Precision::Fp16));
    }

    #[test]
    fn a_cell_that_its_limit_ended_is_a_broken_limit_and_no_failure() {
        let refused = with(CellStatus::Failed, Some(Verdict::OverBudget));
        assert_eq!(of_cells(std::slice::from_ref(&refused), &[spec("a", true)], &[], false, false), ExitCode::Gate);
        assert!(!precision_failed(&[refused], Precision::Fp32));
        let failed = with(CellStatus::Failed, None);
        assert_eq!(
            of_cells(std::slice::from_ref(&failed), &[spec("a", true)], &[], false, false),
            ExitCode::CellFailed
        );
        assert!(precision_failed(&[failed], Precision::Fp32));
    }
}
