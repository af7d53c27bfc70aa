//! What this machine can load: its architecture and its C library.

use std::fs;

/// The glibc that Prony's own binaries need: where the version cannot be read, this much is there.
const FLOOR: u32 = 31;
/// The oldest C library that current wheels are made for (`manylinux2014`).
const OLDEST: u32 = 17;

/// Where a wheel's libraries would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Platform {
    pub arch: &'static str,
    /// The `36` of glibc 2.36.
    pub glibc: u32,
}

impl Platform {
    /// Of this very process: under an emulator its architecture and its C library, not the host's.
    pub(super) fn here() -> Platform {
        Platform { arch: std::env::consts::ARCH, glibc: loaded_glibc().unwrap_or(FLOOR) }
    }

    /// Platform tags that fit, newest first, as pip takes them.
    pub(super) fn tags(self) -> Vec<String> {
        let arch = self.arch;
        let mut tags: Vec<String> =
            (OLDEST..=self.glibc).rev().map(|minor| format!("manylinux_2_{minor}_{arch}")).collect();
        // The last is what wheels have that were made for one machine only, as on some Jetson indexes.
        tags.extend(["manylinux2014", "manylinux2010", "linux"].map(|old| format!("{old}_{arch}")));
        tags
    }

    /// Whether libraries with these tags (`cp313-cp313-manylinux_2_28_x86_64`) run here, or why not.
    pub(super) fn check(self, tags: &[String]) -> Result<(), String> {
        let platforms: Vec<&str> =
            tags.iter().filter_map(|tag| tag.rsplit('-').next()).flat_map(|p| p.split('.')).collect();
        let reasons: Vec<Option<String>> = platforms.iter().map(|platform| self.objection(platform)).collect();
        if reasons.iter().any(Option::is_none) {
            return Ok(());
        }
        Err(reasons.into_iter().flatten().next().unwrap_or_else(|| "it names no platform".to_owned()))
    }

    fn objection(self, platform: &str) -> Option<String> {
        if platform == "any" {
            return None;
        }
        let Platform { arch, glibc } = self;
        let other = ["x86_64", "aarch64"].into_iter().find(|known| platform.ends_with(&format!("_{known}")));
        match (minor_of(platform), other) {
            (Some(_), Some(other)) if other != arch => Some(format!("it is for {other}, this machine is {arch}")),
            (Some(minor), Some(_)) if minor <= glibc => None,
            (Some(minor), Some(_)) => Some(format!("it needs glibc 2.{minor}, this machine has 2.{glibc}")),
            _ => Some(format!("it is for {platform}, this machine is linux {arch} with glibc 2.{glibc}")),
        }
    }
}

/// The glibc that a platform tag asks for; `None` where it is not glibc's Linux.
fn minor_of(platform: &str) -> Option<u32> {
    if let Some(rest) = platform.strip_prefix("manylinux_2_") {
        return rest.split('_').next()?.parse().ok();
    }
    let (name, _) = platform.split_once('_')?;
    match name {
        "manylinux2014" => Some(17),
        "manylinux2010" => Some(12),
        "manylinux1" => Some(5),
        "linux" => Some(0),
        _ => None,
    }
}

/// Asks the library that this process has loaded, by its own words: no tool needs to be installed for that, and no
/// foreign function called.
fn loaded_glibc() -> Option<u32> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().find_map(|line| {
        let path = &line[line.find('/')?..];
        let name = path.rsplit('/').next()?;
        (name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so"))).then_some(path)
    })?;
    banner_version(&fs::read(path).ok()?)
}

/// From `GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.`
fn banner_version(library: &[u8]) -> Option<u32> {
    let mark = b"GNU C Library ";
    let start = library.windows(mark.len()).position(|window| window == mark)?;
    let banner = library[start..].split(|&byte| byte == b'\n' || byte == 0).next()?;
    let banner = String::from_utf8_lossy(banner);
    let version = banner.split("release version 2.").nth(1)?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Platform = Platform { arch: "x86_64", glibc: 36 };

    fn check(tag: &str) -> Result<(), String> {
        HERE.check(&[format!("cp313-cp313-{tag}")])
    }

    #[test]
    fn tags_cover_what_this_c_library_can_load() {
        let tags = HERE.tags();
        assert_eq!((tags[0].as_str(), tags[19].as_str()), ("manylinux_2_36_x86_64", "manylinux_2_17_x86_64"));
        assert!(tags.contains(&"manylinux2014_x86_64".to_owned()));
        assert!(tags.iter().all(|tag| check(tag).is_ok()));
    }

    #[test]
    fn a_tag_that_does_not_fit_says_both_sides() {
        check("manylinux_2_27_x86_64.manylinux_2_39_x86_64").unwrap();
        check("any").unwrap();
        assert_eq!(check("manylinux_2_28_aarch64").unwrap_err(), "it is for aarch64, this machine is x86_64");
        assert_eq!(check("manylinux_2_39_x86_64").unwrap_err(), "it needs glibc 2.39, this machine has 2.36");
        let windows = check("win_amd64").unwrap_err();
        assert_eq!(windows, "it is for win_amd64, this machine is linux x86_64 with glibc 2.36");
        check("musllinux_1_2_x86_64").unwrap_err();
        HERE.check(&[]).unwrap_err();
    }

    #[test]
    fn the_c_library_says_its_version() {
        let words = b"\0\x01GNU C Library (Ubuntu GLIBC 2.31-0ubuntu9) stable release version 2.31.\nCopyright";
        assert_eq!(banner_version(words), Some(31));
        assert_eq!(banner_version(b"musl libc"), None);
        // The tests themselves run on a glibc that is at least as new as the floor.
        assert!(loaded_glibc().unwrap() >= FLOOR);
    }
}
