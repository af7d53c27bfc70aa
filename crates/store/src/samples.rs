//! `samples.csv`: every sample of a run.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use prony_files::Kind;
use prony_types::{Phase, Sample};

use crate::lines::{open_at_end, whole_lines};
use crate::{StoreError, below};

const HEADER: &str =
    "cell,phase,round,frame,start_ns,preprocess_ns,h2d_ns,inference_ns,d2h_ns,postprocess_ns,total_ns,detections";

/// Appends samples through a buffer; what `flush` has returned for is in the file.
#[derive(Debug)]
pub struct SampleLog {
    out: BufWriter<File>,
    path: PathBuf,
}

impl SampleLog {
    /// Opens the file at its end, or makes it with its header. What a crash left of a last line is cut off.
    pub fn open(path: &Path) -> Result<SampleLog, StoreError> {
        let (file, empty) = open_at_end(path)?;
        let mut log = SampleLog::on(file, path);
        if empty {
            writeln!(log.out, "{HEADER}").map_err(StoreError::io("write", path))?;
        }
        Ok(log)
    }

    /// A log in a file that is open already and has its header.
    pub fn on(file: File, path: &Path) -> SampleLog {
        SampleLog { out: BufWriter::with_capacity(1 << 16, file), path: path.to_owned() }
    }

    /// Writes one sample of a cell.
    pub fn append(&mut self, cell: &str, sample: &Sample) -> Result<(), StoreError> {
        write_sample(&mut self.out, cell, sample).map_err(StoreError::io("write", &self.path))
    }

    /// Hands everything to the system.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.out.flush().map_err(StoreError::io("write", &self.path))
    }
}

fn write_sample(out: &mut impl Write, cell: &str, sample: &Sample) -> std::io::Result<()> {
    if cell.contains([',', '"']) {
        write!(out, "\"{}\"", cell.replace('"', "\"\""))?;
    } else {
        write!(out, "{cell}")?;
    }
    write!(out, ",{},{},{},{}", sample.phase.name(), sample.round, sample.frame, sample.start_ns)?;
    for part in sample.parts_ns {
        match part {
            Some(ns) => write!(out, ",{ns}")?,
            None => write!(out, ",")?,
        }
    }
    writeln!(out, ",{},{}", sample.total_ns, sample.detections)
}

/// Reads `samples.csv`: cell and sample in the order of the file. A torn last line is left out, any other bad line is an error.
pub fn read_samples(path: &Path) -> Result<Vec<(String, Sample)>, StoreError> {
    let bytes = below::read(path, Kind::Lines)?;
    let malformed = |line: u64, reason: &str| StoreError::Malformed {
        path: path.to_owned(),
        line: Some(line),
        reason: reason.to_owned(),
    };
    let mut lines = whole_lines(&bytes);
    match lines.next() {
        Some((_, header)) if header == HEADER.as_bytes() => {}
        Some((number, _)) => return Err(malformed(number, "not the header of samples.csv")),
        None => return Ok(Vec::new()),
    }
    lines
        .map(|(number, line)| {
            let text = std::str::from_utf8(line).map_err(|_| malformed(number, "not text"))?;
            parse(text).ok_or_else(|| malformed(number, "not a sample"))
        })
        .collect()
}

fn parse(line: &str) -> Option<(String, Sample)> {
    let (cell, rest) = match line.strip_prefix('"') {
        Some(quoted) => {
            // The fields behind the cell hold no quotes, so the last one closes it.
            let (cell, rest) = quoted.rsplit_once("\",")?;
            (cell.replace("\"\"", "\""), rest)
        }
        None => line.split_once(',').map(|(cell, rest)| (cell.to_owned(), rest))?,
    };
    let mut fields = rest.split(',');
    let phase = phase(fields.next()?)?;
    let round = fields.next()?.parse().ok()?;
    let frame = fields.next()?.parse().ok()?;
    let start_ns = fields.next()?.parse().ok()?;
    let mut parts_ns = [None; 5];
    for part in &mut parts_ns {
        let field = fields.next()?;
        *part = if field.is_empty() { None } else { Some(field.parse().ok()?) };
    }
    let total_ns = fields.next()?.parse().ok()?;
    let detections = fields.next()?.parse().ok()?;
    let sample = Sample { start_ns, phase, round, frame, detections, parts_ns, total_ns };
    fields.next().is_none().then_some((cell, sample))
}

fn phase(word: &str) -> Option<Phase> {
    [Phase::Cold, Phase::Warmup, Phase::Steady, Phase::Throughput].into_iter().find(|p| p.name() == word)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn sample(start_ns: u64, phase: Phase) -> Sample {
        let parts_ns = [Some(11), None, Some(0), None, Some(u64::MAX)];
        Sample { start_ns, phase, round: 2, frame: 7, detections: 5, parts_ns, total_ns: 99 }
    }

    #[test]
    fn the_file_reads_as_the_design_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        let mut log = SampleLog::open(&path).unwrap();
        log.append("builtin-rgb:rten:fp32", &sample(123, Phase::Steady)).unwrap();
        log.flush().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let expected = format!("{HEADER}\nbuiltin-rgb:rten:fp32,steady,2,7,123,11,,0,,{},99,5\n", u64::MAX);
        assert_eq!(text, expected);
    }

    #[test]
    fn samples_come_back_over_two_sittings_and_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        let cells = ["plain", "a,b", "say \"x\",", "\"q\""];
        let mut want = Vec::new();
        for (sitting, phase) in [Phase::Cold, Phase::Throughput].into_iter().enumerate() {
            let mut log = SampleLog::open(&path).unwrap();
            for (i, cell) in cells.into_iter().enumerate() {
                let sample = sample((sitting * 10 + i) as u64, phase);
                log.append(cell, &sample).unwrap();
                want.push((cell.to_owned(), sample));
            }
            log.flush().unwrap();
            drop(log);
            let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            file.write_all(b"plain,steady,2,7,12").unwrap();
        }
        assert_eq!(read_samples(&path).unwrap(), want);
    }

    #[test]
    fn a_bad_line_is_an_error_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        for bad in
            ["c,steady,1,1,1,,,,,,9", "c,nap,1,1,1,,,,,,9,0", "c,steady,1,1,1,,,,,,9,0,0", "c,steady,1,1,1,,,x,,,9,0"]
        {
            fs::write(&path, format!("{HEADER}\nc,steady,1,1,1,,,,,,9,0\n{bad}\nc,steady,1,1,1,,,,,,9,0\n")).unwrap();
            let error = read_samples(&path).unwrap_err().to_string();
            assert!(error.contains("samples.csv line 3"), "{bad}: {error}");
        }
        fs::write(&path, "other,header\n").unwrap();
        assert!(read_samples(&path).is_err());
        assert!(read_samples(Path::new("/no/samples.csv")).unwrap_err().to_string().contains("/no/samples.csv"));
    }

    #[test]
    fn a_full_disk_is_an_error_and_not_a_panic() {
        let full = File::options().append(true).open("/dev/full").unwrap();
        let mut log = SampleLog::on(full, Path::new("/dev/full"));
        log.append("c", &sample(1, Phase::Steady)).unwrap();
        assert!(log.flush().unwrap_err().is_full());
    }
}
