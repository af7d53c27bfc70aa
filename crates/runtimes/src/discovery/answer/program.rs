//! Programs: what they print about their version. One that hangs is killed.

use std::path::Path;
use std::time::Duration;

use prony_types::RuntimeName;
use prony_work::{Asking, capture, mortal};

use super::Answer;

/// A version is printed at once; the parent waits for 20 s.
const DEADLINE: Duration = Duration::from_secs(15);

pub(super) fn ask(name: RuntimeName, path: &Path) -> Result<Answer, String> {
    let argument = match name {
        RuntimeName::Ffmpeg => "-version",
        // It knows no question for its version, but prints it before anything else.
        RuntimeName::Trtexec => "--help",
        _ => "--version",
    };
    let output = capture(mortal(path).arg(argument), &Asking::within(DEADLINE))
        .map_err(|error| format!("cannot be run: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    if let Some(version) = version(name, &printed).or_else(|| version(name, &complaint)) {
        return Ok(Answer::version(version));
    }
    let first = complaint.lines().chain(printed.lines()).map(str::trim).find(|line| !line.is_empty());
    let words = first.unwrap_or("it printed nothing");
    Err(format!("`{argument}` tells no version ({}): {words}", output.status))
}

/// The version in what a program prints.
fn version(name: RuntimeName, printed: &str) -> Option<String> {
    if name == RuntimeName::Trtexec {
        let number = printed.split_once("[TensorRT v")?.1.split(']').next()?;
        return number.parse().ok().map(super::nvidia::tensorrt_version);
    }
    let line = printed.lines().find(|line| line.contains(" version "))?;
    let word = line.split_once(" version ")?.1.split_whitespace().next()?;
    Some(word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        let ffmpeg = "ffmpeg version 7.0.2-static https://example.org/ffmpeg/  Copyright (c) 2000-2024";
        assert_eq!(version(RuntimeName::Ffmpeg, ffmpeg).as_deref(), Some("7.0.2-static"));
        let gst = "gst-launch-1.0 version 1.22.0\nGStreamer 1.22.0\n";
        assert_eq!(version(RuntimeName::Gstreamer, gst).as_deref(), Some("1.22.0"));
        let old = "&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --help\n";
        assert_eq!(version(RuntimeName::Trtexec, old).as_deref(), Some("8.6.1"));
        let new = "&&&& RUNNING TensorRT.trtexec [TensorRT v101600] [b21] # trtexec --help\n";
        assert_eq!(version(RuntimeName::Trtexec, new).as_deref(), Some("10.16.0"));
        assert_eq!(version(RuntimeName::Ffmpeg, "hello"), None);
    }
}
