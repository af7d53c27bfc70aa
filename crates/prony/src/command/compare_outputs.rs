//! `prony compare-outputs`: two models or two backends on the same frames, in this very process.

mod feed;
mod finding;
mod nodes;
mod side;

use anyhow::ensure;
use prony_backend::{BackendError, precision_of};
use prony_bench::agreement::Seen;
use prony_judge::agreement::worse_tensor;
use prony_judge::{Bounds, agreement};
use prony_types::{Agreement, BackendName, ExitCode, FailureKind, HeadChoice, Precision, TensorAgreement};

use self::feed::Feed;
use self::finding::{Finding, OutputFinding, Thresholds};
use self::side::{Prepared, Side};
use super::executor::{EngineShapes, Wish, backend_for, tell_loader};
use super::with_sign_of_life;
use crate::args::CompareOutputsArgs;
use crate::output::View;
use prony_plan::named::{Opened, Opening};

pub(crate) fn compare_outputs(args: &CompareOutputsArgs) -> anyhow::Result<ExitCode> {
    let bound = args.bound;
    ensure!(bound.is_none_or(f64::is_finite), "--bound must be a number of decibels");
    let found = prepared(args).and_then(|sides| match sides {
        None => Ok(None),
        Some(sides) => with_sign_of_life("running both models", || attempt(args, &sides)).map(Some),
    });
    match found {
        Ok(None) => Ok(ExitCode::Interrupted),
        Ok(Some(finding)) => {
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

/// Both sides with everything that their sessions are made from; `None` where the user gave up while an engine was built.
fn prepared(args: &CompareOutputsArgs) -> anyhow::Result<Option<[Prepared; 2]>> {
    let (a, b) = (open(&args.a, args)?, open(&args.b, args)?);
    let otherwise = args.backend_a.unwrap_or(BackendName::Rten);
    let names = [
        backend_for(&args.a, &a.file, args.backend_a, BackendName::Rten)?,
        backend_for(&args.b, &b.file, args.backend_b, otherwise)?,
    ];
    let wish = Wish {
        device: 0,
        home: args.home.as_deref(),
        libraries: args.library.iter().map(|library| (library.name, library.path.clone())).collect(),
        engine: &args.engine,
        force: args.force,
        wait: args.wait,
    };
    let runs_engine = |name: BackendName| name == BackendName::Tensorrt;
    let builds = |(model, name): (&Opened, BackendName)| runs_engine(name) && model.file.engine.is_none();
    let any_built = [&a, &b].into_iter().zip(names).any(builds);
    wish.refuse_unread(any_built, names.into_iter().any(runs_engine))?;
    let runtimes = [wish.runtime(names[0])?, wish.runtime(names[1])?];
    // The loader is told of both at once, because that starts this process again.
    let folders: Vec<_> = runtimes.iter().flatten().flat_map(|runtime| runtime.search.clone()).collect();
    tell_loader(&folders)?;
    let mut sides = Vec::new();
    let asked = [args.precision_a, args.precision_b];
    let size = args.imgsz.map(|size| size.0);
    for ((((model, typed), name), runtime), asked) in
        [a, b].into_iter().zip([&args.a, &args.b]).zip(names).zip(runtimes).zip(asked)
    {
        let imgsz = side::image_size_of(typed, &model.file, size, args.head)?;
        let precision = asked.unwrap_or_else(|| precision_of(&model.file.info));
        let mut side =
            Prepared { backend: name, runtime, provider: wish.provider()?, imgsz, precision, built: None, model };
        if builds((&side.model, name)) {
            let shapes = EngineShapes { imgsz, ..EngineShapes::default() };
            let Some(built) = wish.engine_of(&side.model, precision, shapes)? else { return Ok(None) };
            built.notes.iter().for_each(|note| note!("{typed}: {note}"));
            side.built = Some(built);
        }
        sides.push(side);
    }
    Ok(<[Prepared; 2]>::try_from(sides).ok())
}

fn attempt(args: &CompareOutputsArgs, [of_a, of_b]: &[Prepared; 2]) -> anyhow::Result<Finding> {
    let mut a = Side::open(&args.a, of_a)?;
    let mut b = Side::open(&args.b, of_b)?;
    let (shapes_a, shapes_b) = (a.input_shapes(), b.input_shapes());
    ensure!(shapes_a == shapes_b, "{} takes {shapes_a}, {} takes {shapes_b}: no frame fits both", args.a, args.b);
    let feed = Feed::new(args, [&of_a.model, &of_b.model], a.inputs())?;
    let mut notes = feed.notes.clone();
    notes.extend([&a, &b].into_iter().flat_map(|side| side.warnings()));
    let precision = coarser(a.precision(), b.precision());
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

fn open(name: &str, args: &CompareOutputsArgs) -> anyhow::Result<Opened> {
    let mut how = Opening::in_home(args.home.as_deref(), &View);
    how.export.imgsz = args.imgsz.map(|size| size.0);
    let opened = prony_plan::named::open(name, &how)?;
    opened.notes.iter().for_each(|note| note!("{note}"));
    Ok(opened)
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
