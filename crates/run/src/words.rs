//! A cell in a line.

use prony_types::{AccuracyRecord, ArtifactSpec, CellRecord, CellStatus, ModelSource, Stage};
use prony_work::short_time;

/// A scored cell in one line.
pub fn scored(accuracy: &AccuracyRecord) -> String {
    let map = accuracy
        .figures
        .map_50_95
        .map_or_else(|| "no object to be found".to_owned(), |map| format!("mAP50-95 {map:.3}"));
    format!("{map} on {} images in {}", accuracy.images, short_time(accuracy.seconds))
}

/// A finished cell in one line.
pub fn last_word(record: &CellRecord) -> String {
    let total = record.latency_ms.get(&Stage::Total);
    match (record.status, total) {
        (CellStatus::Completed, Some(total)) => {
            let verdict = record.verdict.map_or("", |v| v.name());
            let fps = record.throughput_fps.map(|fps| format!("  {fps:.0} fps")).unwrap_or_default();
            format!("p50 {:.2} ms{fps}  {} samples  {verdict}", total.p50, total.n)
        }
        (CellStatus::Completed, None) if record.accuracy.is_some() => {
            let verdict = record.verdict.map_or("", |v| v.name());
            format!("{}  {verdict}", record.accuracy.as_ref().map(scored).unwrap_or_default())
        }
        (status, _) => {
            let reason = record.reason.as_deref().unwrap_or_default();
            format!("{}: {reason}", status.name())
        }
    }
}

/// What was made, in a few words.
pub fn made(artifact: &ArtifactSpec, build_ms: Option<f64>, rebuilt_because: Option<&str>) -> String {
    let engine = ModelSource::File(artifact.path.clone()).is_engine();
    let (what, verb) = if engine { ("engine", "build") } else { ("graph", "make") };
    let (done, again) = if engine { ("built", "rebuilt") } else { ("made", "made again") };
    let took = build_ms.map(|ms| short_time(ms / 1e3));
    match (artifact.from_cache, took, rebuilt_because) {
        (true, Some(took), _) => format!("{what} from the cache (it took {took} to {verb})"),
        (true, None, _) => format!("{what} from the cache"),
        (false, Some(took), Some(why)) => format!("{what} {again} in {took} because: {why}"),
        (false, Some(took), None) => format!("{what} {done} in {took}"),
        (false, None, _) => format!("{what} {done}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_whether_an_engine_was_built_or_found() {
        let made = |from_cache, build_ms, why| {
            let artifact = ArtifactSpec { path: "/c/k.engine".into(), sha256: String::new(), from_cache };
            super::made(&artifact, build_ms, why)
        };
        assert_eq!(made(true, Some(50_000.0), None), "engine from the cache (it took 50 s to build)");
        assert_eq!(made(false, Some(50_000.0), None), "engine built in 50 s");
        let why = Some("driver 580.1 -> 580.2");
        assert_eq!(made(false, Some(70_000.0), why), "engine rebuilt in 1m 10s because: driver 580.1 -> 580.2");
    }
}
