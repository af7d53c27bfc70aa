//! `prony data subset`: a slice as a data set of its own.

use prony_source::dataset::subset::{self, SubsetSpec, Transfer};
use prony_types::ExitCode;
use prony_types::os_text::path_to_text;
use serde_json::json;

use crate::args::SubsetArgs;
use crate::error::{CliError, OrCliError as _, OrUnwritten as _};
use crate::output::{print, print_json};
use prony_work::Interrupt;
use prony_work::megabytes;

pub(super) fn subset(args: &SubsetArgs) -> Result<ExitCode, CliError> {
    let data = super::open(&args.choice)?;
    let transfer = match (args.link, args.symlink) {
        (true, _) => Transfer::Link,
        (_, true) => Transfer::Symlink,
        _ => Transfer::Copy,
    };
    let interrupt = Interrupt::listen().failed()?;
    let bar = super::bar(data.images.len() as u64, "images").failed()?;
    let progress = |done: u32| {
        bar.set_position(u64::from(done));
        !interrupt.asked()
    };
    let spec = SubsetSpec { out: &args.out, transfer, max_side: args.max_side };
    let outcome = subset::write(&data, &spec, &progress);
    bar.finish_and_clear();
    if interrupt.asked() {
        let text = format!("interrupted; {} is not finished, the same command makes it anew", args.out.display());
        return Err(CliError::interrupted(text));
    }
    let summary = outcome.written()?;
    if args.print.json {
        let value = json!({
            "schema": "prony.subset/1",
            "out": path_to_text(&args.out),
            "of": data.name,
            "images": summary.images,
            "objects": summary.objects,
            "scaled": summary.scaled,
            "image_bytes": summary.image_bytes,
            "sha256": summary.sha256,
            "problem_count": summary.problems.count(),
            "problems": summary.problems.named().collect::<Vec<_>>(),
        });
        print_json(&value)?;
        return Ok(ExitCode::Ok);
    }
    super::problem_lines(summary.problems.kinds()).lines().for_each(|line| note!("{line}"));
    let scaled = if summary.scaled > 0 { format!(", {} scaled down", summary.scaled) } else { String::new() };
    print(format!(
        "{}: {} images with {} objects ({}{scaled}), of {}\nsha256 {}\n",
        args.out.display(),
        summary.images,
        summary.objects,
        megabytes(summary.image_bytes),
        data.name,
        summary.sha256,
    ))?;
    Ok(ExitCode::Ok)
}
