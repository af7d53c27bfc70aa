//! The times of every query, as `--exportTimes` writes them.
//!
//! 8.0 to 8.4 say `in` and `out`, later ones `h2d` and `d2h`; the older ones write the queries of the warm-up too.

use serde::Deserialize;

/// One query, in milliseconds since trtexec's own beginning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Query {
    pub(super) start_ms: f64,
    pub(super) end_ms: f64,
    pub(super) h2d_ms: f64,
    pub(super) compute_ms: f64,
    pub(super) d2h_ms: f64,
    /// As this version means it.
    pub(super) latency_ms: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(alias = "startInMs")]
    start_h2d_ms: Option<f64>,
    start_compute_ms: f64,
    end_compute_ms: f64,
    #[serde(alias = "endOutMs")]
    end_d2h_ms: Option<f64>,
    #[serde(alias = "inMs")]
    h2d_ms: Option<f64>,
    compute_ms: Option<f64>,
    #[serde(alias = "outMs")]
    d2h_ms: Option<f64>,
    latency_ms: Option<f64>,
}

/// The queries after the warm-up, in the order of their ends.
pub(super) fn read(json: &[u8], warm_up_ms: f64) -> Result<Vec<Query>, String> {
    let entries: Vec<Entry> =
        serde_json::from_slice(json).map_err(|error| format!("its times are no such list: {error}"))?;
    let counted = entries.iter().filter(|entry| entry.start_compute_ms >= warm_up_ms);
    counted.enumerate().map(|(index, entry)| query(entry).ok_or_else(|| format!("its time {index} is none"))).collect()
}

fn query(entry: &Entry) -> Option<Query> {
    let compute_ms = entry.compute_ms.unwrap_or(entry.end_compute_ms - entry.start_compute_ms);
    let (h2d_ms, d2h_ms) = (entry.h2d_ms.unwrap_or(0.0), entry.d2h_ms.unwrap_or(0.0));
    let query = Query {
        start_ms: entry.start_h2d_ms.unwrap_or(entry.start_compute_ms).min(entry.start_compute_ms),
        end_ms: entry.end_d2h_ms.unwrap_or(entry.end_compute_ms).max(entry.end_compute_ms),
        h2d_ms,
        compute_ms,
        d2h_ms,
        latency_ms: entry.latency_ms.unwrap_or(h2d_ms + compute_ms + d2h_ms),
    };
    let times = [h2d_ms, d2h_ms, compute_ms, query.start_ms, query.end_ms];
    (times.iter().all(|&ms| ms >= 0.0) && query.latency_ms > 0.0).then_some(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_vocabularies_are_read_and_the_warm_up_is_left_out() {
        let new = r#"[
  { "startEnqMs" : 200.1, "endEnqMs" : 200.2, "startH2dMs" : 200, "endH2dMs" : 200.4, "startComputeMs" : 200.4,
    "endComputeMs" : 202, "startD2hMs" : 202, "endD2hMs" : 202.1, "h2dMs" : 0.4, "computeMs" : 1.6, "d2hMs" : 0.1,
    "latencyMs" : 2.1 }
]"#;
        let expected =
            Query { start_ms: 200.0, end_ms: 202.1, h2d_ms: 0.4, compute_ms: 1.6, d2h_ms: 0.1, latency_ms: 2.1 };
        assert_eq!(read(new.as_bytes(), 200.0).unwrap(), [expected]);
        let old = r#"[
  { "startInMs" : 1, "endInMs" : 1.4, "startComputeMs" : 1.4, "endComputeMs" : 9, "startOutMs" : 9, "endOutMs" : 9.1,
    "inMs" : 0.4, "computeMs" : 7.6, "outMs" : 0.1, "latencyMs" : 8.1, "endToEndMs" : 8.1 }
, { "startInMs" : 200, "endInMs" : 200.4, "startComputeMs" : 200.4, "endComputeMs" : 202, "startOutMs" : 202,
    "endOutMs" : 202.1, "inMs" : 0.4, "computeMs" : 1.6, "outMs" : 0.1, "latencyMs" : 2.1, "endToEndMs" : 2.1 }
]"#;
        assert_eq!(read(old.as_bytes(), 200.0).unwrap(), [expected]);
        assert_eq!(read(old.as_bytes(), 0.0).unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_list_of_times_is_an_error() {
        for (json, expected) in [
            ("", "no such list"),
            ("{}", "no such list"),
            (r#"[{"startComputeMs": 1}]"#, "no such list"),
            (r#"[{"startComputeMs": nan, "endComputeMs": 2}]"#, "no such list"),
            (r#"[{"startComputeMs": 3, "endComputeMs": 2}]"#, "its time 0 is none"),
            (r#"[{"startComputeMs": 3, "endComputeMs": 4, "latencyMs": 0}]"#, "its time 0 is none"),
        ] {
            let error = read(json.as_bytes(), 0.0).unwrap_err();
            assert!(error.contains(expected), "{json}: {error}");
        }
        assert_eq!(read(b"[]", 0.0), Ok(Vec::new()));
    }
}
