//! What a binary must have so that a bug in a library is harder to turn into code that someone else chose: position
//! independence, a table of addresses that is read-only once it is filled in, and no memory that is written and executed.

use anyhow::{Result, ensure};

use crate::elf::Fields;

const ET_DYN: u16 = 3;
/// Bytes of a program header of a 64-bit file.
const PROGRAM_HEADER: usize = 56;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_GNU_STACK: u32 = 0x6474_e551;
const PT_GNU_RELRO: u32 = 0x6474_e552;
const EXECUTE: u32 = 1;
const WRITE: u32 = 2;
const DT_NULL: u64 = 0;
const DT_RPATH: u64 = 15;
const DT_TEXTREL: u64 = 22;
const DT_BIND_NOW: u64 = 24;
const DT_RUNPATH: u64 = 29;
const DT_FLAGS: u64 = 30;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_TEXTREL: u64 = 4;
const DF_BIND_NOW: u64 = 8;
const DF_1_NOW: u64 = 1;

/// Fails with everything that is missing.
pub(crate) fn check(binary: &[u8]) -> Result<()> {
    let problems = problems(binary)?;
    ensure!(problems.is_empty(), "{}", problems.join("; "));
    Ok(())
}

/// A segment as the loader sees it.
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    size: u64,
}

/// Everything that makes a binary unfit to hand out; empty where nothing does.
fn problems(binary: &[u8]) -> Result<Vec<&'static str>> {
    ensure!(binary.starts_with(b"\x7fELF"), "not an ELF file");
    let header = Fields(binary);
    let segments = segments(header)?;
    let has = |kind: u32| segments.iter().any(|segment| segment.kind == kind);
    let dynamic = dynamic(header, &segments)?;
    let value = |tag: u64| dynamic.iter().find(|(of, _)| *of == tag).map_or(0, |(_, value)| *value);
    let is_there = |tag: u64| dynamic.iter().any(|(of, _)| *of == tag);
    let now = is_there(DT_BIND_NOW) || value(DT_FLAGS) & DF_BIND_NOW != 0 || value(DT_FLAGS_1) & DF_1_NOW != 0;
    let both = |segment: &Segment| segment.flags & (WRITE | EXECUTE) == WRITE | EXECUTE;
    let stack = segments.iter().find(|segment| segment.kind == PT_GNU_STACK);
    let checks = [
        (header.u16(16)? != ET_DYN || !has(PT_INTERP), "not a position-independent executable (-pie)"),
        (!has(PT_GNU_RELRO), "no read-only relocations (-z relro)"),
        (!now, "symbols are bound lazily, so RELRO is only partial (-z now)"),
        (
            segments.iter().any(|segment| segment.kind == PT_LOAD && both(segment)),
            "a segment is writable and executable",
        ),
        (stack.is_none_or(|stack| stack.flags & EXECUTE != 0), "its stack is executable (-z noexecstack)"),
        (is_there(DT_TEXTREL) || value(DT_FLAGS) & DF_TEXTREL != 0, "relocations in its code (-z text)"),
        (is_there(DT_RPATH) || is_there(DT_RUNPATH), "it has a search path for libraries of its own (rpath)"),
    ];
    Ok(checks.into_iter().filter_map(|(wrong, problem)| wrong.then_some(problem)).collect())
}

fn segments(header: Fields<'_>) -> Result<Vec<Segment>> {
    let first = usize::try_from(header.u64(32)?)?;
    let count = usize::from(header.u16(56)?);
    ensure!(first != 0 && count != 0, "no program headers, so how it is loaded cannot be told");
    ensure!(usize::from(header.u16(54)?) == PROGRAM_HEADER, "program headers of an unknown size");
    let segment = |index: usize| {
        let fields = header.from(first)?.from(index * PROGRAM_HEADER)?;
        Ok(Segment { kind: fields.u32(0)?, flags: fields.u32(4)?, offset: fields.u64(8)?, size: fields.u64(32)? })
    };
    (0..count).map(segment).collect()
}

