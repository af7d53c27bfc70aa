//! Children are started in one place, the crate `work`, and the process ends in one, `main`. This reads our own sources and
//! finds what goes past them.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/sources.rs"]
mod sources;

/// What starts a child; `exec` starts none.
const STARTS: [&str; 3] = [".spawn()", ".output()", ".status()"];
/// What ends the process from within; `abort` is a fault that is injected.
const ENDS: [&str; 3] = ["process::exit(", "low_level::exit(", "libc::_exit("];

fn with(calls: &[&str], but: &str) -> Vec<String> {
    let code = sources::code().into_iter();
    let found = code.filter(|(name, code)| !name.starts_with(but) && calls.iter().any(|call| code.contains(call)));
    found.map(|(name, _)| name).collect()
}

#[test]
fn children_were_started_that_nobody_ended() {
    let past = with(&STARTS, "work/");
    assert!(past.is_empty(), "start these with prony_work::Supervised or prony_work::capture: {past:?}");
}

#[test]
fn the_process_was_ended_from_within_a_command() {
    let past = with(&ENDS, "prony/src/main.rs");
    assert!(past.is_empty(), "return an error instead: {past:?}");
}

#[test]
fn tests_at_the_foot_and_comments_are_not_read() {
    let code = sources::code_of("// a.spawn()\nb.output();\n#[cfg(test)]\nmod tests {\n c.status() }");
    assert!(code.contains(".output()") && !code.contains(".spawn()") && !code.contains(".status()"));
}
