//! TensorRT engines as files: an exporter's header, where there is one, and the plan behind it.
//!
//! Ultralytics writes four bytes with the length of a JSON object, the object, and then the plan; everybody else writes
//! the plan alone. A plan says which TensorRT built it, from 8.6 on, by the layout that NVIDIA's own trtexec reads for
//! `--getPlanVersionOnly`. What else is in it is TensorRT's own business.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use prony_types::{EngineIdentity, Metadata, ModelFormat, ModelInfo, is_engine_name};
use prost::bytes::Bytes;
use serde_json::{Map, Value};

use crate::error::ModelError;
use crate::hash::sha256_of;
use crate::info;
use crate::map::map;
use crate::names;
use crate::provenance::EngineProvenance;

/// How a plan begins.
const MAGIC: &[u8; 4] = b"ftrt";
/// How it began before TensorRT 8.5 or so, whose engines nothing of today loads.
const OLD_MAGIC: &[u8; 4] = b"ptrt";
/// Bytes of a plan that must be there for its version to be read.
const PLAN_HEADER: usize = 28;
/// Where the plan's own length is, in the one layout whose version number is 0.
const LENGTH_AT: usize = 16;
/// Where the version is, in the one layout whose version number is 0.
const VERSION_AT: usize = 24;
/// A header beyond this is no header: class names and a few facts take kilobytes.
const MAX_HEADER: usize = 16 << 20;

/// What an engine's file says without being opened by TensorRT.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineFile {
    /// Where the plan begins: 0 without a header.
    pub header_bytes: usize,
    /// Size of the whole file.
    pub file_bytes: u64,
    /// Facts of the header.
    pub metadata: Metadata,
    /// The header as it is.
    pub header: Map<String, Value>,
    /// The beginning of the plan.
    pub plan: PlanHeader,
    /// What stands beside the file.
    pub sidecar: Option<EngineProvenance>,
}

/// The beginning of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanHeader {
    /// Its first four bytes.
    pub magic: [u8; 4],
    /// Which TensorRT built it; `None` where the layout is not one that is known for sure.
    pub version: Option<PlanVersion>,
    /// How long it says it is, where its layout is known; seen in engines of 8.6.0, where it is the size of the file.
    pub bytes: Option<u64>,
}

/// Version of TensorRT as a plan has it: major, minor, patch and build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanVersion(pub [u8; 4]);

impl fmt::Display for PlanVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch, _] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl EngineFile {
    /// Where the engine was built, as far as the file and what stands beside it tell.
    pub fn identity(&self) -> EngineIdentity {
        let mut identity = self.sidecar.as_ref().map(|sidecar| sidecar.identity.clone()).unwrap_or_default();
        if let (true, Some(version)) = (identity.tensorrt.is_empty(), self.plan.version) {
            identity.tensorrt = version.to_string();
        }
        identity
    }

    /// As a model: what goes in and comes out is not known here.
    pub(crate) fn info(&self) -> ModelInfo {
        ModelInfo { format: ModelFormat::Engine, metadata: self.metadata.clone(), ..ModelInfo::default() }
    }
}

/// Whether a file should be an engine, by its name or by how it begins.
pub(crate) fn is_engine(path: &Path, file: &File) -> bool {
    let mut first = [0; 4];
    is_engine_name(path) || file.read_exact_at(&mut first, 0).is_ok() && first == *MAGIC
}

/// Maps an engine, reads its header and what stands beside it, and hashes the file.
pub(crate) fn open(path: &Path, file: File) -> Result<(Bytes, String, EngineFile), ModelError> {
    let name = path.display().to_string();
    let unreadable = |reason| ModelError::Unreadable { path: path.to_owned(), reason };
    let bytes = map(&file).map_err(unreadable)?;
    let mut engine = read(&name, &bytes)?;
    let sha256 = sha256_of(file).map_err(unreadable)?;
    engine.sidecar = EngineProvenance::beside(path)?;
    if let Some(sidecar) = &engine.sidecar {
        sidecar.holds_for(&name, &sha256)?;
    }
    Ok((bytes, sha256, engine))
}

