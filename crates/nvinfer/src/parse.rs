//! Versions of TensorRT from text.

use std::str::FromStr;

use crate::{Error, Version};

impl FromStr for Version {
    type Err = Error;

    /// Two to four numbers; the fourth, the build, is not kept.
    fn from_str(text: &str) -> Result<Version, Error> {
        let parts: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
        match parts.as_deref() {
            Some([major, minor]) => Ok(Version::new(*major, *minor, 0)),
            Some([major, minor, patch] | [major, minor, patch, _]) => Ok(Version::new(*major, *minor, *patch)),
            _ => Err(Error::Text {
                what: format!("version '{text}'"),
                reason: "expected numbers with dots, such as 10.3.0".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_with_and_without_its_build_and_refused_otherwise() {
        assert_eq!("10.3".parse::<Version>().unwrap(), Version::new(10, 3, 0));
        assert_eq!("8.5.2.2".parse::<Version>().unwrap(), Version::new(8, 5, 2));
        for bad in ["", "8", "8.6.x", "8..6", "1.2.3.4.5", "-8.6.0"] {
            let error = bad.parse::<Version>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{bad}'")), "{error}");
        }
    }
}
