//! `samples.csv`: every sample of a run.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use prony_files::Kind;
use prony_types::text::{csv_field, csv_text};
use prony_types::{Phase, Sample};

use crate::{StoreError, below};

const HEADER: &str = "cell,phase,round,frame,start_ns,preprocess_ns,h2d_ns,inference_ns,d2h_ns,postprocess_ns,total_ns,\
                      detections,attempt";
/// Of files that tell no attempt from another: those of version 0.1.0 and before.
const OLD_HEADER: &str =
    "cell,phase,round,frame,start_ns,preprocess_ns,h2d_ns,inference_ns,d2h_ns,postprocess_ns,total_ns,detections";
/// A cell's id without an end that is longer than this is damage, not a line that was cut short.
const LONGEST_TORN_CELL: usize = 1 << 14;

/// Read at once.
const BLOCK: u64 = 1 << 20;

/// A row of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedSample {
    /// The cell's id.
    pub cell: String,
    /// Which attempt at the cell, from 1; `None` in a file of an old version, which does not say.
    pub attempt: Option<u32>,
    /// What was measured.
    pub sample: Sample,
}

/// Appends samples through a buffer; what `flush` has returned for is in the file.
#[derive(Debug)]
pub struct SampleLog {
    out: BufWriter<File>,
    path: PathBuf,
    /// Whether the file has a column for them.
    attempts: bool,
}

impl SampleLog {
    /// Opens the file at its end, or makes it with its header. What a crash left of a last line is cut off.
    pub fn open(path: &Path) -> Result<SampleLog, StoreError> {
        let io = |action| StoreError::io(action, path);
        let (file, mut reader) = below::append(path)?;
        let length = file.metadata().map_err(io("open"))?.len();
        let mut attempts = true;
        let walked = walk(&mut reader, &mut |record| {
            attempts &= record.line > 1 || record.text != OLD_HEADER.as_bytes();
            Ok(())
        });
        let whole = match walked {
            Ok(whole) => whole,
            Err(Halt::Io(cause)) => return Err(io("read")(cause)),
            Err(Halt::Bad(line, reason)) => {
                let reason = reason.to_owned();
                return Err(StoreError::Malformed { path: path.to_owned(), line: Some(line), reason });
            }
        };
        if whole < length {
            file.set_len(whole).map_err(io("cut the torn last line of"))?;
        }
        let mut log = SampleLog::on(file, path);
        log.attempts = attempts;
        if whole == 0 {
            writeln!(log.out, "{HEADER}").map_err(io("write"))?;
        }
        Ok(log)
    }

    /// A log in a file that is open already and has its header.
    pub fn on(file: File, path: &Path) -> SampleLog {
        SampleLog { out: BufWriter::with_capacity(1 << 16, file), path: path.to_owned(), attempts: true }
    }

    /// Writes one sample of a cell.
    pub fn append(&mut self, cell: &str, attempt: u32, sample: &Sample) -> Result<(), StoreError> {
        let attempt = self.attempts.then_some(attempt);
        write_sample(&mut self.out, cell, attempt, sample).map_err(StoreError::io("write", &self.path))
    }

    /// Hands everything to the system.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.out.flush().map_err(StoreError::io("write", &self.path))
    }
}

fn write_sample(out: &mut impl Write, cell: &str, attempt: Option<u32>, sample: &Sample) -> std::io::Result<()> {
    let cell = csv_field(cell);
    write!(out, "{cell},{},{},{},{}", sample.phase.name(), sample.round, sample.frame, sample.start_ns)?;
    for part in sample.parts_ns {
        match part {
            Some(ns) => write!(out, ",{ns}")?,
            None => write!(out, ",")?,
        }
    }
    write!(out, ",{},{}", sample.total_ns, sample.detections)?;
    match attempt {
        Some(attempt) => writeln!(out, ",{attempt}"),
        None => writeln!(out),
    }
}

