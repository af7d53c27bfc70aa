//! What a run did, in the order in which it happened: the lines of `events.jsonl`. Together with samples and readings they are all
//! that a record is made from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    AccuracyComparison, AccuracyRecord, CellSpec, CellStatus, Environment, Event, Fate, OutOfMemory, PeakRecord, Plan,
    RooflineRecord, RunInfo, RunRecord, WaveRecord,
};

/// A line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Happened {
    /// The run itself did it.
    Run(Box<RunEvent>),
    /// A worker said it.
    Worker(Box<Event>),
}

/// Something that a run did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// What it did.
    #[serde(flatten)]
    pub kind: RunEventKind,
}

/// The kinds of [`RunEvent`]. Cells are named by their id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "run", rename_all = "kebab-case")]
pub enum RunEventKind {
    /// A sitting began.
    Began {
        /// Which run, when and by whom.
        info: Box<RunInfo>,
        /// What is to be measured.
        plan: Box<Plan>,
        /// On what.
        environment: Box<Environment>,
        /// The cells that will not run, by id.
        fates: BTreeMap<String, Fate>,
        /// The record of the sittings before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        earlier: Option<Box<RunRecord>>,
        /// What relative limits are held against.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        baseline: Option<Box<RunRecord>>,
    },
    /// A cell does something else than before.
    Doing {
        /// Which one.
        cell: String,
        /// What it does.
        doing: Doing,
    },
    /// Something to know about all cells.
    Said {
        /// One line.
        text: String,
    },
    /// Cells that stood by are measured.
    Called {
        /// Which ones.
        cells: Vec<CellSpec>,
    },
    /// What a device can do at most.
    Peak {
        /// As it was measured, or is known.
        peak: PeakRecord,
    },
    /// What a cell should take at least.
    Predicted {
        /// Which one.
        cell: String,
        /// The floor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        floor: Option<Box<RooflineRecord>>,
        /// Why there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        absent: Option<String>,
    },
    /// Something to know about what was made for a cell.
    Noted {
        /// Which one.
        cell: String,
        /// One line.
        note: String,
    },
    /// Cells were loaded together.
    Wave {
        /// Which ones, and why not all.
        wave: WaveRecord,
    },
    /// A cell's boxes were compared with the truth.
    Scored {
        /// Which one.
        cell: String,
        /// How right they are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accuracy: Option<Box<AccuracyRecord>>,
        /// Why that is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        absent: Option<String>,
    },
    /// There is nothing to compare a cell's outputs with.
    Unreferenced {
        /// Which one.
        cell: String,
        /// Why.
        reason: String,
    },
    /// A cell ran out of memory, and is measured once more.
    Restarted {
        /// Which one.
        cell: String,
        /// How it died.
        death: OutOfMemory,
    },
    /// A cell is over.
    Closed {
        /// Which one.
        cell: String,
        /// How.
        status: CellStatus,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Samples that were overwritten before they could be read.
        lost: u64,
    },
    /// The sitting is over.
    Ended {
        /// RFC 3339, UTC.
        finished: String,
        /// Seconds over all sittings.
        wall_s: f64,
        /// Whether the user asked to stop.
        interrupted: bool,
        /// Accuracy of cells against each other.
        accuracy_comparisons: Vec<AccuracyComparison>,
    },
}

/// What a cell is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// Its graph is made.
    Rewriting,
    /// Its engine is made.
    Building,
    /// It is loaded.
    Loading,
    /// It runs until it is steady.
    WarmingUp,
    /// It is timed.
    Measuring,
    /// It is timed with several calls in flight.
    Throughput,
    /// It runs the data set.
    Evaluating,
    /// What its outputs are compared with is computed.
    Referencing,
    /// Its outputs are compared.
    Checking,
}

impl Doing {
    /// The words for it.
    pub const fn words(self) -> &'static str {
        match self {
            Doing::Rewriting => "making the graph",
            Doing::Building => "making the engine",
            Doing::Loading => "loading",
            Doing::WarmingUp => "warming up",
            Doing::Measuring => "measuring",
            Doing::Throughput => "measuring throughput",
            Doing::Evaluating => "running the data set",
            Doing::Referencing => "computing the reference",
            Doing::Checking => "checking outputs",
        }
    }
}
