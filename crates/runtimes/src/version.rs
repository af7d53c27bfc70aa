//! Versions as wheels have them, ordered by number and not by letter.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A release such as `1.31.1`, `2026.4.1` or `1.25.0.dev3`. Safe as the name of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(String);

/// What comes after the numbers, in order of age: development, alpha, beta, candidate, the release, later fixes.
const FINAL: u8 = 4;

impl Version {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// No development version, no candidate.
    pub fn is_final(&self) -> bool {
        self.key().1 >= FINAL
    }

    /// The same release, however many zeros were typed: `1.20` is `1.20.0`.
    pub fn is_same(&self, other: &Version) -> bool {
        self.key() == other.key()
    }

    /// Numbers without trailing zeros, stage, number of the stage.
    fn key(&self) -> (Vec<u64>, u8, u64) {
        let public = self.0.split('+').next().unwrap_or_default().to_ascii_lowercase();
        let end = public.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(public.len());
        let (numbers, rest) = public.split_at(end);
        let number = |text: &str| text.parse().unwrap_or(0);
        let mut numbers: Vec<u64> =
            numbers.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).map(number).collect();
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let stage = match rest[..digits].trim_end_matches(['.', '-', '_']) {
            "" => FINAL,
            "dev" => 0,
            "a" | "alpha" => 1,
            "b" | "beta" => 2,
            "c" | "rc" | "pre" | "preview" => 3,
            _ => FINAL + 1,
        };
        let stage_number = rest[digits..].split(|c: char| !c.is_ascii_digit()).next().map_or(0, number);
        (numbers, stage, stage_number)
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Version, String> {
        let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
        if text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(safe) && text.len() <= 64 {
            Ok(Version(text.to_owned()))
        } else {
            Err(format!("`{text}` is not a version; one looks like 1.20.1"))
        }
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Version, String> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> String {
        version.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Version) -> Ordering {
        self.key().cmp(&other.key()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn numbers_decide() {
        let ordered = [
            "1.9.0",
            "1.20.0.dev20251031003",
            "1.20.0a1",
            "1.20.0rc1",
            "1.20.0rc2",
            "1.20.0",
            "1.20.0.post1",
            "1.20.1",
            "1.31.1",
            "2026.4.1",
        ];
        for pair in ordered.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn zeros_at_the_end_say_nothing() {
        assert!(version("1.20").is_same(&version("1.20.0")));
        assert!(!version("1.20").is_same(&version("1.2")));
        assert!(version("1.20.0").is_final() && version("1.20.0.post1").is_final());
        assert!(!version("1.24.0.dev20251031003").is_final() && !version("2.0rc1").is_final());
    }

    #[test]
    fn a_version_is_no_path() {
        for bad in ["", ".", "..", "../1", "1/2", "v1", "1 2", "1\n"] {
            bad.parse::<Version>().unwrap_err();
        }
    }
}
