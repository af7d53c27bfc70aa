//! Versions of TensorRT, and the families whose objects are laid out alike.

use std::fmt;

/// A version of TensorRT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// What decides the layouts.
    pub major: u32,
    /// Grows with features.
    pub minor: u32,
    /// Grows with corrections.
    pub patch: u32,
}

impl Version {
    /// A version by its parts.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version { major, minor, patch }
    }

    /// From what `getInferLibVersion` answers: 8600 is 8.6.0, 101601 is 10.16.1.
    pub fn from_number(number: i32) -> Version {
        let number = u32::try_from(number).unwrap_or(0);
        let thousands = if number < 100_000 { 1_000 } else { 10_000 };
        Version::new(number / thousands, number % thousands / 100, number % 100)
    }

    /// The number that the create functions of this version want.
    pub fn number(self) -> i32 {
        let thousands = if self.major < 10 { 1_000 } else { 10_000 };
        i32::try_from(self.major * thousands + self.minor * 100 + self.patch).unwrap_or(i32::MAX)
    }

    pub(crate) const fn at_least(self, other: Version) -> bool {
        let (a, b) = (self, other);
        a.major > b.major || a.major == b.major && (a.minor > b.minor || a.minor == b.minor && a.patch >= b.patch)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Majors whose objects are laid out alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// 8.x
    V8,
    /// 10.x
    V10,
    /// 11.x
    V11,
}

impl Family {
    /// The family of a version; none where the layouts of its major are not known.
    pub fn of(version: Version) -> Option<Family> {
        match version.major {
            8 => Some(Family::V8),
            10 => Some(Family::V10),
            11 => Some(Family::V11),
            _ => None,
        }
    }

    /// The oldest version of the family whose layouts are known.
    pub(crate) const fn first(self) -> Version {
        match self {
            Family::V8 => Version::new(8, 0, 1),
            Family::V10 => Version::new(10, 0, 0),
            Family::V11 => Version::new(11, 0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_encodings_are_read_and_written() {
        for (number, text) in [
            (8201, "8.2.1"),
            (8403, "8.4.3"),
            (8600, "8.6.0"),
            (9300, "9.3.0"),
            (100_001, "10.0.1"),
            (101_601, "10.16.1"),
            (110_400, "11.4.0"),
        ] {
            let version = Version::from_number(number);
            assert_eq!(version.to_string(), text);
            assert_eq!(version.number(), number);
            assert_eq!(text.parse::<Version>().unwrap(), version);
        }
        assert_eq!(Version::from_number(-1), Version::new(0, 0, 0));
    }

    #[test]
    fn order_is_that_of_the_parts() {
        let mut versions =
            ["10.9.0", "10.10.0", "8.6.1", "11.0.0", "8.6.0"].map(|text| text.parse::<Version>().unwrap());
        versions.sort();
        assert_eq!(versions.map(|v| v.to_string()), ["8.6.0", "8.6.1", "10.9.0", "10.10.0", "11.0.0"]);
        for (i, a) in versions.iter().enumerate() {
            for (j, b) in versions.iter().enumerate() {
                assert_eq!(a.at_least(*b), i >= j, "{a} {b}");
            }
        }
    }

    #[test]
    fn majors_with_unknown_layouts_have_no_family() {
        for (major, family) in [(8, Family::V8), (10, Family::V10), (11, Family::V11)] {
            assert_eq!(Family::of(Version::new(major, 99, 9)), Some(family));
        }
        for major in [0, 7, 9, 12, 80] {
            assert_eq!(Family::of(Version::new(major, 0, 0)), None);
        }
    }
}