/// Shows every row of `samples.csv` in the order of the file, of which a piece at a time is in memory. A torn last line is left
/// out, any other bad line is an error.
pub fn each_sample(path: &Path, visit: &mut dyn FnMut(LoggedSample)) -> Result<(), StoreError> {
    let file = below::open(path, Kind::Lines)?;
    each_row(file, visit).map_err(|halt| match halt {
        Halt::Io(cause) => StoreError::io("read", path)(cause),
        Halt::Bad(line, reason) => {
            StoreError::Malformed { path: path.to_owned(), line: Some(line), reason: reason.to_owned() }
        }
    })
}

/// The rows of `samples.csv`, all of them.
pub fn read_samples(path: &Path) -> Result<Vec<LoggedSample>, StoreError> {
    let mut rows = Vec::new();
    each_sample(path, &mut |row| rows.push(row))?;
    Ok(rows)
}

/// The rows of a `samples.csv`, or the line that is none and what is wrong with it.
pub fn parse_samples(bytes: &[u8]) -> Result<Vec<LoggedSample>, (u64, &'static str)> {
    let mut rows = Vec::new();
    match each_row(bytes, &mut |row| rows.push(row)) {
        Ok(()) => Ok(rows),
        Err(Halt::Bad(line, reason)) => Err((line, reason)),
        Err(Halt::Io(_)) => Err((0, "cannot be read")),
    }
}

/// Why reading ended early.
enum Halt {
    Io(std::io::Error),
    /// The line, and what is wrong with it.
    Bad(u64, &'static str),
}

fn each_row(from: impl Read, visit: &mut dyn FnMut(LoggedSample)) -> Result<(), Halt> {
    let mut attempts = None;
    let walked = walk(from, &mut |record| {
        let Some(attempts) = attempts else {
            attempts = match record.text {
                text if text == HEADER.as_bytes() => Some(true),
                text if text == OLD_HEADER.as_bytes() => Some(false),
                _ => return Err(Halt::Bad(record.line, "not the header of samples.csv")),
            };
            return Ok(());
        };
        if !record.text.is_empty() {
            let text = std::str::from_utf8(record.text).map_err(|_| Halt::Bad(record.line, "not text"))?;
            visit(parse(text, attempts).ok_or(Halt::Bad(record.line, "not a sample"))?);
        }
        Ok(())
    });
    walked.map(drop)
}

/// A whole row.
struct Record<'a> {
    /// The line it begins on, from 1.
    line: u64,
    /// Without its newline.
    text: &'a [u8],
}

