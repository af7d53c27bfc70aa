//! The samples of one attempt at a cell. An hour at a millisecond is 3.6 million of them: the newest are in memory, the others in
//! a file of the run folder that has no name and is gone with the process.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use prony_judge::Series;
use prony_types::{Phase, Sample};

/// Samples that are kept in memory at most.
const IN_MEMORY: usize = 1 << 16;
/// Samples that stay in memory when the others go, for whoever looks at the last few.
const STAY: usize = 1 << 10;
/// Samples that are read back at once.
const AT_ONCE: usize = 1 << 14;
/// Bytes of a sample in the file.
const BYTES: usize = 72;

/// Samples in the order in which they were measured.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// The newest.
    recent: Vec<Sample>,
    /// Those before them.
    older: Option<Older>,
    /// Where a file for them may be made; `None`: they stay in memory.
    folder: Option<PathBuf>,
    warmup: u64,
    steady: u64,
    /// Those that could not be read back.
    unread: Cell<u64>,
}

#[derive(Debug)]
struct Older {
    file: File,
    count: u64,
}

impl Samples {
    /// None yet; a file is made in this folder once it is needed.
    pub(crate) fn in_folder(folder: Option<PathBuf>) -> Samples {
        Samples { folder, ..Samples::default() }
    }

    /// Adds those that came after all others.
    pub(crate) fn push(&mut self, fresh: &[Sample]) {
        let count = |phases: &[Phase]| fresh.iter().filter(|sample| phases.contains(&sample.phase)).count() as u64;
        self.warmup += count(&[Phase::Cold, Phase::Warmup]);
        self.steady += count(&[Phase::Steady]);
        for piece in fresh.chunks(IN_MEMORY) {
            self.recent.extend_from_slice(piece);
            if self.recent.len() > IN_MEMORY {
                self.spill();
            }
        }
    }

    /// Samples of cold start and warm-up.
    pub(crate) fn warmup(&self) -> u64 {
        self.warmup
    }

    /// Timed samples.
    pub(crate) fn steady(&self) -> u64 {
        self.steady
    }

    /// The last few, at most `count`.
    pub(crate) fn last(&self, count: usize) -> &[Sample] {
        &self.recent[self.recent.len().saturating_sub(count.min(STAY))..]
    }

    /// Samples that are lost because they could not be read back.
    pub(crate) fn unread(&self) -> u64 {
        self.unread.get()
    }

    /// Puts all but the last few into the file. What cannot be written stays in memory.
    fn spill(&mut self) {
        let Some(folder) = &self.folder else { return };
        let going = self.recent.len() - STAY;
        let bytes: Vec<u8> = self.recent[..going].iter().flat_map(encode).collect();
        let written = match &mut self.older {
            Some(older) => older.append(&bytes, going),
            none => tempfile::tempfile_in(folder)
                .and_then(|file| none.insert(Older { file, count: 0 }).append(&bytes, going)),
        };
        match written {
            Ok(()) => drop(self.recent.drain(..going)),
            Err(error) => {
                tracing::warn!("samples stay in memory: {} cannot be written to: {error}", folder.display());
                self.folder = None;
            }
        }
    }
}

impl Series for Samples {
    fn each(&self, visit: &mut dyn FnMut(&Sample)) {
        if let Some(older) = &self.older
            && let Err((read, error)) = older.each(visit)
        {
            tracing::error!("samples cannot be read back: {error}");
            self.unread.set(self.unread.get().max(older.count - read));
        }
        self.recent.iter().for_each(visit);
    }
}

impl Older {
    fn append(&mut self, bytes: &[u8], samples: usize) -> std::io::Result<()> {
        self.file.write_all_at(bytes, self.count * BYTES as u64)?;
        self.count += samples as u64;
        Ok(())
    }

    /// Shows all of them; on an error, how many were shown before it.
    fn each(&self, visit: &mut dyn FnMut(&Sample)) -> Result<(), (u64, std::io::Error)> {
        let mut block = vec![0; AT_ONCE * BYTES];
        let mut at = 0;
        while at < self.count {
            let samples = (self.count - at).min(AT_ONCE as u64) as usize;
            let block = &mut block[..samples * BYTES];
            self.file.read_exact_at(block, at * BYTES as u64).map_err(|error| (at, error))?;
            block.as_chunks::<BYTES>().0.iter().for_each(|bytes| visit(&decode(bytes)));
            at += samples as u64;
        }
        Ok(())
    }
}

