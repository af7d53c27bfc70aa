//! Samples, wherever they lie: in memory, or in a file where there are too many of them.

use prony_types::{Phase, Sample};

/// Samples in the order in which they were measured.
pub trait Series {
    /// Shows every sample.
    fn each(&self, visit: &mut dyn FnMut(&Sample));
}

impl Series for [Sample] {
    fn each(&self, visit: &mut dyn FnMut(&Sample)) {
        self.iter().for_each(visit);
    }
}

impl<const N: usize> Series for [Sample; N] {
    fn each(&self, visit: &mut dyn FnMut(&Sample)) {
        self.iter().for_each(visit);
    }
}

impl Series for Vec<Sample> {
    fn each(&self, visit: &mut dyn FnMut(&Sample)) {
        self.iter().for_each(visit);
    }
}

/// Shows the samples of a phase.
pub(crate) fn each_of<S: Series + ?Sized>(samples: &S, phase: Phase, mut visit: impl FnMut(&Sample)) {
    samples.each(&mut |sample| {
        if sample.phase == phase {
            visit(sample);
        }
    });
}

/// `total` of the samples of a phase.
pub fn totals<S: Series + ?Sized>(samples: &S, phase: Phase) -> Vec<u64> {
    let mut totals = Vec::new();
    each_of(samples, phase, |sample| totals.push(sample.total_ns));
    totals
}
