//! What the kernel's control groups leave of the memory: a container may have far less than the machine, and the kernel
//! kills by the smaller one.

use std::path::{Component, Path, PathBuf};

/// The files of one version of control groups.
struct Layout {
    /// Where its tree is mounted.
    mounts: &'static [&'static str],
    limit: &'static str,
    /// Above this the kernel slows its members down, which no timed cell survives.
    throttle: Option<&'static str>,
    used: &'static str,
    /// Of `memory.stat`: pages of files that the kernel drops before it kills.
    reclaimable: [&'static str; 2],
    /// The file with the line `oom_kill N`.
    kills: &'static str,
}

static V2: Layout = Layout {
    mounts: &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
    limit: "memory.max",
    throttle: Some("memory.high"),
    used: "memory.current",
    reclaimable: ["inactive_file", "active_file"],
    kills: "memory.events",
};

static V1: Layout = Layout {
    mounts: &["sys/fs/cgroup/memory"],
    limit: "memory.limit_in_bytes",
    throttle: None,
    used: "memory.usage_in_bytes",
    reclaimable: ["total_inactive_file", "total_active_file"],
    kills: "memory.oom_control",
};

/// What a group leaves, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) limit: u64,
    pub(crate) left: u64,
    /// Swap that its members may still take; `None` where the group does not say.
    pub(crate) swap_left: Option<u64>,
}

/// The group of this process, or one above it, that leaves least; `None` where none has a limit.
pub(crate) fn tightest(root: &Path) -> Option<Room> {
    rooms(root).into_iter().min_by_key(|room| room.left)
}

/// The smallest limit of this process's group and those above it.
pub(crate) fn smallest_limit(root: &Path) -> Option<u64> {
    rooms(root).into_iter().map(|room| room.limit).min()
}

/// How often the kernel killed a process of this one's own group for want of memory; `None` where the group does not count.
pub(crate) fn oom_kills(root: &Path) -> Option<u64> {
    let count = |(folder, layout): (PathBuf, &Layout)| {
        let text = std::fs::read_to_string(folder.join(layout.kills)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    };
    groups(root).into_iter().find_map(count)
}

fn rooms(root: &Path) -> Vec<Room> {
    groups(root).iter().filter_map(|(group, layout)| room(group, layout)).collect()
}

/// The groups that count this process's memory, its own before those above it.
fn groups(root: &Path) -> Vec<(PathBuf, &'static Layout)> {
    let text = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut groups = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let layout = match controllers {
            "" => &V2,
            named if named.split(',').any(|name| name == "memory") => &V1,
            _ => continue,
        };
        for mount in layout.mounts {
            groups.extend(above(&root.join(mount), path).into_iter().map(|group| (group, layout)));
        }
    }
    groups
}

/// The folder of a group and of each group that it is in. In a container the path may be that of the host, of which only
/// the mount itself is to be seen.
fn above(mount: &Path, path: &str) -> Vec<PathBuf> {
    let own = Path::new(path.trim_start_matches('/'));
    // Of a group outside this namespace only the mount itself is to be seen.
    let own = if own.components().any(|part| part == Component::ParentDir) { Path::new("") } else { own };
    own.ancestors().map(|group| mount.join(group)).collect()
}

fn room(group: &Path, layout: &Layout) -> Option<Room> {
    let throttle = layout.throttle.and_then(|file| number(group, file));
    let limit = [number(group, layout.limit), throttle].into_iter().flatten().min()?;
    let used = number(group, layout.used)?.saturating_sub(reclaimable(group, &layout.reclaimable));
    let left = limit.saturating_sub(used);
    let by_itself = || Some(number(group, "memory.swap.max")?.saturating_sub(number(group, "memory.swap.current")?));
    // The first version counts memory and swap together.
    let with_memory = || {
        let both = number(group, "memory.memsw.limit_in_bytes")?;
        let room = number(group, layout.limit)?.saturating_sub(number(group, layout.used)?);
        Some(both.saturating_sub(number(group, "memory.memsw.usage_in_bytes")?).saturating_sub(room))
    };
    Some(Room { limit, left, swap_left: by_itself().or_else(with_memory) })
}

/// A file of one number; `max` is none.
fn number(group: &Path, file: &str) -> Option<u64> {
    std::fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()
}

