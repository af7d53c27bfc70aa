//! `prony compare-outputs`: two models or two backends on the same frames, in this very process.

mod feed;
mod finding;
mod nodes;
mod side;

use anyhow::{bail, ensure};
use prony_backend::{BackendError, needs, precision_of};
use prony_bench::agreement::Seen;
use prony_judge::agreement::worse_tensor;
use prony_judge::{Bounds, agreement};
use prony_model::ModelFile;
use prony_types::{Agreement, BackendName, ExitCode, FailureKind, HeadChoice, Precision, RuntimeSpec, TensorAgreement};

use self::feed::Feed;
use self::finding::{Finding, OutputFinding, Thresholds};
use self::side::Side;
use super::run::{found_runtime, tell_loader};
use super::with_sign_of_life;
use crate::args::CompareOutputsArgs;
use crate::model::{Opened, Opening};

pub(crate) fn compare_outputs(args: &CompareOutputsArgs) -> anyhow::Result<ExitCode> {
    let bound = args.bound;
    ensure!(bound.is_none_or(f64::is_finite), "--bound must be a number of decibels");
    let names = [args.backend_a, args.backend_b.unwrap_or(args.backend_a)];
    let runtimes = runtimes(args, names);
    let found =
        runtimes.and_then(|runtimes| with_sign_of_life("running both models", || attempt(args, names, runtimes)));
    match found {
        Ok(finding) => {
            finding.print(args.print.json)?;
            Ok(if finding.agree { ExitCode::Ok } else { ExitCode::Gate })
        }
        // What the user gave is wrong, or it is the backend's doing: two exit codes.
        Err(error) => match error.downcast_ref::<BackendError>() {
            Some(cause) if !matches!(cause.kind(), FailureKind::Input | FailureKind::Model) => {
                say!("error: {error:#}");
                Ok(ExitCode::CellFailed)
            }
            _ => Err(error),
        },
    }
}

/// The libraries of both. The loader is told of both at once, because that starts this process again.
fn runtimes(args: &CompareOutputsArgs, names: [BackendName; 2]) -> anyhow::Result<[Option<RuntimeSpec>; 2]> {
    let explicit: Vec<_> = args.library.iter().map(|library| (library.name, library.path.clone())).collect();
    let mut found = [None, None];
    for (place, name) in found.iter_mut().zip(names) {
        if name.runs_engines() {
            bail!(
                "{name} runs engines, which take a worker of their own; use `prony bench`, which holds outputs apart too"
            );
        }
        if needs(name).is_some() {
            *place = found_runtime(name, args.home.as_deref(), &explicit)?;
        }
    }
    let folders: Vec<_> = found.iter().flatten().flat_map(|runtime| runtime.search.clone()).collect();
    tell_loader(&folders)?;
    Ok(found)
}

