//! Case after case: a mutated input through a reader, with its time, its memory and its end looked at.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::memory;
use crate::mutate::mutate;
use crate::random::Random;
use crate::reader::Reader;
use crate::seeds::seeds;
use crate::traces::Traces;

/// The longest that a case may take.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Inputs that are kept to be mutated further.
const KEPT: usize = 20_000;

/// What is wrong with a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It panicked.
    Panicked(String),
    /// It took longer than [`PATIENCE`].
    Slow(Duration),
    /// It held more bytes than [`memory::allowed`].
    Greedy(usize),
}

/// An input that a reader does not stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The input.
    pub input: Vec<u8>,
    /// What it did.
    pub fault: Fault,
}

/// Runs one case. Memory is counted where the binary's allocator is [`memory::Counting`].
pub fn case(reader: Reader, input: &[u8]) -> (Traces, Option<Fault>) {
    let mut traces = Traces::default();
    memory::begin();
    let begun = thread_time();
    let outcome = catch_unwind(AssertUnwindSafe(|| reader.read(input, &mut traces)));
    let (took, peak) = (thread_time().saturating_sub(begun), memory::peak());
    let fault = match outcome {
        Err(panic) => Some(Fault::Panicked(words(panic.as_ref()))),
        Ok(()) if peak > memory::allowed(input.len()) => Some(Fault::Greedy(peak)),
        Ok(()) if took > PATIENCE => Some(Fault::Slow(took)),
        Ok(()) => None,
    };
    (traces, fault)
}

/// Time that this thread has computed: how long it waited for a busy machine says nothing about a reader.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked without a word").to_owned()
}

/// A reader under fire.
#[derive(Debug)]
pub struct Drive {
    reader: Reader,
    random: Random,
    corpus: Vec<Vec<u8>>,
    seen: HashSet<u64>,
    /// Cases so far.
    pub cases: u64,
}

impl Drive {
    /// From the seeds, and from inputs that an earlier run kept.
    pub fn new(reader: Reader, seed: u64, kept: Vec<Vec<u8>>) -> Drive {
        let corpus = seeds(reader).into_iter().chain(kept).collect();
        Drive { reader, random: Random::new(seed), corpus, seen: HashSet::new(), cases: 0 }
    }

    /// Inputs that got somewhere new, the seeds first.
    pub fn corpus(&self) -> &[Vec<u8>] {
        &self.corpus
    }

    /// Places that were reached.
    pub fn reached(&self) -> usize {
        self.seen.len()
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        // What is in the corpus is looked at first, as it is.
        if let Some(whole) = self.corpus.get(self.cases as usize).filter(|_| self.cases < KEPT as u64) {
            return whole.clone();
        }
        let (one, other) = (self.random.below(self.corpus.len()), self.random.below(self.corpus.len()));
        mutate(self.reader, &self.corpus[one], &self.corpus[other], &mut self.random)
    }

    /// Runs it; whether it got somewhere new, and what is wrong.
    pub fn run(&mut self, input: &[u8]) -> (bool, Option<Fault>) {
        self.cases += 1;
        let (traces, fault) = case(self.reader, input);
        let before = self.seen.len();
        self.seen.extend(traces.marks());
        let new = self.seen.len() > before && fault.is_none();
        if new && self.corpus.len() < KEPT && !self.corpus.iter().any(|kept| kept == input) {
            self.corpus.push(input.to_vec());
        }
        (new, fault)
    }

    /// A number of cases; what they found.
    pub fn cases(&mut self, count: u64) -> Vec<Finding> {
        let mut findings = Vec::new();
        for _ in 0..count {
            let input = self.next_input();
            if let (_, Some(fault)) = self.run(&input) {
                findings.push(Finding { input, fault });
            }
        }
        findings
    }
}

/// Inputs of a folder, in the order of their names; none where there is no folder.
pub fn load(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// Writes an input under the hash of its bytes.
pub fn save(folder: &Path, input: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path = folder.join(format!("{:016x}", hasher.finish()));
    fs::write(&path, input)?;
    Ok(path)
}
