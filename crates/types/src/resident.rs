//! How many cells are loaded at a time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many cells may be loaded together. Only those that are have rounds in common, so only they are compared in pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resident {
    /// As many as fit into memory.
    #[default]
    Auto,
    /// This many at most, whatever the memory holds.
    AtMost(u32),
}

impl fmt::Display for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resident::Auto => f.write_str("auto"),
            Resident::AtMost(cells) => cells.fmt(f),
        }
    }
}

impl FromStr for Resident {
    type Err = String;

    fn from_str(text: &str) -> Result<Resident, String> {
        match text.trim() {
            "auto" => Ok(Resident::Auto),
            number => match number.parse() {
                Ok(cells) if cells > 0 => Ok(Resident::AtMost(cells)),
                _ => Err(format!("`{text}` is not `auto` or a number of cells from 1")),
            },
        }
    }
}

impl Serialize for Resident {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Resident::Auto => serializer.collect_str(self),
            Resident::AtMost(cells) => serializer.serialize_u32(*cells),
        }
    }
}

impl<'de> Deserialize<'de> for Resident {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Resident, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected `auto` or a number of cells")]
        enum Raw {
            Number(u32),
            Text(String),
        }
        let text = match Raw::deserialize(deserializer)? {
            Raw::Number(cells) => cells.to_string(),
            Raw::Text(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_from_1_or_auto_is_understood() {
        assert_eq!("auto".parse(), Ok(Resident::Auto));
        assert_eq!("3".parse(), Ok(Resident::AtMost(3)));
        for wrong in ["0", "-1", "all", "", "1.5"] {
            let error = wrong.parse::<Resident>().unwrap_err();
            assert!(error.contains("not `auto` or a number of cells from 1"), "{error}");
        }
        for resident in [Resident::Auto, Resident::AtMost(7)] {
            assert_eq!(resident.to_string().parse(), Ok(resident));
        }
    }
}