fn attempt(
    args: &CompareOutputsArgs,
    names: [BackendName; 2],
    [runtime_a, runtime_b]: [Option<RuntimeSpec>; 2],
) -> anyhow::Result<Finding> {
    let size = args.imgsz.map(|size| size.0);
    let (model_a, model_b) = (open(&args.a, args)?, open(&args.b, args)?);
    let mut a = Side::open(&args.a, &model_a, names[0], runtime_a, size, args.head)?;
    let mut b = Side::open(&args.b, &model_b, names[1], runtime_b, size, args.head)?;
    let (shapes_a, shapes_b) = (a.input_shapes(), b.input_shapes());
    ensure!(shapes_a == shapes_b, "{} takes {shapes_a}, {} takes {shapes_b}: no frame fits both", args.a, args.b);
    let feed = Feed::new(args, &model_a.info.metadata.names, a.inputs())?;
    let mut notes = feed.notes.clone();
    let precision = coarser(precision_of(&model_a.info), precision_of(&model_b.info));
    let bounds = Bounds::of(precision);
    let thresholds = Thresholds {
        sqnr_db: args.bound.unwrap_or(bounds.sqnr_db),
        cosine: args.bound.is_none().then_some(bounds.cosine),
        matched_boxes: bounds.matched,
    };
    if feed.is_images() && args.head != HeadChoice::None {
        for side in [&mut a, &mut b] {
            side.find_head(&feed, args.head, &mut notes)?;
        }
    }
    let pairs = pairs(a.output_names(), b.output_names());
    let mut outputs: Vec<Option<TensorAgreement>> = vec![None; pairs.len()];
    let mut seen: Option<Seen> = None;
    for frame in 0..feed.len() {
        let (of_a, of_b) = (a.run(&feed, frame)?, b.run(&feed, frame)?);
        for (place, &(i, j)) in outputs.iter_mut().zip(&pairs) {
            let now = agreement::tensors(&of_a.values[i], &of_b.values[j]);
            *place = Some(place.map_or(now, |before| worse_tensor(before, now)));
        }
        if let (Some(of_a), Some(of_b)) = (&of_a.compared, &of_b.compared) {
            seen.get_or_insert_default().add(of_a, of_b, &[]);
        }
    }
    let whole = seen.map(|Seen { boxes, scores, rest, tally }| Agreement {
        reference: String::new(),
        boxes,
        scores,
        rest,
        matched_boxes: tally.share(),
        compared_boxes: Some(tally.boxes()),
        sensitivity: None,
    });
    let no_boxes = whole.as_ref().is_some_and(|whole| whole.matched_boxes.is_none());
    // Rows of final boxes are no pairs, so each was compared with its like, where there is any.
    let alike = whole.as_ref().is_some_and(|whole| whole.boxes.is_some() || whole.matched_boxes.is_some());
    let ordered = (a.has_final_boxes() || b.has_final_boxes()) && alike;
    let rows = pairs.iter().zip(outputs).filter_map(|(&(i, j), agreement)| {
        let agreement = agreement?;
        let agree = ordered || thresholds.hold(&agreement);
        Some(OutputFinding { a: a.output_names()[i].clone(), b: b.output_names()[j].clone(), agreement, agree })
    });
    let rows: Vec<OutputFinding> = rows.collect();
    if ordered {
        notes.push("final boxes come in the order of their scores, so they are compared with their like".to_owned());
    }
    if no_boxes {
        notes.push(finding::NO_BOXES.to_owned() + "; give --source a folder of images with objects");
    }
    let unmatched = unmatched(&a, &b, &pairs);
    let agree = rows.iter().all(|row| row.agree)
        && unmatched.is_empty()
        && whole.as_ref().is_none_or(|whole| thresholds.hold_boxes(whole));
    let nodes = nodes::look(&mut notes, [&a, &b], &feed, &thresholds)?;
    Ok(Finding {
        schema: finding::SCHEMA,
        a: a.record(),
        b: b.record(),
        input: feed.source.clone(),
        frames: feed.len(),
        precision,
        bounds: thresholds,
        outputs: rows,
        unmatched,
        heads: whole,
        nodes,
        notes,
        agree,
    })
}

fn open(name: &str, args: &CompareOutputsArgs) -> anyhow::Result<ModelFile> {
    let mut how = Opening::in_home(args.home.as_deref());
    how.export.imgsz = args.imgsz.map(|size| size.0);
    let Opened { file: model, notes, .. } = crate::model::open(name, &how)?;
    notes.iter().for_each(|note| note!("{note}"));
    ensure!(model.engine.is_none(), "{name} is an engine; give the ONNX files, or use `prony bench` for engines");
    Ok(model)
}

/// The one whose rounding explains more.
fn coarser(a: Precision, b: Precision) -> Precision {
    if Bounds::of(a).sqnr_db <= Bounds::of(b).sqnr_db { a } else { b }
}

/// Outputs that belong together: by name, and what is left over by position.
fn pairs(a: &[String], b: &[String]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> =
        a.iter().enumerate().filter_map(|(i, name)| Some((i, b.iter().position(|other| other == name)?))).collect();
    let left_a = (0..a.len()).filter(|&i| !pairs.iter().any(|&(taken, _)| taken == i)).collect::<Vec<_>>();
    let left_b = (0..b.len()).filter(|&j| !pairs.iter().any(|&(_, taken)| taken == j)).collect::<Vec<_>>();
    pairs.extend(left_a.into_iter().zip(left_b));
    pairs.sort_unstable();
    pairs
}

fn unmatched(a: &Side<'_>, b: &Side<'_>, pairs: &[(usize, usize)]) -> Vec<String> {
    let left = |side: &Side<'_>, taken: &dyn Fn(&(usize, usize)) -> usize| {
        let names = side.output_names();
        let free = (0..names.len()).filter(|&i| !pairs.iter().any(|pair| taken(pair) == i));
        free.map(|i| format!("{} of {}", names[i], side.name)).collect::<Vec<_>>()
    };
    [left(a, &|pair| pair.0), left(b, &|pair| pair.1)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_pair_by_name_and_the_rest_by_place() {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(pairs(&names(&["a", "b"]), &names(&["b", "a"])), [(0, 1), (1, 0)]);
        assert_eq!(pairs(&names(&["x", "b"]), &names(&["b", "y"])), [(0, 1), (1, 0)]);
        assert_eq!(pairs(&names(&["x"]), &names(&["y", "z"])), [(0, 0)]);
    }
}
