//! Samples on their way from a worker to the parent: a ring in shared memory.
//!
//! The parent creates the memory and keeps it, so that a worker's death, however sudden, loses nothing that was
//! written. Writing is a handful of stores, with no system call. When the parent does not keep up, the oldest samples
//! are overwritten and counted as lost; the reader can tell.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use memmap2::MmapRaw;
use prony_types::{Phase, Sample};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};

/// Words before the first slot; each of the three in use is on a cache line of its own.
const HEADER_WORDS: usize = 24;
/// Samples written so far.
const HEAD: usize = 0;
/// Bumped by work that gives no samples, so that a long check is not taken for a hang.
const BEATS: usize = 8;
/// Set by the parent: end the loop you are in.
const STOP: usize = 16;
/// Words of a slot: start, phase and round, frame and detections, five parts, total, and padding.
const SLOT_WORDS: usize = 10;
/// Slots. At 100,000 samples a second the parent may sleep for over half a second.
const CAPACITY: u64 = 1 << 16;
/// A part that does not exist.
const ABSENT: u64 = u64::MAX;

/// Why a ring could not be made or opened.
#[derive(Debug, thiserror::Error)]
#[error("sample ring: {0}")]
pub struct RingError(String);

/// The parent's hold on the memory: gives the descriptor to a child and reads what it writes.
#[derive(Debug)]
pub struct Shared {
    fd: OwnedFd,
}

impl Shared {
    /// New memory, all zero. The descriptor is inherited by children until [`Shared::seal`].
    pub fn create() -> Result<Shared, RingError> {
        let fail = |e: rustix::io::Errno| RingError(e.to_string());
        let fd = memfd_create("prony-samples", MemfdFlags::empty()).map_err(fail)?;
        let bytes = (HEADER_WORDS as u64 + CAPACITY * SLOT_WORDS as u64) * 8;
        ftruncate(&fd, bytes).map_err(fail)?;
        Ok(Shared { fd })
    }

    /// Number of the descriptor, for the job.
    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Keeps children started from now on from inheriting the descriptor.
    pub fn seal(&self) -> Result<(), RingError> {
        fcntl_setfd(&self.fd, FdFlags::CLOEXEC).map_err(|e| RingError(e.to_string()))
    }

    /// The reading end. Stands on its own: the descriptor may be closed.
    pub fn reader(&self) -> Result<RingReader, RingError> {
        let fd = self.fd.try_clone().map_err(|e| RingError(e.to_string()))?;
        Ok(RingReader { memory: Memory::map(fd)?, next: 0, lost: 0 })
    }
}

/// Where a worker puts samples.
#[derive(Debug)]
pub struct RingWriter {
    memory: Memory,
    written: u64,
}

impl RingWriter {
    /// Opens the ring behind an inherited descriptor and takes the descriptor over.
    pub fn inherit(fd: RawFd) -> Result<RingWriter, RingError> {
        let fd = adopt(fd)?;
        Ok(RingWriter { memory: Memory::map(fd)?, written: 0 })
    }

    /// A sign of life beside samples.
    pub fn beat(&self) {
        self.memory.words()[BEATS].fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the parent wants the loop to end. A load, no system call.
    pub fn asked_to_stop(&self) -> bool {
        self.memory.words()[STOP].load(Ordering::Relaxed) != 0
    }

    /// Appends a sample: stores only.
    pub fn push(&mut self, sample: &Sample) {
        let words = self.memory.words();
        let slot = slot_of(self.written);
        let part = |i: usize| sample.parts_ns[i].unwrap_or(ABSENT);
        let pair = |high: u32, low: u32| (u64::from(high) << 32) | u64::from(low);
        let values = [
            sample.start_ns,
            pair(sample.phase as u32, sample.round),
            pair(sample.frame, sample.detections),
            part(0),
            part(1),
            part(2),
            part(3),
            part(4),
            sample.total_ns,
        ];
        // Orders the counter's last value before these stores, so that a reader of a torn slot sees the overrun.
        fence(Ordering::Release);
        for (word, value) in words[slot..].iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
        self.written += 1;
        words[HEAD].store(self.written, Ordering::Release);
    }
}

/// Where the parent takes samples from.
#[derive(Debug)]
pub struct RingReader {
    memory: Memory,
    next: u64,
    lost: u64,
}

impl RingReader {
    /// Appends everything new to `into`.
    pub fn drain(&mut self, into: &mut Vec<Sample>) {
        let words = self.memory.words();
        let head = words[HEAD].load(Ordering::Acquire);
        let oldest = head.saturating_sub(CAPACITY);
        if self.next < oldest {
            self.lost += oldest - self.next;
            self.next = oldest;
        }
        while self.next < head {
            let slot = slot_of(self.next);
            let sample = decode(&words[slot..slot + SLOT_WORDS]);
            // If the writer has come round to this slot meanwhile, what was read may be torn.
            fence(Ordering::Acquire);
            let overrun = words[HEAD].load(Ordering::Relaxed) >= self.next + CAPACITY;
            match sample {
                Some(sample) if !overrun => into.push(sample),
                _ => self.lost += 1,
            }
            self.next += 1;
        }
    }

    /// Samples that were overwritten before they could be read.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Signs of life beside samples, so far.
    pub fn beats(&self) -> u64 {
        self.memory.words()[BEATS].load(Ordering::Relaxed)
    }