/// Reads what the file says, or says what is wrong with it.
fn read(name: &str, bytes: &Bytes) -> Result<EngineFile, ModelError> {
    let cut = |reason: String| ModelError::CutEngine { name: name.to_owned(), reason };
    let other = |reason: String| ModelError::NotEngine { name: name.to_owned(), reason };
    if bytes.is_empty() {
        return Err(cut("the file is empty".into()));
    }
    let bare = bytes.starts_with(MAGIC) || bytes.starts_with(OLD_MAGIC);
    let (header_bytes, header) = match header_length(bytes) {
        _ if bare => (0, Map::new()),
        None => return Err(other(look(bytes))),
        Some(length) if 4 + length > bytes.len() => {
            let there = bytes.len() - 4;
            return Err(cut(format!("its header should have {length} bytes, and only {there} follow")));
        }
        Some(length) => match serde_json::from_slice(&bytes[4..4 + length]) {
            Ok(Value::Object(header)) => (4 + length, header),
            _ => return Err(other(format!("its header of {length} bytes is no JSON object"))),
        },
    };
    let plan = &bytes[header_bytes..];
    if plan.is_empty() {
        return Err(cut("nothing follows its header".into()));
    }
    let plan_header = plan_header(plan).map_err(|problem| match problem {
        Problem::Short => cut(format!("its plan has {} bytes", plan.len())),
        Problem::Other if header_bytes > 0 => other("what follows its header is no plan".into()),
        Problem::Other => other(look(bytes)),
    })?;
    if let Some(length) = plan_header.bytes.filter(|&length| length > plan.len() as u64) {
        return Err(cut(format!("its plan should have {length} bytes, and has {}", plan.len())));
    }
    Ok(EngineFile {
        header_bytes,
        file_bytes: bytes.len() as u64,
        metadata: metadata(&header),
        header,
        plan: plan_header,
        sidecar: None,
    })
}

enum Problem {
    Short,
    Other,
}

fn plan_header(plan: &[u8]) -> Result<PlanHeader, Problem> {
    let begins = |magic: &[u8; 4]| magic.starts_with(&plan[..plan.len().min(4)]);
    if !begins(MAGIC) && !begins(OLD_MAGIC) {
        return Err(Problem::Other);
    }
    let Some(header) = plan.first_chunk::<PLAN_HEADER>() else { return Err(Problem::Short) };
    let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
    let magic = word(0);
    let known_layout = magic == *MAGIC && word(4) == [0; 4];
    let version = PlanVersion(word(VERSION_AT));
    // Engines of 8.5 begin alike, and what they have at this place is not a version.
    let plausible = matches!(version.0, [8, 6..=99, ..] | [9..=31, 0..=99, ..]);
    let known = known_layout && plausible;
    let [a, b] = [word(LENGTH_AT), word(LENGTH_AT + 4)].map(u32::from_le_bytes).map(u64::from);
    Ok(PlanHeader { magic, version: Some(version).filter(|_| known), bytes: Some(a | b << 32).filter(|_| known) })
}

/// Length of a header that begins as one does; `None` where this is no header.
fn header_length(bytes: &[u8]) -> Option<usize> {
    let length = usize::try_from(u32::from_le_bytes(*bytes.first_chunk()?)).ok()?;
    let object = bytes.get(4).is_none_or(|&byte| byte == b'{');
    ((2..=MAX_HEADER).contains(&length) && object).then_some(length)
}

/// What a file is that is no engine.
fn look(bytes: &Bytes) -> String {
    match info::look(bytes) {
        Some(what) => what.to_owned(),
        None if info::read(bytes).is_ok() => "it is an ONNX model; give it the extension .onnx".to_owned(),
        None => "it begins neither with a plan nor with a header".to_owned(),
    }
}

/// Facts of the header, in the words of every other model.
fn metadata(header: &Map<String, Value>) -> Metadata {
    let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
    let size = |value: &Value| match value {
        Value::Array(sides) => match &sides[..] {
            [height, width] => number(height).zip(number(width)).map(|(h, w)| [h, w]),
            _ => None,
        },
        side => number(side).map(|side| [side, side]),
    };
    // JSON within a text, as Ultralytics' own header has it, or names as any other exporter writes them.
    let named = header.get("names").map(|value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        names::read("names", &text)
    });
    let named = named.transpose();
    Metadata {
        names_problem: named.as_ref().err().cloned(),
        names: named.ok().flatten().unwrap_or_default(),
        stride: header.get("stride").and_then(number),
        task: header.get("task").and_then(Value::as_str).map(str::to_owned),
        imgsz: header.get("imgsz").and_then(size),
        end2end: header.get("end2end").and_then(Value::as_bool),
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
