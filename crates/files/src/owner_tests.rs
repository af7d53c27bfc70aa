use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

use tempfile::TempDir;

use super::*;

/// Root, user 1000 with a group of their own, 1001 in the group of 1000, and an empty `staff`.
const PASSWD: &str =
    "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/:/bin/sh\nbob:x:1001:100::/:/bin/sh\nnobody:x:65534:65534::/:/\n";
const GROUP: &str =
    "root:x:0:\nann:x:1000:\nusers:x:100:\nstaff:x:50:\nmail:x:8:\nshared:x:2000:ann,bob\nnogroup:x:65534:\n";

fn accounts() -> &'static Accounts {
    static ACCOUNTS: std::sync::LazyLock<Accounts> = std::sync::LazyLock::new(|| Accounts::parse(PASSWD, GROUP));
    &ACCOUNTS
}

fn owners(user: u32, sudo: Option<u32>) -> Owners<'static> {
    Owners { trusted: [0, user].into_iter().chain(sudo).collect(), own_group: (user, user), accounts: &accounts }
}

/// A folder with a library in a folder, all of them this user's.
struct Tree {
    dir: TempDir,
}

impl Tree {
    fn new() -> Tree {
        let tree = Tree { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(tree.path("a/lib")).unwrap();
        fs::write(tree.path("a/lib/x.so"), "x").unwrap();
        for (name, mode) in [("a", 0o755), ("a/lib", 0o755), ("a/lib/x.so", 0o644)] {
            tree.mode(name, mode);
        }
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    fn mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn problem(&self) -> Option<String> {
        owner_problem(&self.path("a/lib/x.so")).unwrap()
    }
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        use std::io::Write as _;
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        assert!(std::env::var_os("PRONY_TEST_REQUIRE").is_none(), "{test} needs root");
        let _ = writeln!(io::stderr(), "skipped: {test}: only root can give files away");
    }
    root
}

#[test]
fn a_library_in_a_folder_that_everyone_may_write_to_was_opened() {
    let tree = Tree::new();
    assert_eq!(tree.problem(), None);
    for name in ["a/lib/x.so", "a/lib", "a"] {
        let before = tree.path(name).metadata().unwrap().permissions();
        tree.mode(name, 0o777);
        let expected = format!("{} is writable by everyone (mode 777)", tree.path(name).display());
        assert_eq!(tree.problem(), Some(expected));
        fs::set_permissions(tree.path(name), before).unwrap();
    }
    // As /tmp is: nobody can replace what is not theirs.
    tree.mode("a", 0o1777);
    assert_eq!(tree.problem(), None);
    tree.mode("a/lib/x.so", 0o1646);
    assert!(
        tree.problem().unwrap().contains("x.so is writable by everyone"),
        "a file is not protected by its sticky bit"
    );
}

#[test]
fn a_link_led_out_of_the_folders_that_were_checked() {
    let tree = Tree::new();
    fs::create_dir_all(tree.path("open/inner")).unwrap();
    fs::write(tree.path("open/inner/x.so"), "x").unwrap();
    tree.mode("open", 0o777);
    fs::remove_file(tree.path("a/lib/x.so")).unwrap();
    for target in [tree.path("open/inner/x.so"), PathBuf::from("../../open/inner/x.so")] {
        symlink(target, tree.path("a/lib/x.so")).unwrap();
        assert!(tree.problem().unwrap().contains("/open is writable by everyone"));
        fs::remove_file(tree.path("a/lib/x.so")).unwrap();
    }
    // Through a folder of others to a file of ours: whoever may write there decides where the link leads.
    fs::write(tree.path("a/lib/real.so"), "x").unwrap();
    symlink(tree.path("a/lib/real.so"), tree.path("open/link.so")).unwrap();
    let problem = owner_problem(&tree.path("open/link.so")).unwrap();
    assert!(problem.unwrap().contains("/open is writable by everyone"));
    symlink("loop.so", tree.path("a/loop.so")).unwrap();
    assert!(owner_problem(&tree.path("a/loop.so")).is_err());
    assert_eq!(owner_problem(&tree.path("a/none.so")).unwrap_err().kind(), io::ErrorKind::NotFound);
    // A dot-dot behind a link is that of where the link leads.
    symlink(tree.path("open/inner"), tree.path("a/inner")).unwrap();
    assert!(owner_problem(&tree.path("a/inner/../../a/lib/real.so")).unwrap().is_some());
    assert_eq!(owner_problem(&tree.path("a/lib/../lib/real.so")).unwrap(), None);
}

#[test]
fn a_library_of_another_user_was_opened() {
    if !is_root() {
        return;
    }
    for name in ["a/lib/x.so", "a/lib", "a"] {
        let tree = Tree::new();
        chown(tree.path(name), Some(65534), None).unwrap();
        let problem = tree.problem().unwrap();
        assert!(problem.starts_with(&format!("{} belongs to ", tree.path(name).display())), "{problem}");
        assert!(problem.contains("65534"), "{problem}");
    }
    // Anyone may put a link into a sticky folder, but only their own.
    let tree = Tree::new();
    fs::create_dir(tree.path("tmp")).unwrap();
    tree.mode("tmp", 0o1777);
    symlink(tree.path("a/lib/x.so"), tree.path("tmp/x.so")).unwrap();
    assert_eq!(owner_problem(&tree.path("tmp/x.so")).unwrap(), None);
    std::os::unix::fs::lchown(tree.path("tmp/x.so"), Some(65534), None).unwrap();
    assert!(owner_problem(&tree.path("tmp/x.so")).unwrap().unwrap().contains("belongs to"));
}

#[test]
fn under_sudo_the_invoking_user_is_the_user() {
    if !is_root() {
        return;
    }
    let tree = Tree::new();
    chown(tree.path("a/lib/x.so"), Some(1000), Some(1000)).unwrap();
    tree.mode("a/lib/x.so", 0o664);
    let library = tree.path("a/lib/x.so");
    assert_eq!(owners(0, Some(1000)).problem(&library).unwrap(), None);
    assert_eq!(owners(1000, None).problem(&library).unwrap(), None);
    let problem = owners(0, None).problem(&library).unwrap().unwrap();
    assert!(problem.ends_with("x.so belongs to ann (uid 1000)"), "{problem}");
    assert!(owners(0, Some(1001)).problem(&library).unwrap().is_some());
}

#[test]
fn a_group_is_the_owners_own_only_without_anybody_else() {
    let own = |group, owner, user| owners(user, None).is_own_group(group, owner);
    assert!(own(1000, 1000, 1000) && own(0, 0, 1000) && own(0, 0, 0));
    assert!(!own(2000, 1000, 1000), "bob is in it");
    assert!(!own(100, 1000, 1000) && !own(100, 0, 0), "bob's own group");
    assert!(!own(65534, 0, 0) && !own(1000, 0, 0), "somebody else's own");
    assert!(!own(8, 0, 0), "an empty group is for programs that have it");
    assert!(!own(4321, 0, 0), "a group that nobody knows");
    assert!(own(4321, 4321, 4321), "a user without an entry, as in containers");
    assert!(own(50, 0, 1000), "/usr/local on Debian");
    assert!(!own(50, 1000, 1000), "that is for what belongs to root");
    let more = Accounts::parse(PASSWD, &GROUP.replace("staff:x:50:", "staff:x:50:bob"));
    let owners = Owners { trusted: vec![0], own_group: (0, 0), accounts: &|| &more };
    assert!(!owners.is_own_group(50, 0), "bob may install there");
    let gone = Accounts::parse(PASSWD, &GROUP.replace("ann:x:1000:", "ann:x:1000:ghost"));
    let owners = Owners { trusted: vec![0, 1000], own_group: (0, 0), accounts: &|| &gone };
    assert!(!owners.is_own_group(1000, 1000), "a member whom nobody knows");
}

#[test]
fn a_folder_that_a_group_may_write_to_was_trusted() {
    if !is_root() {
        return;
    }
    let tree = Tree::new();
    tree.mode("a/lib", 0o775);
    assert_eq!(owners(0, None).problem(&tree.path("a/lib/x.so")).unwrap(), None, "root's own group");
    for (group, name) in [(2000, "shared"), (100, "users"), (65534, "nogroup"), (4321, "4321")] {
        chown(tree.path("a/lib"), None, Some(group)).unwrap();
        let problem = owners(0, None).problem(&tree.path("a/lib/x.so")).unwrap().unwrap();
        assert!(problem.ends_with(&format!("/a/lib is writable by group {name} (mode 775)")), "{problem}");
    }
    chown(tree.path("a/lib"), None, Some(50)).unwrap();
    assert_eq!(owners(0, None).problem(&tree.path("a/lib/x.so")).unwrap(), None);
}

#[test]
fn an_acl_let_another_user_write() {
    let tree = Tree::new();
    let none = u32::MAX;
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in [(1u16, 7u16, none), (2, 7, 65534), (4, 5, none), (0x10, 7, none), (0x20, 5, none)] {
        list.extend([tag.to_le_bytes(), permissions.to_le_bytes()].concat());
        list.extend(id.to_le_bytes());
    }
    let folder = tree.path("a/lib");
    if rustix::fs::setxattr(&folder, "system.posix_acl_access", &list, rustix::fs::XattrFlags::empty()).is_err() {
        // No ACLs in this file system, so there is nothing to be fooled by.
        return;
    }
    let problem = tree.problem().unwrap();
    assert!(problem.contains("/a/lib is writable by ") && problem.ends_with("(uid 65534) (ACL)"), "{problem}");
}