    /// Asks the worker to end the loop it is in.
    pub fn ask_to_stop(&self) {
        self.memory.words()[STOP].store(1, Ordering::Relaxed);
    }
}

fn slot_of(index: u64) -> usize {
    HEADER_WORDS + (index % CAPACITY) as usize * SLOT_WORDS
}

fn decode(words: &[AtomicU64]) -> Option<Sample> {
    let word = |i: usize| words[i].load(Ordering::Relaxed);
    let high = |i: usize| (word(i) >> 32) as u32;
    let low = |i: usize| word(i) as u32;
    let phases = [Phase::Cold, Phase::Warmup, Phase::Steady, Phase::Throughput];
    Some(Sample {
        start_ns: word(0),
        phase: phases.into_iter().find(|&phase| phase as u32 == high(1))?,
        round: low(1),
        frame: high(2),
        detections: low(2),
        parts_ns: std::array::from_fn(|i| Some(word(3 + i)).filter(|&ns| ns != ABSENT)),
        total_ns: word(8),
    })
}

/// The mapped memory.
#[derive(Debug)]
struct Memory {
    map: MmapRaw,
}

impl Memory {
    fn map(fd: OwnedFd) -> Result<Memory, RingError> {
        let file = File::from(fd);
        let len = file.metadata().map_err(|e| RingError(e.to_string()))?.len();
        if len != (HEADER_WORDS as u64 + CAPACITY * SLOT_WORDS as u64) * 8 {
            return Err(RingError(format!("the inherited descriptor is not a ring ({len} bytes)")));
        }
        let map = MmapRaw::map_raw(&file).map_err(|e| RingError(e.to_string()))?;
        Ok(Memory { map })
    }

    #[expect(unsafe_code, reason = "shared memory as words that two processes access atomically")]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, lives as long as `self` and has exactly this many bytes (checked in
        // `map`); every access in both processes goes through atomics, so a concurrent store is not a data race.
        unsafe { std::slice::from_raw_parts(self.map.as_mut_ptr().cast::<AtomicU64>(), self.map.len() / 8) }
    }
}

#[expect(unsafe_code, reason = "a descriptor that the parent left open for this process")]
fn adopt(fd: RawFd) -> Result<OwnedFd, RingError> {
    if fd < 3 {
        return Err(RingError(format!("{fd} is not an inherited descriptor")));
    }
    // SAFETY: the parent created the descriptor for this process alone and nothing else here knows its number; if it
    // is not open, the first use fails with EBADF.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd as _;

    use super::*;

    fn sample(i: u64) -> Sample {
        Sample {
            start_ns: i,
            phase: Phase::Steady,
            round: 3,
            frame: i as u32,
            detections: 7,
            parts_ns: [Some(1), None, Some(i), None, Some(0)],
            total_ns: i * 2,
        }
    }

    fn pair() -> (RingWriter, RingReader) {
        let shared = Shared::create().unwrap();
        let fd = shared.fd.try_clone().unwrap().into_raw_fd();
        (RingWriter::inherit(fd).unwrap(), shared.reader().unwrap())
    }

    #[test]
    fn samples_come_out_as_they_went_in() {
        let (mut writer, mut reader) = pair();
        let mut out = Vec::new();
        for i in 0..10 {
            writer.push(&sample(i));
        }
        reader.drain(&mut out);
        assert_eq!(out, (0..10).map(sample).collect::<Vec<_>>());
        reader.drain(&mut out);
        assert_eq!(out.len(), 10);
        assert_eq!(reader.lost(), 0);
    }

    #[test]
    fn an_overrun_is_counted_and_the_newest_stay() {
        let (mut writer, mut reader) = pair();
        for i in 0..CAPACITY + 5 {
            writer.push(&sample(i));
        }
        let mut out = Vec::new();
        reader.drain(&mut out);
        // The oldest surviving slot is the next to be overwritten, so it cannot be told from a torn one.
        assert_eq!(reader.lost() + out.len() as u64, CAPACITY + 5);
        assert!(reader.lost() >= 5);
        assert_eq!(out.last(), Some(&sample(CAPACITY + 4)));
    }

    #[test]
    fn what_a_dead_writer_wrote_is_still_there() {
        let (mut writer, mut reader) = pair();
        writer.push(&sample(1));
        drop(writer);
        let mut out = Vec::new();
        reader.drain(&mut out);
        assert_eq!(out, [sample(1)]);
    }

    #[test]
    fn a_reader_beside_a_busy_writer_never_sees_a_torn_sample() {
        let (mut writer, mut reader) = pair();
        let total = 500_000;
        let handle = std::thread::spawn(move || (0..total).for_each(|i| writer.push(&sample(i))));
        let mut out = Vec::new();
        while !handle.is_finished() {
            reader.drain(&mut out);
        }
        handle.join().unwrap();
        reader.drain(&mut out);
        assert_eq!(out.len() as u64 + reader.lost(), total);
        assert!(out.iter().all(|s| *s == sample(s.start_ns)));
        assert!(out.is_sorted_by_key(|s| s.start_ns));
    }

    #[test]
    fn beats_and_the_wish_to_stop_cross_over() {
        let (writer, reader) = pair();
        assert!(!writer.asked_to_stop());
        writer.beat();
        writer.beat();
        assert_eq!(reader.beats(), 2);
        reader.ask_to_stop();
        assert!(writer.asked_to_stop());
    }

    #[test]
    fn a_descriptor_that_is_no_ring_is_refused() {
        let file = tempfile::tempfile().unwrap();
        let error = RingWriter::inherit(OwnedFd::from(file).into_raw_fd()).unwrap_err();
        assert!(error.to_string().contains("not a ring"), "{error}");
    }
}
