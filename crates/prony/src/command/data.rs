//! `prony data`.

mod fetch;
mod info;
mod subset;

use indicatif::{ProgressBar, ProgressStyle};
use prony_source::dataset::{self, Dataset};
use prony_source::synth;
use prony_types::os_text::path_to_text;
use prony_types::{ExitCode, SceneKind};
use serde_json::json;

use crate::args::{ChoiceArgs, DataArgs, DataVerb, SynthArgs};
use crate::command::with_sign_of_life;
use crate::error::{CliError, OrCliError as _, OrUnwritten as _};
use crate::output::{is_live, print, print_json};
use prony_work::Interrupt;

pub(crate) fn data(args: DataArgs) -> Result<ExitCode, CliError> {
    match args.verb {
        DataVerb::Synth(args) => synthesise(&args),
        DataVerb::Info(args) => info::info(&args),
        DataVerb::Subset(args) => subset::subset(&args),
        DataVerb::Fetch(args) => fetch::fetch(&args),
    }
}

fn synthesise(args: &SynthArgs) -> Result<ExitCode, CliError> {
    let interrupt = Interrupt::listen().failed()?;
    let bar = bar(u64::from(args.count), "scenes").failed()?;
    let progress = |done: u32| {
        bar.set_position(u64::from(done));
        !interrupt.asked()
    };
    let outcome = synth::write(args.kind, args.count, args.seed, &args.out, &progress);
    bar.finish_and_clear();
    if interrupt.asked() {
        let text = format!("interrupted; what was written so far is in {}", args.out.display());
        return Err(CliError::interrupted(text));
    }
    let summary = outcome.written()?;
    match args.print.json {
        true => print_json(&json!({
            "schema": "prony.synth/1",
            "out": path_to_text(&args.out),
            "kind": args.kind,
            "seed": args.seed,
            "images": summary.images,
            "objects": summary.objects,
            "classes": summary.classes,
            "image_bytes": summary.image_bytes,
        }))?,
        false => print(format!(
            "{}: {} {} scenes with {} objects of {} classes ({:.1} MB), seed {}\n\
             COCO: annotations/instances.json   Ultralytics: data.yaml\n",
            args.out.display(),
            summary.images,
            args.kind,
            summary.objects,
            summary.classes.len(),
            summary.image_bytes as f64 / 1e6,
            args.seed,
        ))?,
    }
    Ok(ExitCode::Ok)
}

/// On a terminal, how many of `count` are done; elsewhere nothing.
fn bar(count: u64, what: &str) -> anyhow::Result<ProgressBar> {
    if !is_live() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template(&format!("  {{bar:30.cyan/dim}} {{pos}}/{{len}} {what}  ETA {{eta}}"))?;
    Ok(ProgressBar::new(count).with_style(style.progress_chars("━╸─")))
}

/// Opens a data set, whatever its kind.
fn open(choice: &ChoiceArgs) -> Result<Dataset, CliError> {
    // A path is never the built-in scenes, so their kind does not matter.
    with_sign_of_life("reading the data set", || dataset::open(&choice.spec(), SceneKind::Rgb)).usage()
}

/// What is wrong with a data set: each kind with its first few.
fn problem_lines<'k, 'a>(kinds: impl Iterator<Item = (&'k str, u64, &'a [String])>) -> String {
    let mut text = String::new();
    for (kind, count, named) in kinds {
        text += &format!("  {count} {kind}\n");
        named.iter().for_each(|line| text += &format!("    {line}\n"));
        let more = count.saturating_sub(named.len() as u64);
        if more > 0 {
            text += &format!("    and {more} more\n");
        }
    }
    text
}
