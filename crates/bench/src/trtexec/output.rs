//! What trtexec prints, in the three generations of it.

/// The generations differ in what `Latency` means where nothing is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    /// 8.x: transfers are part of it.
    V8,
    /// 9.x and 10.x: the same.
    V10,
    /// 11.x: no transfers, a CUDA graph, spinning.
    V11,
}

impl Generation {
    /// Whether a query brings its inputs to the device and its outputs back.
    pub(super) const fn has_transfers(self) -> bool {
        matches!(self, Generation::V8 | Generation::V10)
    }

    /// What it calls latency, in words.
    pub(super) const fn definition(self) -> &'static str {
        match self {
            Generation::V8 | Generation::V10 => {
                "latency is h2d + GPU compute + d2h of a query by CUDA events, transfers included; no pre- or \
                 post-processing, no queueing, no CUDA graph, blocking wait"
            }
            Generation::V11 => {
                "latency is GPU compute of a query by CUDA events, transfers not included; no pre- or post-processing, no \
                 queueing, CUDA graph, spinning wait"
            }
        }
    }
}

/// Version of TensorRT that a trtexec was built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version([u32; 3]);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl Version {
    /// From the banner, which comes first and last: `&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # …`.
    pub(super) fn in_banner(text: &str) -> Option<Version> {
        let digits = text.split_once("[TensorRT v")?.1.split(']').next()?;
        let number: u32 = digits.parse().ok()?;
        // 8601 is 8.6.1, 100300 is 10.3.0: from 10 on the minor has two digits.
        let (major, minor) =
            if number < 10_000 { (number / 1000, number / 100 % 10) } else { (number / 10_000, number / 100 % 100) };
        Some(Version([major, minor, number % 100]))
    }

    /// The generation; the reason where its figures may mean something else than is known.
    pub(super) fn generation(self) -> Result<Generation, String> {
        match self.0[0] {
            8 => Ok(Generation::V8),
            9 | 10 => Ok(Generation::V10),
            11 => Ok(Generation::V11),
            _ => Err(format!("trtexec {self} is not known, so its latency may mean anything; 8, 10 and 11 are")),
        }
    }
}

/// One line of the summary, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Metric {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) mean: f64,
    pub(super) median: f64,
}

/// What a run printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Printed {
    /// Queries a second of wall time.
    pub(super) throughput_qps: Option<f64>,
    pub(super) latency: Option<Metric>,
    pub(super) h2d: Option<Metric>,
    pub(super) compute: Option<Metric>,
    pub(super) d2h: Option<Metric>,
    /// Time to deserialise the engine.
    pub(super) load_ms: Option<f64>,
    /// Inputs by name, with their shapes.
    pub(super) inputs: Vec<(String, Vec<usize>)>,
    /// What it complained about, newest last.
    pub(super) errors: Vec<String>,
    /// Its own last word on whether all went well.
    pub(super) passed: bool,
}

/// Reads what was printed; what is not understood is left out.
pub(super) fn read(text: &str) -> Printed {
    let mut printed = Printed { passed: text.contains("&&&& PASSED"), ..Printed::default() };
    for line in text.lines() {
        let (level, words) = message(line);
        if level == Some('E') {
            printed.errors.push(words.to_owned());
        }
        let Some((name, rest)) = words.split_once(": ") else {
            binding(words, &mut printed.inputs);
            printed.load_ms = printed.load_ms.or_else(|| load_ms(words));
            continue;
        };
        match name {
            "Throughput" => printed.throughput_qps = number(rest, "qps"),
            "Latency" => printed.latency = metric(rest),
            "H2D Latency" => printed.h2d = metric(rest),
            "GPU Compute Time" => printed.compute = metric(rest),
            "D2H Latency" => printed.d2h = metric(rest),
            _ => {}
        }
    }
    printed
}

/// The level and the words of `[11/15/2026-10:00:00] [I] words`; lines without a date have none.
fn message(line: &str) -> (Option<char>, &str) {
    let mut rest = line.trim();
    let mut level = None;
    while let Some((mark, after)) = rest.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
        if let (Some(letter), 1) = (mark.chars().next(), mark.len()) {
            level = level.or(Some(letter));
        }
        rest = after.trim_start();
    }
    (level, rest)
}

fn number(text: &str, unit: &str) -> Option<f64> {
    text.trim().strip_suffix(unit)?.trim().parse().ok().filter(|n: &f64| n.is_finite())
}

/// `min = 1.2 ms, max = 1.4 ms, mean = 1.3 ms, median = 1.3 ms, percentile(99%) = 1.4 ms`.
fn metric(text: &str) -> Option<Metric> {
    let of = |key: &str| {
        let entry =
            text.split(", ").find_map(|entry| entry.split_once(" = ").filter(|(name, _)| name.trim() == key))?;
        number(entry.1, "ms")
    };
    Some(Metric { min: of("min")?, max: of("max")?, mean: of("mean")?, median: of("median")? })
}

/// `Engine deserialized in 0.0123 sec.`, or `Engine loaded in …`, whichever the version says.
fn load_ms(words: &str) -> Option<f64> {
    let rest = ["Engine deserialized in ", "Engine loaded in "].iter().find_map(|start| words.strip_prefix(start))?;
    rest.trim_end_matches('.').strip_suffix("sec")?.trim().parse::<f64>().ok().map(|seconds| seconds * 1e3)
}

/// `Created input binding for images with dimensions 1x3x640x640`, or `Input binding for … is created.`
fn binding(words: &str, into: &mut Vec<(String, Vec<usize>)>) {
    let rest = ["Created input binding for ", "Input binding for "].iter().find_map(|start| words.strip_prefix(start));
    let Some((name, dims)) = rest.and_then(|rest| rest.split_once(" with dimensions ")) else { return };
    let dims = dims.split_whitespace().next().unwrap_or_default();
    if let Ok(shape) = dims.split('x').map(str::parse).collect::<Result<Vec<usize>, _>>()
        && !into.iter().any(|(known, _)| known == name)
    {
        into.push((name.to_owned(), shape));
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
