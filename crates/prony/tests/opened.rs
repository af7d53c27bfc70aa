//! Files that others made are opened in one place, the crate `files`. This reads our own sources and finds what goes past it.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/sources.rs"]
mod sources;

use sources::code_of;

/// What opens, reads or writes a file by its path.
const CALLS: [&str; 9] = [
    "fs::read(",
    "fs::read_to_string(",
    "fs::write(",
    "fs::copy(",
    "File::open(",
    "File::create(",
    "File::create_new(",
    "File::options(",
    "OpenOptions::new(",
];

/// Who may: what the kernel shows as files, and files of our own that stay open or are locked.
const MAY: [(&str, &str); 22] = [
    ("backend/src/affinity.rs", "the kernel's files"),
    ("backend/src/conformance.rs", "a model that the suite writes into a folder of its own"),
    ("bench/src/trtexec/program.rs", "the kernel's files; trtexec's log, which two processes append to"),
    ("forge/src/cache.rs", "the time of a file's last use"),
    ("forge/src/lock.rs", "a lock in our own home"),
    ("forge/src/memory.rs", "the kernel's files"),
    ("forge/src/prepare.rs", "the kernel's files"),
    ("probe/src/cgroup.rs", "the kernel's files"),
    ("probe/src/room.rs", "the kernel's files"),
    ("probe/src/tree.rs", "the kernel's files"),
    ("prony/src/command/quantize/gate.rs", "a graph in a folder of its own"),
    ("run/src/files.rs", "a folder to lock"),
    ("run/src/lock/holder.rs", "the kernel's files"),
    ("run/src/system/journal.rs", "the kernel's files, and the journal in our own state folder"),
    ("run/src/worker.rs", "the kernel's files"),
    ("runtimes/src/found.rs", "the kernel's files"),
    ("runtimes/src/install/platform.rs", "the C library that this process runs with"),
    ("runtimes/src/install/stage.rs", "a lock in our own home; a folder to sync"),
    ("runtimes/src/wheel.rs", "what a wheel holds, written into a folder that was made for it"),
    ("source/src/dataset/subset/file.rs", "an image that was decoded before"),
    ("source/src/dataset/subset/folder.rs", "a draft with a name that nobody can foresee"),
    ("source/src/synth.rs", "scenes in a folder that is empty or of our own"),
];

fn opens(code: &str) -> bool {
    // `ModelFile::open(` ends like `File::open(`, and is another thing.
    let stands_alone = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    CALLS.iter().any(|call| code.match_indices(call).any(|(at, _)| stands_alone(at)))
}

#[test]
fn files_were_opened_past_the_one_place() {
    // The one place itself is left out.
    let code = sources::code().into_iter().filter(|(name, code)| !name.starts_with("files/") && opens(code));
    let opening: Vec<String> = code.map(|(name, _)| name).collect();
    let unknown: Vec<&String> = opening.iter().filter(|name| !MAY.iter().any(|(known, _)| known == *name)).collect();
    assert!(unknown.is_empty(), "open these files through prony_files: {unknown:?}");
    let idle: Vec<_> = MAY.iter().filter(|(known, _)| !opening.iter().any(|name| *name == *known)).collect();
    assert!(idle.is_empty(), "these open nothing any more; take them off the list: {idle:?}");
}

#[test]
fn what_opens_a_file_is_found() {
    for code in ["let x = fs::read(path)?;", "std::fs::File::open(p)", "use x; OpenOptions::new()", "(File::create(p))"]
    {
        assert!(opens(code), "{code}");
    }
    for code in ["ModelFile::open(x)", "prony_files::read(p, k)", "ArrayFile::open(p)", "my_fs::read(x)"] {
        assert!(!opens(code), "{code}");
    }
    assert!(!opens(&code_of("// fs::read(x)\nfn a() {}\n#[cfg(test)]\nmod tests {\n fs::read(x) }")));
}
