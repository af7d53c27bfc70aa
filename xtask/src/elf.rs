//! As much of an ELF file as it takes to say which machine a binary is for and which versions of which libraries it
//! needs. The bytes are not trusted: whatever does not fit is an error, never a panic.

use anyhow::{Context as _, Result, bail, ensure};

/// Type of the section that linkers call `.gnu.version_r`.
const SHT_GNU_VERNEED: u32 = 0x6fff_fffe;
/// Bytes of a section header of a 64-bit file.
const SECTION_HEADER: usize = 64;

/// What a binary asks of the machine that runs it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Instruction set, `e_machine`.
    pub(crate) machine: u16,
    /// Versions of libraries that the loader will insist on.
    pub(crate) versions: Vec<VersionNeed>,
}

/// One version of one library.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct VersionNeed {
    /// E.g. `libc.so.6`.
    pub(crate) library: String,
    /// E.g. `GLIBC_2.31`.
    pub(crate) version: String,
}

/// Reads a 64-bit little-endian ELF file.
pub(crate) fn read(bytes: &[u8]) -> Result<Needs> {
    ensure!(bytes.starts_with(b"\x7fELF"), "not an ELF file");
    ensure!(bytes.get(4..6) == Some(&[2, 1]), "not a 64-bit little-endian ELF file");
    let header = Fields(bytes);
    let machine = header.u16(18)?;
    let sections = sections(header)?;
    let mut versions = Vec::new();
    for section in sections.iter().filter(|section| section.kind == SHT_GNU_VERNEED) {
        let names = sections.get(section.link as usize).context("a section links to one that does not exist")?;
        let names = names.body(bytes)?;
        version_needs(Fields(section.body(bytes)?), section.info, names, &mut versions)
            .context("the list of needed versions (.gnu.version_r) is damaged")?;
    }
    Ok(Needs { machine, versions })
}

/// What matters of a section header.
struct Section {
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
}

impl Section {
    fn body<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let start = usize::try_from(self.offset)?;
        let end = start.checked_add(usize::try_from(self.size)?).context("a section without end")?;
        bytes.get(start..end).context("a section lies beyond the end of the file")
    }
}

/// All section headers. A file without any could need anything, so it is refused.
fn sections(header: Fields<'_>) -> Result<Vec<Section>> {
    let first = usize::try_from(header.u64(40)?)?;
    let count = usize::from(header.u16(60)?);
    ensure!(first != 0 && count != 0, "no section headers, so what it needs cannot be told");
    ensure!(usize::from(header.u16(58)?) == SECTION_HEADER, "section headers of an unknown size");
    let section = |index: usize| {
        let fields = header.from(first)?.from(index * SECTION_HEADER)?;
        Ok(Section {
            kind: fields.u32(4)?,
            offset: fields.u64(24)?,
            size: fields.u64(32)?,
            link: fields.u32(40)?,
            info: fields.u32(44)?,
        })
    };
    (0..count).map(section).collect()
}

/// Walks the two linked lists of `.gnu.version_r`: libraries, and the versions of each.
fn version_needs(list: Fields<'_>, libraries: u32, names: &[u8], versions: &mut Vec<VersionNeed>) -> Result<()> {
    let mut entry = list;
    for _ in 0..libraries {
        let library = name(names, entry.u32(4)?)?;
        let mut version = entry.from(entry.u32(8)? as usize)?;
        for _ in 0..entry.u16(2)? {
            versions.push(VersionNeed { library: library.clone(), version: name(names, version.u32(8)?)? });
            match version.u32(12)? {
                0 => break,
                next => version = version.from(next as usize)?,
            }
        }
        match entry.u32(12)? {
            0 => break,
            next => entry = entry.from(next as usize)?,
        }
    }
    Ok(())
}

/// The zero-terminated name at an offset of a string table.
fn name(names: &[u8], offset: u32) -> Result<String> {
    let rest = names.get(offset as usize..).context("a name lies outside its table")?;
    let Some(length) = rest.iter().position(|&byte| byte == 0) else { bail!("a name has no end") };
    Ok(String::from_utf8(rest[..length].to_vec())?)
}

/// Little-endian numbers at offsets.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn from(self, offset: usize) -> Result<Fields<'a>> {
        self.0.get(offset..).map(Fields).context("the file ends too early")
    }

    fn array<const N: usize>(self, offset: usize) -> Result<[u8; N]> {
        self.from(offset)?.0.first_chunk().copied().context("the file ends too early")
    }

    pub(crate) fn u16(self, offset: usize) -> Result<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(self, offset: usize) -> Result<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(self, offset: usize) -> Result<u64> {
        self.array(offset).map(u64::from_le_bytes)
    }
}

#[cfg(test)]
#[path = "elf_tests.rs"]
pub(crate) mod tests;
