//! `prony data info`: what a data set holds.

use prony_source::dataset::summary::{self, Summary};
use prony_types::ExitCode;
use serde_json::json;

use crate::args::InfoArgs;
use crate::error::{CliError, OrCliError as _};
use crate::output::{print, print_json};
use prony_work::Interrupt;

/// Categories that are listed; a machine gets all of them.
const LISTED: usize = 100;
/// Broken images that are listed.
const NAMED: usize = 20;

pub(super) fn info(args: &InfoArgs) -> Result<ExitCode, CliError> {
    let data = super::open(&args.choice)?;
    let summary = summary::summary(&data);
    let mut broken = None;
    if args.check {
        let interrupt = Interrupt::listen().failed()?;
        let bar = super::bar(data.images.len() as u64, "images").failed()?;
        let progress = |done: u64| {
            bar.set_position(done);
            !interrupt.asked()
        };
        let found = summary::check(&data, &progress);
        bar.finish_and_clear();
        if interrupt.asked() {
            return Err(CliError::interrupted("interrupted; not every image was looked at"));
        }
        broken = Some(found);
    }
    if args.print.json {
        let mut value = serde_json::to_value(&summary).failed()?;
        value["schema"] = json!("prony.data/1");
        if let Some(broken) = &broken {
            value["broken"] = json!(broken);
        }
        print_json(&value)?;
    } else {
        print(text(&summary, broken.as_deref()))?;
    }
    Ok(if broken.is_some_and(|broken| !broken.is_empty()) { ExitCode::CellFailed } else { ExitCode::Ok })
}

fn text(summary: &Summary, broken: Option<&[String]>) -> String {
    let Summary { small, medium, large, crowds, .. } = summary;
    let mut text = format!("{}\n", summary.name);
    text += &format!("images      {}", summary.images);
    if summary.images < summary.chosen {
        text += &format!(" of {} can be used", summary.chosen);
    }
    text += &format!(", {} without objects\n", summary.empty_images);
    text +=
        &format!("objects     {} ({small} small, {medium} medium, {large} large, {crowds} crowds)\n", summary.objects);
    text += &format!("sha256      {}\n", summary.sha256);
    text += &format!("categories  {}\n", summary.categories.len());
    let width = summary.categories.iter().take(LISTED).map(|c| c.name.chars().count()).max().unwrap_or(0);
    for category in summary.categories.iter().take(LISTED) {
        let (id, name, objects, images) = (category.id, &category.name, category.objects, category.images);
        text += &format!("  {id:>4}  {name:width$}  {objects:>8} on {images} images\n");
    }
    if summary.categories.len() > LISTED {
        text += &format!("  and {} more; --json has all\n", summary.categories.len() - LISTED);
    }
    let count: u64 = summary.problems.iter().map(|problem| problem.count).sum();
    text += &format!("problems    {count}\n");
    text += &super::problem_lines(summary.problems.iter().map(|p| (p.kind.as_str(), p.count, p.first.as_slice())));
    if let Some(broken) = broken {
        text += &format!("decoded     {} of {} images\n", summary.images - broken.len() as u64, summary.images);
        broken.iter().take(NAMED).for_each(|line| text += &format!("    {line}\n"));
        if broken.len() > NAMED {
            text += &format!("    and {} more; --json has all\n", broken.len() - NAMED);
        }
    }
    text
}
