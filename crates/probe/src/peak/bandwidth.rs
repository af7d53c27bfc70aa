//! How fast memory is read when it is read as fast as can be, by all threads at once, from a buffer that no cache holds.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use super::pin;

const MIB: u64 = 1 << 20;
/// A buffer is so many times the last-level cache,
const TIMES_CACHE: u64 = 4;
/// but not beyond these bounds: to fill more takes longer than the measurement may.
const SMALLEST: u64 = 64 * MIB;
const LARGEST: u64 = 256 * MIB;
/// Passes over the buffer.
const PASSES: usize = 5;

/// Bytes a second; `None` where there is too little memory to tell.
pub(super) fn peak(cpus: &[u32], cache: Option<u64>, available: Option<u64>) -> Option<f64> {
    let bytes = cache.unwrap_or(0).saturating_mul(TIMES_CACHE).clamp(SMALLEST, LARGEST);
    if available.is_some_and(|available| bytes > available / 4) {
        return None;
    }
    let words = usize::try_from(bytes / 8).ok()? / cpus.len().max(1);
    let barrier = &Barrier::new(cpus.len());
    let passes = thread::scope(|scope| {
        let threads: Vec<_> = cpus.iter().map(|&cpu| scope.spawn(move || read(cpu, words, barrier))).collect();
        threads.into_iter().map(|thread| thread.join().ok()).collect::<Option<Vec<_>>>()
    })?;
    // A pass takes from the first thread's start to the last one's end; the shortest counts, for a peak is what is possible.
    let count = passes.iter().map(Vec::len).min()?;
    let span = |pass: usize| {
        let start = passes.iter().map(|thread| thread[pass].0).min()?;
        let end = passes.iter().map(|thread| thread[pass].1).max()?;
        Some((end - start).as_secs_f64())
    };
    let shortest = (0..count).filter_map(span).reduce(f64::min)?;
    (shortest > 0.0).then(|| (words * 8 * cpus.len()) as f64 / shortest)
}

/// Reads a buffer of its own again and again, each time with the others.
fn read(cpu: u32, words: usize, barrier: &Barrier) -> Vec<(Instant, Instant)> {
    pin(cpu);
    // Written once: pages that nobody wrote to are all the same one.
    let buffer: Vec<u64> = (0..words as u64).collect();
    let mut passes = Vec::with_capacity(PASSES);
    for _ in 0..PASSES {
        barrier.wait();
        let start = Instant::now();
        black_box(sum(black_box(&buffer)));
        passes.push((start, Instant::now()));
    }
    passes
}

/// A sum in several strands, so that no addition waits for another.
fn sum(words: &[u64]) -> u64 {
    let (lines, rest) = words.as_chunks::<8>();
    let mut strands = [0u64; 8];
    for line in lines {
        for (strand, word) in strands.iter_mut().zip(line) {
            *strand = strand.wrapping_add(*word);
        }
    }
    strands.iter().chain(rest).fold(0, |sum, word| sum.wrapping_add(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read() {
        let words: Vec<u64> = (1..=1003).collect();
        assert_eq!(sum(&words), 1003 * 1004 / 2);
    }

    #[test]
    fn a_machine_without_room_is_left_alone() {
        assert_eq!(peak(&[0], Some(32 * MIB), Some(100 * MIB)), None);
    }
}
