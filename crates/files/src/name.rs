//! Names below a folder: one component, and drafts that nobody can guess.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Component, Path};

/// Bytes of a name that its draft begins with.
const LONGEST_STEM: usize = 200;

/// A name that stays in its folder: one component, neither `..` nor absolute.
pub(crate) fn checked(name: &Path) -> io::Result<&OsStr> {
    let mut components = name.components();
    match (components.next(), components.next()) {
        // `a/` and `./a` have one component as well, so what is left must be the name itself.
        (Some(Component::Normal(only)), None) if only == name.as_os_str() => Ok(only),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{}` is not the name of a file in this folder", name.display()),
        )),
    }
}

/// A part of a file name that another process cannot foresee.
#[must_use]
pub fn unguessable() -> String {
    // The standard library seeds its hash keys from the kernel's random numbers.
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// A hidden name beside `name` that another process cannot foresee.
pub(crate) fn draft(name: &OsStr) -> OsString {
    let mut draft = OsString::from(".");
    // A name may have 255 bytes; the draft of a long one is shortened instead of refused.
    let name = name.to_string_lossy();
    draft.push(&name[..name.floor_char_boundary(LONGEST_STEM)]);
    draft.push(format!(".{}.tmp", unguessable()));
    draft
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_led_out_of_the_folder() {
        for name in ["../x", "..", ".", "", "/etc/passwd", "a/b", "a/", "./a", "a/../../x", "//"] {
            let error = checked(Path::new(name)).expect_err(name).to_string();
            assert!(error.contains("is not the name of a file"), "{name}: {error}");
        }
        for name in ["report.json", "..x", "a b", "-", "x:y"] {
            assert_eq!(checked(Path::new(name)).expect(name), name);
        }
    }

    #[test]
    fn a_draft_had_a_name_that_could_be_foreseen() {
        let drafts: std::collections::BTreeSet<OsString> = (0..100).map(|_| draft(OsStr::new("report.json"))).collect();
        assert_eq!(drafts.len(), 100);
        assert!(draft(OsStr::new(&"å".repeat(127))).len() < 255);
    }
}
