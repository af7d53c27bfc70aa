//! What a file is read as, and how large one of that kind may be.

use std::fmt;

/// What a file is read as. The kind decides how large it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A plan file.
    Plan,
    /// A list of names, one per line.
    List,
    /// `report.json` of a run.
    Record,
    /// Samples, events or telemetry of a run: one line per reading.
    Lines,
    /// A small file of settings or facts beside another file.
    Sidecar,
    /// Labels of one image, or the description of a data set.
    Labels,
    /// Annotations or detections of a whole data set.
    Annotations,
    /// An image.
    Image,
    /// Arrays: `.npy`, `.npz`.
    Array,
    /// A model: a graph, a checkpoint, an engine.
    Model,
    /// Weights beside a model.
    Weights,
    /// A shared library or a program.
    Library,
    /// A wheel or another archive.
    Archive,
    /// Timings or ranges that an earlier build found.
    Cache,
    /// What a child process printed.
    Log,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Kind {
    /// The largest file that is read as this kind.
    #[must_use]
    pub const fn cap_bytes(self) -> u64 {
        match self {
            Kind::Plan => MIB,
            Kind::Sidecar | Kind::Labels => 16 * MIB,
            Kind::List => 64 * MIB,
            Kind::Record | Kind::Image | Kind::Log | Kind::Cache => 256 * MIB,
            Kind::Lines | Kind::Annotations => 4 * GIB,
            Kind::Model | Kind::Library | Kind::Archive => 16 * GIB,
            Kind::Array | Kind::Weights => 256 * GIB,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Plan => "a plan",
            Kind::List => "a list",
            Kind::Record => "a run's record",
            Kind::Lines => "samples or events",
            Kind::Sidecar => "a sidecar",
            Kind::Labels => "labels",
            Kind::Annotations => "annotations",
            Kind::Image => "an image",
            Kind::Array => "an array",
            Kind::Model => "a model",
            Kind::Weights => "weights",
            Kind::Library => "a library",
            Kind::Archive => "an archive",
            Kind::Cache => "a cache",
            Kind::Log => "a log",
        })
    }
}
