//! The oldest glibc that a binary runs on.

use std::fmt;

use anyhow::{Context as _, Result, ensure};

use crate::elf;

/// A version of glibc; in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Glibc([u32; 3]);

impl Glibc {
    /// The version with these numbers.
    pub(crate) const fn new(major: u32, minor: u32) -> Glibc {
        Glibc([major, minor, 0])
    }

    /// `2.31` or `2.2.5`.
    fn parse(text: &str) -> Option<Glibc> {
        let mut numbers = [0; 3];
        let mut parts = text.split('.');
        for (index, number) in numbers.iter_mut().enumerate() {
            match parts.next() {
                Some(part) => *number = part.parse().ok()?,
                None if index < 2 => return None,
                None => {}
            }
        }
        parts.next().is_none().then_some(Glibc(numbers))
    }
}

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}")?;
        if patch > 0 { write!(f, ".{patch}") } else { Ok(()) }
    }
}

/// The highest version among the symbols that the binary needs, which is the oldest glibc it starts on.
///
/// An error where that is above `floor`, where the binary is for another machine, and where nothing of glibc is
/// needed at all: then there was nothing to check.
pub(crate) fn check(binary: &[u8], machine: u16, floor: Glibc) -> Result<Glibc> {
    let needs = elf::read(binary)?;
    ensure!(needs.machine == machine, "built for another machine (ELF machine {}, not {machine})", needs.machine);
    let mut highest = None;
    for need in &needs.versions {
        let Some(text) = need.version.strip_prefix("GLIBC_") else { continue };
        // GLIBC_PRIVATE ties a binary to one build of glibc; GLIBC_ABI_… are promises of later ones.
        let version = Glibc::parse(text)
            .with_context(|| format!("needs {} of {}, which is not in every glibc", need.version, need.library))?;
        ensure!(
            version <= floor,
            "needs {} of {}, above the floor {floor}; find the symbol with `objdump -T` and what brings it in",
            need.version,
            need.library
        );
        highest = highest.max(Some(version));
    }
    highest.context("needs no version of glibc, so the check found nothing to check; is it linked statically?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::tests::file;

    const FLOOR: Glibc = Glibc::new(2, 31);

    fn refusal(needs: &[(&str, &[&str])]) -> String {
        format!("{:#}", check(&file(183, needs), 183, FLOOR).unwrap_err())
    }

    #[test]
    fn the_highest_version_over_all_libraries_counts() {
        let needs: &[(&str, &[&str])] =
            &[("libm.so.6", &["GLIBC_2.29"]), ("libc.so.6", &["GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.4"])];
        assert_eq!(check(&file(62, needs), 62, FLOOR).unwrap().to_string(), "2.29");
    }

    #[test]
    fn the_floor_itself_is_allowed_and_anything_above_is_not() {
        assert_eq!(check(&file(183, &[("libc.so.6", &["GLIBC_2.31"])]), 183, FLOOR).unwrap(), FLOOR);
        for above in ["GLIBC_2.32", "GLIBC_2.31.1", "GLIBC_2.100", "GLIBC_3.0"] {
            let message = refusal(&[("libm.so.6", &["GLIBC_2.17"]), ("libc.so.6", &["GLIBC_2.17", above])]);
            assert!(message.starts_with(&format!("needs {above} of libc.so.6, above the floor 2.31")), "{message}");
        }
    }

    #[test]
    fn a_name_without_numbers_is_no_version_that_can_be_allowed() {
        for name in ["GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR", "GLIBC_2", "GLIBC_2.1.2.3", "GLIBC_2.x"] {
            let message = refusal(&[("libc.so.6", &["GLIBC_2.17", name])]);
            assert_eq!(message, format!("needs {name} of libc.so.6, which is not in every glibc"));
        }
    }

    #[test]
    fn versions_of_other_libraries_are_not_glibc() {
        let needs: &[(&str, &[&str])] = &[("libgcc_s.so.1", &["GCC_4.2.0"]), ("libc.so.6", &["GLIBC_2.17"])];
        assert_eq!(check(&file(183, needs), 183, FLOOR).unwrap(), Glibc::new(2, 17));
        assert!(refusal(&[("libgcc_s.so.1", &["GCC_4.2.0"])]).contains("nothing to check"));
    }

    #[test]
    fn a_binary_for_another_machine_is_refused() {
        let message = check(&file(62, &[("libc.so.6", &["GLIBC_2.17"])]), 183, FLOOR).unwrap_err().to_string();
        assert!(message.contains("another machine"), "{message}");
    }

    #[test]
    fn its_own_executable_is_above_a_floor_of_long_ago() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let machine = elf::read(&bytes).unwrap().machine;
        let highest = check(&bytes, machine, Glibc::new(2, 999)).unwrap();
        assert!(highest >= Glibc::new(2, 4), "{highest}");
        let message = check(&bytes, machine, Glibc::new(2, 0)).unwrap_err().to_string();
        assert!(message.contains("above the floor 2.0"), "{message}");
    }
}
