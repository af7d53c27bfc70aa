//! Users and groups by `/etc/passwd` and `/etc/group`. What a directory service knows beside them is not asked: that would take
//! code of its own into the process. A group that is in neither file has members that nobody knows.

use std::path::Path;
use std::sync::OnceLock;

use crate::{Kind, read};

/// The accounts of this machine.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    users: Vec<User>,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct User {
    name: String,
    uid: u32,
    gid: u32,
}

#[derive(Debug)]
struct Group {
    name: String,
    gid: u32,
    members: Vec<String>,
}

impl Accounts {
    /// Those of this machine, read once.
    pub(crate) fn here() -> &'static Accounts {
        static HERE: OnceLock<Accounts> = OnceLock::new();
        HERE.get_or_init(|| {
            let text = |path: &str| read(Path::new(path), Kind::List).unwrap_or_default();
            let text = |path: &str| String::from_utf8_lossy(&text(path)).into_owned();
            Accounts::parse(&text("/etc/passwd"), &text("/etc/group"))
        })
    }

    pub(crate) fn parse(passwd: &str, group: &str) -> Accounts {
        let user = |line: &str| {
            let mut fields = line.split(':');
            let (name, _, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
            Some(User { name: name.to_owned(), uid: uid.parse().ok()?, gid: gid.parse().ok()? })
        };
        let group_of = |line: &str| {
            let mut fields = line.split(':');
            let (name, _, gid, members) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
            let members = members.trim().split(',').filter(|member| !member.is_empty()).map(str::to_owned).collect();
            Some(Group { name: name.to_owned(), gid: gid.parse().ok()?, members })
        };
        Accounts {
            users: passwd.lines().filter_map(user).collect(),
            groups: group.lines().filter_map(group_of).collect(),
        }
    }

    /// Everyone in a group, by number; `None` for a name that has none.
    pub(crate) fn members(&self, gid: u32) -> Vec<Option<u32>> {
        let listed = self.groups.iter().filter(|group| group.gid == gid).flat_map(|group| &group.members);
        let uid = |name: &String| self.users.iter().find(|user| user.name == *name).map(|user| user.uid);
        let primary = self.users.iter().filter(|user| user.gid == gid).map(|user| Some(user.uid));
        listed.map(uid).chain(primary).collect()
    }

    pub(crate) fn is_primary(&self, gid: u32, uid: u32) -> bool {
        self.users.iter().any(|user| user.uid == uid && user.gid == gid)
    }

    /// Whether a group has the name of a user.
    pub(crate) fn is_namesake(&self, gid: u32, uid: u32) -> bool {
        let name = self.group_name(gid);
        name.is_some() && self.users.iter().any(|user| user.uid == uid && Some(user.name.as_str()) == name)
    }

    pub(crate) fn group_name(&self, gid: u32) -> Option<&str> {
        self.groups.iter().find(|group| group.gid == gid).map(|group| group.name.as_str())
    }

    /// A user in words: `nobody (uid 65534)`.
    pub(crate) fn user(&self, uid: u32) -> String {
        match self.users.iter().find(|user| user.uid == uid) {
            Some(user) => format!("{} (uid {uid})", user.name),
            None => format!("uid {uid}"),
        }
    }

    /// A group in words.
    pub(crate) fn group(&self, gid: u32) -> String {
        self.group_name(gid).map_or_else(|| gid.to_string(), str::to_owned)
    }
}