/// What the loader is told: tags and their values.
fn dynamic(file: Fields<'_>, segments: &[Segment]) -> Result<Vec<(u64, u64)>> {
    let Some(segment) = segments.iter().find(|segment| segment.kind == PT_DYNAMIC) else { return Ok(Vec::new()) };
    let list = file.from(usize::try_from(segment.offset)?)?;
    let mut entries = Vec::new();
    for at in (0..usize::try_from(segment.size)?).step_by(16) {
        let (tag, value) = (list.u64(at)?, list.u64(at + 8)?);
        if tag == DT_NULL {
            break;
        }
        entries.push((tag, value));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const GOOD: &[&str] = &["-fPIE", "-pie", "-Wl,-z,relro,-z,now,-z,noexecstack"];

    /// A program that the C compiler made with these flags.
    fn made(flags: &[&str]) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("main.c"), folder.path().join("main"));
        std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let output = Command::new("cc").arg(&source).arg("-o").arg(&program).args(flags).output().unwrap();
        assert!(output.status.success(), "{flags:?}: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(program).unwrap()
    }

    #[test]
    fn a_program_with_every_flag_is_fit() {
        assert_eq!(problems(&made(GOOD)).unwrap(), [""; 0]);
        check(&made(GOOD)).unwrap();
    }

    #[test]
    fn each_flag_that_is_missing_is_named() {
        for (flags, problem) in [
            (&["-no-pie", "-Wl,-z,relro,-z,now"][..], "not a position-independent"),
            (&["-fPIE", "-pie", "-Wl,-z,norelro,-z,now"], "no read-only relocations"),
            (&["-fPIE", "-pie", "-Wl,-z,relro,-z,lazy"], "bound lazily"),
            (&["-fPIE", "-pie", "-Wl,-z,relro,-z,now,-z,execstack"], "stack is executable"),
            (&["-fPIE", "-pie", "-Wl,-z,relro,-z,now,-rpath,/tmp/lib"], "search path for libraries"),
            (&["-nostdlib", "-no-pie", "-Wl,--omagic,-e,main"], "writable and executable"),
        ] {
            let message = check(&made(flags)).unwrap_err().to_string();
            assert!(message.contains(problem), "{flags:?}: {message}");
        }
    }

    #[test]
    fn a_shared_library_is_no_program() {
        let library = made(&["-fPIC", "-shared", "-Wl,-z,relro,-z,now"]);
        assert!(problems(&library).unwrap().contains(&"not a position-independent executable (-pie)"));
    }

    #[test]
    fn all_that_is_missing_is_named_at_once() {
        let message = check(&made(&["-no-pie", "-Wl,-z,norelro,-z,lazy,-z,execstack"])).unwrap_err().to_string();
        assert_eq!(message.matches("; ").count(), 3, "{message}");
    }

    #[test]
    fn a_segment_that_became_writable_is_noticed() {
        let mut bytes = made(GOOD);
        let first = u64::from_le_bytes(bytes[32..40].try_into().unwrap()) as usize;
        let count = usize::from(u16::from_le_bytes(bytes[56..58].try_into().unwrap()));
        let code = (0..count).map(|index| first + index * PROGRAM_HEADER);
        let code = code.filter(|&at| bytes[at..at + 4] == PT_LOAD.to_le_bytes() && bytes[at + 4] & EXECUTE as u8 != 0);
        for at in code.collect::<Vec<_>>() {
            bytes[at + 4] |= WRITE as u8;
        }
        assert_eq!(problems(&bytes).unwrap(), ["a segment is writable and executable"]);
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error_or_not_fit() {
        let whole = made(GOOD);
        for length in (0..whole.len()).step_by(37).filter(|&length| length < 4096) {
            assert!(check(&whole[..length]).is_err(), "{length} of {}", whole.len());
        }
        assert!(check(b"#!/bin/sh\n").is_err());
    }

    #[test]
    fn this_very_test_is_built_as_releases_are() {
        // What rustc does by itself; `dist` would fail where it no longer did.
        check(&std::fs::read(std::env::current_exe().unwrap()).unwrap()).unwrap();
    }
}