/// Shows every whole row of a stream, and says how many bytes they have together. Only the cell, which comes first, may be
/// quoted, and then it may hold newlines.
fn walk(mut from: impl Read, each: &mut dyn FnMut(&Record<'_>) -> Result<(), Halt>) -> Result<u64, Halt> {
    let mut block = Vec::new();
    let (mut line, mut whole) = (1, 0);
    loop {
        let got = from.by_ref().take(BLOCK).read_to_end(&mut block).map_err(Halt::Io)?;
        let mut at = 0;
        while let Some(length) = row_length(&block[at..]) {
            let text = &block[at..at + length];
            each(&Record { line, text })?;
            line += 1 + text.iter().filter(|&&byte| byte == b'\n').count() as u64;
            at += length + 1;
        }
        whole += at as u64;
        block.drain(..at);
        // A row that is not over after a whole block never will be.
        if block.len() > if got == 0 { LONGEST_TORN_CELL } else { BLOCK as usize } {
            return Err(Halt::Bad(line, "a quote is not closed"));
        }
        if got == 0 {
            return Ok(whole);
        }
    }
}

/// Bytes of the row that a text begins with, where it is whole.
fn row_length(text: &[u8]) -> Option<usize> {
    let cell = if text.first() == Some(&b'"') { closing_quote(text)? } else { 0 };
    Some(cell + text[cell..].iter().position(|&byte| byte == b'\n')?)
}

/// Where the quote ends that a text begins with; a doubled one is a quote of the text itself.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += text.get(at..)?.iter().position(|&byte| byte == b'"')?;
        if text.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

fn parse(record: &str, attempts: bool) -> Option<LoggedSample> {
    let (cell, rest) = match record.starts_with('"') {
        true => {
            let end = closing_quote(record.as_bytes())?;
            let cell = record[1..end].replace("\"\"", "\"");
            (csv_text(&cell).to_owned(), record[end + 1..].strip_prefix(',')?)
        }
        false => record.split_once(',').map(|(cell, rest)| (csv_text(cell).to_owned(), rest))?,
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
    let attempt = if attempts { Some(fields.next()?.parse().ok()?) } else { None };
    let sample = Sample { start_ns, phase, round, frame, detections, parts_ns, total_ns };
    fields.next().is_none().then_some(LoggedSample { cell, attempt, sample })
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
        log.append("builtin-rgb:rten:fp32", 1, &sample(123, Phase::Steady)).unwrap();
        log.flush().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let expected = format!("{HEADER}\nbuiltin-rgb:rten:fp32,steady,2,7,123,11,,0,,{},99,5,1\n", u64::MAX);
        assert_eq!(text, expected);
    }

    #[test]
    fn samples_come_back_over_two_sittings_and_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        let cells =
            ["plain", "a,b", "say \"x\",", "\"q\"", "two\nlines", "\"\n\",\r", "=1+1", "'=1", "-a", "", " x ", "\n\n"];
        let mut want = Vec::new();
        for (sitting, phase) in [Phase::Cold, Phase::Throughput].into_iter().enumerate() {
            let mut log = SampleLog::open(&path).unwrap();
            for (i, cell) in cells.into_iter().enumerate() {
                let sample = sample((sitting * 10 + i) as u64, phase);
                log.append(cell, sitting as u32 + 1, &sample).unwrap();
                want.push(LoggedSample { cell: cell.to_owned(), attempt: Some(sitting as u32 + 1), sample });
            }
            log.flush().unwrap();
            drop(log);
            let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            // Inside the name, inside its second line, and behind it.
            file.write_all([&b"\"two\nli"[..], b"plain,steady,2,7,12"][sitting]).unwrap();
        }
        assert_eq!(read_samples(&path).unwrap(), want);
    }

    #[test]
    fn a_bad_line_is_an_error_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        for bad in [
            "c,steady,1,1,1,,,,,,9",
            "c,nap,1,1,1,,,,,,9,0",
            "c,steady,1,1,1,,,,,,9,0,1,0",
            "c,steady,1,1,1,,,x,,,9,0,1",
            "\"c\"x,steady,1,1,1,,,,,,9,0,1",
        ] {
            fs::write(&path, format!("{HEADER}\nc,steady,1,1,1,,,,,,9,0,1\n{bad}\nc,steady,1,1,1,,,,,,9,0,1\n"))
                .unwrap();
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
        log.append("c", 1, &sample(1, Phase::Steady)).unwrap();
        assert!(log.flush().unwrap_err().is_full());
    }

    #[test]
    fn a_quote_that_is_not_closed_does_not_swallow_the_rest() {
        let row = "c,steady,1,1,1,,,,,,9,0,1\n";
        let text = format!("{HEADER}\n{row}\"{}", row.repeat(2000));
        assert_eq!(parse_samples(text.as_bytes()), Err((3, "a quote is not closed")));
    }

    #[test]
    fn a_file_of_an_old_version_is_read_and_written_on_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        fs::write(&path, format!("{OLD_HEADER}\n\"a,b\",steady,2,7,123,11,,0,,5,99,5\n")).unwrap();
        let mut log = SampleLog::open(&path).unwrap();
        log.append("a,b", 2, &sample(7, Phase::Cold)).unwrap();
        log.flush().unwrap();
        let rows = read_samples(&path).unwrap();
        let told: Vec<_> = rows.iter().map(|row| (row.cell.as_str(), row.attempt, row.sample.phase)).collect();
        assert_eq!(told, [("a,b", None, Phase::Steady), ("a,b", None, Phase::Cold)]);
    }
}