fn encode(sample: &Sample) -> [u8; BYTES] {
    let phase = match sample.phase {
        Phase::Cold => 0u8,
        Phase::Warmup => 1,
        Phase::Steady => 2,
        Phase::Throughput => 3,
    };
    let mut bytes = [0; BYTES];
    let present = (0..5).filter(|&i| sample.parts_ns[i].is_some()).fold(0u8, |bits, i| bits | 1 << i);
    (bytes[0], bytes[1]) = (phase, present);
    let words = [sample.round, sample.frame, sample.detections];
    for (place, word) in bytes[4..16].as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    let parts = sample.parts_ns.map(|part| part.unwrap_or(0));
    let times = [sample.start_ns, sample.total_ns].into_iter().chain(parts);
    for (place, time) in bytes[16..].as_chunks_mut::<8>().0.iter_mut().zip(times) {
        *place = time.to_le_bytes();
    }
    bytes
}

fn decode(bytes: &[u8; BYTES]) -> Sample {
    let word = |i: usize| bytes[4..16].as_chunks::<4>().0.get(i).map_or(0, |word| u32::from_le_bytes(*word));
    let time = |i: usize| bytes[16..].as_chunks::<8>().0.get(i).map_or(0, |time| u64::from_le_bytes(*time));
    let phase = match bytes[0] {
        0 => Phase::Cold,
        1 => Phase::Warmup,
        2 => Phase::Steady,
        _ => Phase::Throughput,
    };
    Sample {
        start_ns: time(0),
        phase,
        round: word(0),
        frame: word(1),
        detections: word(2),
        parts_ns: std::array::from_fn(|i| (bytes[1] & 1 << i != 0).then(|| time(2 + i))),
        total_ns: time(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(i: u64) -> Sample {
        let phase = [Phase::Cold, Phase::Warmup, Phase::Steady, Phase::Throughput][(i % 4) as usize];
        let parts_ns = std::array::from_fn(|part| (!(i >> part).is_multiple_of(3)).then_some(i + part as u64));
        let (round, frame, detections) = ((i / 7) as u32, i as u32, u32::MAX - i as u32);
        Sample { start_ns: u64::MAX - i, phase, round, frame, detections, parts_ns, total_ns: i * 31 }
    }

    fn all(samples: &Samples) -> Vec<Sample> {
        let mut all = Vec::new();
        samples.each(&mut |sample| all.push(*sample));
        all
    }

    #[test]
    fn samples_beyond_the_memory_come_back_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let mut samples = Samples::in_folder(Some(folder.path().to_owned()));
        let want: Vec<Sample> = (0..200_001).map(sample).collect();
        want.chunks(777).for_each(|piece| samples.push(piece));
        assert!(samples.recent.len() <= IN_MEMORY && samples.older.is_some());
        assert_eq!(all(&samples), want);
        assert_eq!((samples.warmup(), samples.steady()), (100_001, 50_000));
        assert_eq!(samples.last(3), &want[want.len() - 3..]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn where_nothing_can_be_written_they_stay_in_memory() {
        let mut samples = Samples::in_folder(Some("/nonexistent".into()));
        let want: Vec<Sample> = (0..150_000).map(sample).collect();
        samples.push(&want);
        assert_eq!(all(&samples), want);
    }

    #[test]
    fn samples_that_cannot_be_read_back_are_counted_as_lost() {
        let folder = tempfile::tempdir().unwrap();
        let mut samples = Samples::in_folder(Some(folder.path().to_owned()));
        samples.push(&(0..100_000).map(sample).collect::<Vec<_>>());
        let older = samples.older.as_ref().unwrap();
        older.file.set_len(10 * BYTES as u64).unwrap();
        let spilled = older.count;
        let left = all(&samples).len() as u64;
        assert_eq!(samples.unread() + left, 100_000);
        assert_eq!(samples.unread(), spilled, "a block that is not whole is not shown");
    }
}
