//! `prony data`.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};
use prony_source::synth;
use prony_types::ExitCode;

use crate::args::{DataArgs, DataVerb, SynthArgs};
use crate::run::Interrupt;

pub(crate) fn data(args: DataArgs) -> anyhow::Result<ExitCode> {
    match args.verb {
        DataVerb::Synth(args) => synthesise(&args),
    }
}

fn synthesise(args: &SynthArgs) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let bar = if args.quiet || !std::io::stderr().is_terminal() {
        ProgressBar::hidden()
    } else {
        let style = ProgressStyle::with_template("  {bar:30.cyan/dim} {pos}/{len} scenes  ETA {eta}")?;
        ProgressBar::new(u64::from(args.count)).with_style(style.progress_chars("━╸─"))
    };
    let progress = |done: u32| {
        bar.set_position(u64::from(done));
        !interrupt.asked()
    };
    let outcome = synth::write(args.kind, args.count, args.seed, &args.out, &progress);
    bar.finish_and_clear();
    if interrupt.asked() {
        eprintln!("interrupted; what was written so far is in {}", args.out.display());
        return Ok(ExitCode::Interrupted);
    }
    let summary = outcome?;
    if !args.quiet {
        println!(
            "{}: {} {} scenes with {} objects of {} classes ({:.1} MB), seed {}",
            args.out.display(),
            summary.images,
            args.kind,
            summary.objects,
            summary.classes.len(),
            summary.image_bytes as f64 / 1e6,
            args.seed,
        );
        println!("COCO: annotations/instances.json   Ultralytics: data.yaml");
    }
    Ok(ExitCode::Ok)
}
