//! Logs of one JSON object a line: `events.jsonl`, `metrics.jsonl`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use prony_files::Kind;
use prony_types::Telemetry;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{StoreError, below};

/// Appends objects, a line each, in one write: a line is on its way to the disk when `append` returns.
#[derive(Debug)]
pub struct LineLog {
    file: File,
    path: PathBuf,
    line: Vec<u8>,
}

impl LineLog {
    /// Opens a log at its end, or makes it. What a crash left of a last line is cut off.
    pub fn open(path: &Path) -> Result<LineLog, StoreError> {
        let (file, _) = open_at_end(path)?;
        Ok(LineLog::on(file, path))
    }

    /// A log in a file that is open already.
    pub fn on(file: File, path: &Path) -> LineLog {
        LineLog { file, path: path.to_owned(), line: Vec::new() }
    }

    /// Writes one object.
    pub fn append<T: Serialize>(&mut self, object: &T) -> Result<(), StoreError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, object).map_err(|error| StoreError::Malformed {
            path: self.path.clone(),
            line: None,
            reason: format!("an object cannot be written as JSON: {error}"),
        })?;
        self.line.push(b'\n');
        self.file.write_all(&self.line).map_err(StoreError::io("write", &self.path))
    }
}

/// Reads a log; a torn last line is left out, any other bad line is an error.
pub fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, StoreError> {
    let bytes = below::read(path, Kind::Lines)?;
    whole_lines(&bytes)
        .map(|(number, line)| {
            serde_json::from_slice(line).map_err(|error| StoreError::Malformed {
                path: path.to_owned(),
                line: Some(number),
                reason: error.to_string(),
            })
        })
        .collect()
}

/// Reads `metrics.jsonl`.
pub fn read_telemetry(path: &Path) -> Result<Vec<Telemetry>, StoreError> {
    read_lines(path)
}

/// Lines that end with a newline, numbered from 1; empty ones are left out.
pub(crate) fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let end = bytes.iter().rposition(|&b| b == b'\n').unwrap_or(0);
    (1u64..).zip(bytes[..end].split(|&b| b == b'\n')).filter(|(_, line)| !line.is_empty())
}

/// Opens a file for appending after its last whole line; also says whether it is empty then.
pub(crate) fn open_at_end(path: &Path) -> Result<(File, bool), StoreError> {
    let (file, mut reader) = below::append(path)?;
    let length = file.metadata().map_err(StoreError::io("open", path))?.len();
    let whole = whole_length(&mut reader, length).map_err(StoreError::io("read", path))?;
    if whole < length {
        file.set_len(whole).map_err(StoreError::io("cut the torn last line of", path))?;
    }
    Ok((file, whole == 0))
}

/// Bytes up to and with the last newline, looked for from the end.
fn whole_length(file: &mut File, length: u64) -> std::io::Result<u64> {
    let mut end = length;
    let mut block = [0; 4096];
    while end > 0 {
        let size = end.min(block.len() as u64);
        file.seek(SeekFrom::Start(end - size))?;
        let block = &mut block[..size as usize];
        file.read_exact(block)?;
        if let Some(at) = block.iter().rposition(|&b| b == b'\n') {
            return Ok(end - size + at as u64 + 1);
        }
        end -= size;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::symlink;

    use super::*;

    fn reading(t_ns: u64) -> Telemetry {
        Telemetry { t_ns, load1: Some(0.5), ..Telemetry::default() }
    }

    #[test]
    fn a_log_survives_a_torn_line_and_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut log = LineLog::open(&path).unwrap();
        log.append(&reading(1)).unwrap();
        log.append(&reading(2)).unwrap();
        drop(log);
        // Longer than a block, so that the search goes back more than once.
        let torn = format!("{{\"t_ns\": 3, \"cell\": \"{}", "x".repeat(9_000));
        OpenOptions::new().append(true).open(&path).unwrap().write_all(torn.as_bytes()).unwrap();
        assert_eq!(read_telemetry(&path).unwrap(), [reading(1), reading(2)]);
        LineLog::open(&path).unwrap().append(&reading(4)).unwrap();
        assert_eq!(read_telemetry(&path).unwrap(), [reading(1), reading(2), reading(4)]);
    }

    #[test]
    fn a_bad_line_in_the_middle_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        fs::write(&path, "{\"t_ns\":1}\nnonsense\n{\"t_ns\":2}\n").unwrap();
        let error = read_telemetry(&path).unwrap_err().to_string();
        assert!(error.contains("metrics.jsonl line 2"), "{error}");
    }

    #[test]
    fn an_empty_or_wholly_torn_log_has_no_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        fs::write(&path, "").unwrap();
        assert!(read_telemetry(&path).unwrap().is_empty());
        fs::write(&path, "{\"t_ns\":").unwrap();
        assert!(read_telemetry(&path).unwrap().is_empty());
    }

    #[test]
    fn a_full_disk_is_an_error_and_not_a_panic() {
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut log = LineLog::on(full, Path::new("/dev/full"));
        let error = log.append(&reading(1)).unwrap_err();
        assert!(error.is_full());
        assert!(error.to_string().contains("/dev/full: No space left on device"), "{error}");
        assert!(error.to_string().ends_with("; free some space or name another folder with --out"), "{error}");
    }
    #[test]
    fn a_log_of_a_foreign_run_was_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("precious");
        let at = |name: &str| folder.path().join(name);
        fs::write(&target, "{\"t_ns\":1}\nno newline").unwrap();
        symlink(&target, at("metrics.jsonl")).unwrap();
        symlink("/dev/zero", at("events.jsonl")).unwrap();
        fs::hard_link(&target, at("hard.jsonl")).unwrap();
        fs::create_dir(at("folder.jsonl")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe.jsonl")).status().unwrap().success());
        for name in ["metrics.jsonl", "events.jsonl", "hard.jsonl", "folder.jsonl", "pipe.jsonl"] {
            let error = LineLog::open(&at(name)).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        for name in ["metrics.jsonl", "events.jsonl", "pipe.jsonl"] {
            let error = read_telemetry(&at(name)).unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
        assert_eq!(fs::read(&target).unwrap(), b"{\"t_ns\":1}\nno newline", "not even its last line was cut");
    }
}
