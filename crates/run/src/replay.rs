//! A record from the logs of a run folder alone.

use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use prony_types::{Happened, RunRecord};

use crate::logs::Logs;
use crate::record::RecordFold;

/// Rebuilds the record of a run from `events.jsonl`, `samples.csv` and `metrics.jsonl`.
pub fn replay(run: &Path) -> anyhow::Result<RunRecord> {
    let events = run.join("events.jsonl");
    let events: Vec<Happened> = prony_store::read_lines(&events).context("cannot replay")?;
    let (first, others) = events.split_first().with_context(|| format!("{} has no events", run.display()))?;
    let logs = Logs::read(run).context("cannot replay")?;
    let Some(mut fold) = RecordFold::begun(first, logs) else {
        bail!("events.jsonl in {} does not say how the run began; an older Prony wrote it", run.display());
    };
    ensure!(
        !fold.record().run.redacted,
        "a redacted run cannot be replayed: its logs leave out what its record is made from"
    );
    others.iter().for_each(|event| fold.take(event));
    if fold.record().run.finished.is_none() {
        fold.refresh();
    }
    Ok(fold.into_record())
}