fn reclaimable(group: &Path, keys: &[&str]) -> u64 {
    let text = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let value = |key: &str, line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse::<u64>().ok();
    let sum = |key: &&str| text.lines().find_map(|line| value(key, line)).unwrap_or(0);
    keys.iter().map(sum).sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;

    /// Files of a made-up machine.
    pub(crate) fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        root
    }

    #[test]
    fn the_tightest_group_above_counts() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/user.slice/box"),
            ("sys/fs/cgroup/user.slice/memory.max", "1000"),
            ("sys/fs/cgroup/user.slice/memory.current", "900"),
            ("sys/fs/cgroup/user.slice/memory.stat", "anon 850\ninactive_file 50\nfile 60"),
            ("sys/fs/cgroup/user.slice/box/memory.max", "max"),
            ("sys/fs/cgroup/user.slice/box/memory.current", "800"),
        ]);
        assert_eq!(tightest(root.path()), Some(Room { limit: 1000, left: 150, swap_left: None }));
        fs::write(root.path().join("sys/fs/cgroup/user.slice/box/memory.max"), "810").unwrap();
        fs::write(root.path().join("sys/fs/cgroup/user.slice/box/memory.swap.max"), "0").unwrap();
        fs::write(root.path().join("sys/fs/cgroup/user.slice/box/memory.swap.current"), "0").unwrap();
        assert_eq!(tightest(root.path()), Some(Room { limit: 810, left: 10, swap_left: Some(0) }));
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_mount() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/docker/0123"),
            ("sys/fs/cgroup/memory.max", "500"),
            ("sys/fs/cgroup/memory.current", "100"),
        ]);
        assert_eq!(tightest(root.path()).map(|room| room.left), Some(400));
    }

    #[test]
    fn the_first_version_has_other_names() {
        let root = tree(&[
            ("proc/self/cgroup", "5:devices:/\n4:memory,hugetlb:/box\n0::/"),
            ("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1000"),
            ("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "700"),
            ("sys/fs/cgroup/memory/box/memory.stat", "inactive_file 1\ntotal_inactive_file 100"),
            ("sys/fs/cgroup/memory/box/memory.memsw.limit_in_bytes", "1500"),
            ("sys/fs/cgroup/memory/box/memory.memsw.usage_in_bytes", "800"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000"),
        ]);
        assert_eq!(tightest(root.path()), Some(Room { limit: 1000, left: 400, swap_left: Some(400) }));
    }

    #[test]
    fn a_limit_above_which_the_kernel_slows_down_counts_as_one() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/"),
            ("sys/fs/cgroup/memory.max", "max"),
            ("sys/fs/cgroup/memory.high", "700"),
            ("sys/fs/cgroup/memory.current", "400"),
            ("sys/fs/cgroup/memory.stat", "inactive_file 50\nactive_file 30"),
        ]);
        assert_eq!(tightest(root.path()).map(|room| (room.limit, room.left)), Some((700, 380)));
        assert_eq!(smallest_limit(root.path()), Some(700));
    }

    #[test]
    fn a_group_outside_the_namespace_is_seen_as_the_mount() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/../../other"),
            ("sys/fs/cgroup/memory.max", "500"),
            ("sys/fs/cgroup/memory.current", "100"),
            ("other/memory.max", "1"),
            ("other/memory.current", "1"),
        ]);
        assert_eq!(smallest_limit(root.path()), Some(500));
    }

    #[test]
    fn kills_are_counted_in_the_group_of_the_process_itself() {
        let second = tree(&[
            ("proc/self/cgroup", "0::/a/b"),
            ("sys/fs/cgroup/a/b/memory.events", "low 0\noom 4\noom_kill 3\noom_group_kill 9"),
            ("sys/fs/cgroup/a/memory.events", "oom_kill 7"),
        ]);
        assert_eq!(oom_kills(second.path()), Some(3));
        let first = tree(&[
            ("proc/self/cgroup", "4:memory:/box\n0::/"),
            ("sys/fs/cgroup/memory/box/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2"),
        ]);
        assert_eq!(oom_kills(first.path()), Some(2));
        assert_eq!(oom_kills(tree(&[("proc/self/cgroup", "0::/")]).path()), None);
    }

    #[test]
    fn without_groups_or_limits_there_is_none() {
        assert_eq!(tightest(tree(&[]).path()), None);
        assert_eq!(tightest(tree(&[("proc/self/cgroup", "0::/")]).path()), None);
    }
}
