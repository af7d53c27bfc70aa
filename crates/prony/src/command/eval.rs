//! `prony eval`: how right boxes are.

mod text;

use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, anyhow, ensure};
use prony_judge::coco::{Evaluation, LeftOut, Truth, Truths};
use prony_source::SourceError;
use prony_source::coco::{Instances, Results, RowProblems, read_instances, read_results};
use prony_source::dataset::instances_file;
use prony_types::{ClassAccuracy, CocoFigures, ExitCode, PrecisionRecall};
use serde::Serialize;

use crate::args::EvalArgs;
use crate::command::with_sign_of_life;
use crate::error::{CliError, OrCliError as _};
use crate::output::print;
use prony_plan::options::BenchOptions;
use prony_run::scored;

/// Problems that are told on the terminal; the rest is counted.
const TOLD: usize = 5;

/// What came out, as `--json` has it: names are those of `metrics.json`.
#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(flatten)]
    figures: CocoFigures,
    #[serde(skip_serializing_if = "Option::is_none")]
    ci95: Option<[f64; 2]>,
    images: u64,
    objects: u64,
    detections: u64,
    problems: Vec<String>,
    problem_count: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<ClassAccuracy>,
    curves: Vec<PrecisionRecall>,
    /// Reading and scoring, and drawing the interval.
    seconds: f64,
}

/// What the bootstrap draws by, where nobody says.
const SEED: u64 = 7;

pub(crate) fn eval(args: &EvalArgs) -> Result<ExitCode, CliError> {
    match &args.detections {
        Some(detections) => score(args, detections),
        None => {
            let options = &args.options;
            let timed = [
                ("--warmup", options.warmup.is_some()),
                ("--duration", options.duration.is_some()),
                ("--samples", options.samples.is_some()),
            ];
            if let Some((flag, _)) = timed.into_iter().find(|(_, given)| *given) {
                let error =
                    anyhow!("{flag} is for what is timed, and `prony eval` times nothing; use `prony bench --data`");
                return Err(error).usage();
            }
            super::bench(&args.as_run())
        }
    }
}

fn score(args: &EvalArgs, detections: &Path) -> Result<ExitCode, CliError> {
    let data = data_alone(args).usage()?;
    let outcome = with_sign_of_life("scoring", || score_file(args, detections, data)).usage()?;
    let text = match args.print.json {
        true => serde_json::to_string_pretty(&outcome).failed()? + "\n",
        false => text::table(&outcome),
    };
    if !args.print.json {
        outcome.problems.iter().take(TOLD).for_each(|problem| say!("warning: {problem}"));
        let more = outcome.problem_count.saturating_sub(TOLD.min(outcome.problems.len()) as u64);
        if more > 0 {
            say!("warning: {more} more like these");
        }
    }
    print(text)?;
    Ok(ExitCode::Ok)
}

/// The data to score on, where nothing was asked for that is not heeded.
fn data_alone(args: &EvalArgs) -> anyhow::Result<&Path> {
    let BenchOptions { data, split, seed, .. } = args.options.clone();
    let heeded = BenchOptions { data, split, seed, ..BenchOptions::default() };
    // Whatever else was asked for would be passed over without a word.
    ensure!(
        format!("{:?}", args.options) == format!("{heeded:?}") && args.plan.is_none() && !args.libraries.given(),
        "--detections scores a file as it is, with --data, --split, --seed, --no-interval, --per-class and --json; leave the others out"
    );
    args.options.data.as_deref().context("--detections needs --data with the truth: an instances*.json")
}

/// Scores a result file that is there already.
fn score_file(args: &EvalArgs, detections: &Path, data: &Path) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let data = instances_file(data, args.options.split.as_deref())?;
    let (instances, results) = read_both(&data, detections)?;
    ensure!(!instances.images.is_empty(), "{}: no image in it that could be scored", data.display());
    let mut problems = instances.problems.clone();
    let given = results.rows.len() as u64 + results.problems.count;
    problems.append(results.problems);
    let truths = truths(instances);
    let evaluation = Evaluation::new(&truths, &scored(results.rows));
    note_strangers(evaluation.left_out(), &mut problems);
    if given > 0 && evaluation.detections() == 0 {
        let first = problems.first.last().cloned().unwrap_or_default();
        let detections = detections.display();
        return Err(anyhow!("{detections}: none of its {given} boxes fits {}; {first}", data.display()));
    }
    let ci95 = if args.no_interval { None } else { evaluation.interval(args.options.seed.unwrap_or(SEED)) };
    Ok(Outcome {
        figures: evaluation.figures(),
        ci95,
        images: evaluation.images(),
        objects: truths.objects.len() as u64,
        detections: evaluation.detections(),
        problems: problems.first,
        problem_count: problems.count,
        classes: if args.per_class { evaluation.classes() } else { Vec::new() },
        curves: evaluation.curves(),
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Both files at once.
fn read_both(data: &Path, detections: &Path) -> Result<(Instances, Results), SourceError> {
    thread::scope(|scope| {
        let instances = scope.spawn(|| read_instances(data));
        let results = read_results(detections);
        let instances = instances.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((instances?, results?))
    })
}

fn truths(instances: Instances) -> Truths {
    Truths {
        images: instances.images.iter().map(|image| image.id).collect(),
        classes: instances.categories.into_iter().map(|category| (category.id, category.name)).collect(),
        objects: instances
            .annotations
            .iter()
            .map(|a| Truth {
                id: a.id,
                image: a.image_id,
                class: a.category_id,
                bbox: a.bbox,
                area: a.area,
                crowd: a.iscrowd,
            })
            .collect(),
    }
}

fn note_strangers(left_out: LeftOut, problems: &mut RowProblems) {
    let kinds = [
        ("an image_id", left_out.images, left_out.first_image),
        ("a category_id", left_out.classes, left_out.first_class),
    ];
    for (kind, count, first) in kinds {
        if let Some(first) = first {
            let text = format!("{count} boxes have {kind} that the data does not have, {first} first; left out");
            problems.append(RowProblems { count, first: vec![text] });
        }
    }
}
