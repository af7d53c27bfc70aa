//! Bilinear scaling of 8-bit rows, bit for bit as OpenCV's `INTER_LINEAR` does it.
//!
//! OpenCV weighs with 11-bit fixed point, drops four bits between the two passes and truncates in the second. A detector
//! trained behind that sees the same pixels here. Where both sides are exactly halved the outcome is the rounded mean of
//! 2x2 pixels, which has a shorter way of its own: an HD camera before a network of 640 pixels meets it in every frame.

use crate::dispatch::widest;

/// Fixed-point one of the weights.
const ONE: f32 = 2048.0;

/// Samples that a scaled colour pixel takes until it is finished: a power of two, so that whole pixels fill a register.
const QUAD: usize = 4;

/// The two neighbouring columns that a scaled one is mixed from.
#[derive(Clone, Copy)]
struct ColumnTap {
    /// Where the left one begins in its row; the other is its neighbour.
    at: u32,
    /// The weight of the left one in the lower half, that of the right one in the upper: as multiply-and-add wants it.
    weights: i32,
}

/// The two rows that a scaled one is mixed from.
#[derive(Clone, Copy)]
struct RowTap {
    rows: [usize; 2],
    weights: [i16; 2],
}

/// Scales images row by row. The rows come out planar: all samples of a channel, then those of the next.
#[derive(Default)]
pub(crate) struct Resizer {
    /// What the taps were made for: source and scaled sides, and channels.
    geometry: [usize; 5],
    columns: Vec<ColumnTap>,
    rows: Vec<RowTap>,
    /// Two horizontally scaled source rows, of the numbers in `held`; colour has a fourth, empty sample a pixel.
    passes: [Vec<i16>; 2],
    held: [usize; 2],
    /// The finished row before colour is taken apart.
    blended: Vec<u8>,
    /// Two source rows taken apart into planes (for halving), or a source row of one pixel made two.
    sources: [Vec<u8>; 2],
    /// The finished row.
    row: Vec<u8>,
}

/// Size of an image in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) w: usize,
    pub(crate) h: usize,
}

impl Resizer {
    /// Hands every row of `src`, scaled `from` one size `to` another, to `emit` with its number.
    ///
    /// `src` has `channels` (1 or 3) interleaved samples a pixel and exactly the length that `from` says.
    pub(crate) fn each_row(
        &mut self,
        src: &[u8],
        channels: usize,
        from: Size,
        to: Size,
        mut emit: impl FnMut(usize, &[u8]),
    ) {
        let pitch = from.w * channels;
        self.row.resize(to.w * channels, 0);
        if from == to {
            for (y, line) in src.chunks_exact(pitch).enumerate() {
                if channels == 1 {
                    emit(y, line);
                } else {
                    take_apart(line, &mut self.row);
                    emit(y, &self.row);
                }
            }
        } else if from.w == 2 * to.w && from.h == 2 * to.h {
            self.halve(src, channels, pitch, emit);
        } else {
            self.fit(from, to, channels);
            self.held = [usize::MAX; 2];
            let lanes = if channels == 1 { 1 } else { QUAD };
            for pass in &mut self.passes {
                pass.resize(to.w * lanes, 0);
            }
            self.blended.resize(to.w * lanes, 0);
            for y in 0..to.h {
                let tap = self.rows[y];
                let [first, second] = tap.rows;
                let upper = self.hold(src, channels, pitch, first, second);
                let lower = self.hold(src, channels, pitch, second, first);
                if channels == 1 {
                    blend(&self.passes[upper], &self.passes[lower], tap.weights, &mut self.row);
                } else {
                    blend(&self.passes[upper], &self.passes[lower], tap.weights, &mut self.blended);
                    take_quads_apart(&self.blended, &mut self.row);
                }
                emit(y, &self.row);
            }
        }
    }

    fn halve(&mut self, src: &[u8], channels: usize, pitch: usize, mut emit: impl FnMut(usize, &[u8])) {
        for (y, pair) in src.chunks_exact(2 * pitch).enumerate() {
            let (upper, lower) = pair.split_at(pitch);
            if channels == 1 {
                mean_of_four(upper, lower, &mut self.row);
            } else {
                let [a, b] = &mut self.sources;
                a.resize(pitch, 0);
                b.resize(pitch, 0);
                take_apart(upper, a);
                take_apart(lower, b);
                mean_of_four(a, b, &mut self.row);
            }
            emit(y, &self.row);
        }
    }

    /// Makes the taps, unless they are those of the last image.
    fn fit(&mut self, from: Size, to: Size, channels: usize) {
        let geometry = [from.w, from.h, to.w, to.h, channels];
        if self.geometry == geometry {
            return;
        }
        self.geometry = geometry;
        self.columns.clear();
        self.columns.extend((0..to.w).map(|x| column_tap(x, from.w, to.w, channels)));
        self.rows.clear();
        self.rows.extend((0..to.h).map(|y| row_tap(y, from.h, to.h)));
    }

    /// Which of the two passes holds source row `wanted`, scaling it if neither does; the one with `other` is spared.
    fn hold(&mut self, src: &[u8], channels: usize, pitch: usize, wanted: usize, other: usize) -> usize {
        if let Some(slot) = self.held.iter().position(|&row| row == wanted) {
            return slot;
        }
        let slot = usize::from(self.held[0] == other);
        self.held[slot] = wanted;
        let mut line = &src[wanted * pitch..][..pitch];
        if pitch == channels {
            // A single column has no right neighbour; give it itself.
            let twice = &mut self.sources[0];
            twice.clear();
            twice.extend_from_slice(line);
            twice.extend_from_slice(line);
            line = twice;
        }
        if channels == 1 {
            scale_grey(line, &self.columns, &mut self.passes[slot]);
        } else {
            scale_colour(line, &self.columns, &mut self.passes[slot]);
        }
        slot
    }
}

/// Position of scaled sample `i` between source samples: the first one and how far beyond it.
fn position(i: usize, from: usize, to: usize) -> (i64, f32) {
    let scale = 1.0 / (to as f64 / from as f64);
    let at = ((i as f64 + 0.5) * scale - 0.5) as f32;
    let first = at.floor();
    (first as i64, at - first)
}

fn weights(beyond: f32) -> [i16; 2] {
    [((1.0 - beyond) * ONE).round_ties_even() as i16, (beyond * ONE).round_ties_even() as i16]
}

/// Columns beyond an edge are the edge. At the right edge the last two columns are used, so that both always exist.
fn column_tap(i: usize, from: usize, to: usize, channels: usize) -> ColumnTap {
    let (first, beyond) = position(i, from, to);
    let last = from as i64 - 1;
    let (first, [left, right]) = if first < 0 || last == 0 {
        (0, weights(0.0))
    } else if first >= last {
        (last - 1, weights(1.0))
    } else {
        (first, weights(beyond))
    };
    ColumnTap { at: (first as usize * channels) as u32, weights: i32::from(right) << 16 | i32::from(left) }
}

/// Rows beyond an edge are the edge, but the weights stay: OpenCV blends the edge row with itself, which may round.
fn row_tap(i: usize, from: usize, to: usize) -> RowTap {
    let (first, beyond) = position(i, from, to);
    let inside = |row: i64| row.clamp(0, from as i64 - 1) as usize;
    RowTap { rows: [inside(first), inside(first + 1)], weights: weights(beyond) }
}

widest! {
    /// Interleaved colour to three planes.
    fn take_apart(line: &[u8], planes: &mut [u8]) {
        let n = planes.len() / 3;
        let (a, rest) = planes.split_at_mut(n);
        let (b, c) = rest.split_at_mut(n);
        for (((pixel, a), b), c) in line.chunks_exact(3).zip(a).zip(b).zip(c) {
            *a = pixel[0];
            *b = pixel[1];
            *c = pixel[2];
        }
    }

    /// Every 2x2 block of two planar rows, rounded half up.
    fn mean_of_four(upper: &[u8], lower: &[u8], out: &mut [u8]) {
        let pairs = upper.as_chunks::<2>().0.iter().zip(lower.as_chunks::<2>().0);
        for ((a, b), out) in pairs.zip(out) {
            let (a, b) = (u16::from_le_bytes(*a), u16::from_le_bytes(*b));
            *out = (((a & 0xff) + (a >> 8) + (b & 0xff) + (b >> 8) + 2) >> 2) as u8;
        }
    }

    /// The vertical pass. A product keeps its upper 16 bits, as one machine instruction gives them.
    fn blend(upper: &[i16], lower: &[i16], weights: [i16; 2], out: &mut [u8]) {
        let high = |sample: i16, weight: i16| ((i32::from(sample) * i32::from(weight)) >> 16) as i16;
        for ((&a, &b), out) in upper.iter().zip(lower).zip(out) {
            *out = ((high(a, weights[0]) + high(b, weights[1]) + 2) >> 2) as u8;
        }
    }

    /// The horizontal pass over grey; four of the nineteen bits are dropped, which makes it fit.
    fn scale_grey(line: &[u8], taps: &[ColumnTap], out: &mut [i16]) {
        for (tap, out) in taps.iter().zip(out) {
            let at = tap.at as usize;
            if let Some(&[a, b]) = line.get(at..at + 2) {
                *out = weigh(a, b, tap.weights);
            }
        }
    }

    /// Quads to three planes.
    fn take_quads_apart(quads: &[u8], planes: &mut [u8]) {
        let n = planes.len() / 3;
        let (a, rest) = planes.split_at_mut(n);
        let (b, c) = rest.split_at_mut(n);
        for (((quad, a), b), c) in quads.as_chunks::<QUAD>().0.iter().zip(a).zip(b).zip(c) {
            let quad = u32::from_le_bytes(*quad);
            *a = quad as u8;
            *b = (quad >> 8) as u8;
            *c = (quad >> 16) as u8;
        }
    }
}

/// The horizontal pass over interleaved colour, into quads.
fn scale_colour(line: &[u8], taps: &[ColumnTap], out: &mut [i16]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "a function with target features is called")]
        // SAFETY: the function needs AVX2 and nothing else, and the processor has just said that it has it.
        unsafe {
            scale_colour_avx2(line, taps, out);
        }
        return;
    }
    scale_colour_plain(line, taps, out);
}

fn scale_colour_plain(line: &[u8], taps: &[ColumnTap], out: &mut [i16]) {
    for (tap, quad) in taps.iter().zip(out.as_chunks_mut::<QUAD>().0) {
        let [a0, b0, c0, a1, b1, c1, ..] = two_pixels(line, tap).to_le_bytes();
        *quad = [weigh(a0, a1, tap.weights), weigh(b0, b1, tap.weights), weigh(c0, c1, tap.weights), 0];
    }
}

/// The same, two pixels at a time: no compiler finds the byte shuffle by itself, and this loop is most of the work
/// whenever an image is scaled by anything but a half.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn scale_colour_avx2(line: &[u8], taps: &[ColumnTap], out: &mut [i16]) {
    use std::arch::x86_64::*;
    // Each channel of the left pixel beside that of the right one, widened to 16 bits.
    let pair_up = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
    let pixel = |tap: &ColumnTap| {
        let samples = _mm_shuffle_epi8(_mm_cvtsi64_si128(two_pixels(line, tap)), pair_up);
        _mm_srli_epi32::<4>(_mm_madd_epi16(samples, _mm_set1_epi32(tap.weights)))
    };
    let (pairs, last) = taps.as_chunks::<2>();
    let (quads, rest) = out.as_chunks_mut::<{ 2 * QUAD }>();
    for ([left, right], quads) in pairs.iter().zip(quads) {
        let both = _mm_packus_epi32(pixel(left), pixel(right));
        let halves = [_mm_cvtsi128_si64(both), _mm_extract_epi64::<1>(both)];
        for (quad, half) in quads.as_chunks_mut::<QUAD>().0.iter_mut().zip(halves) {
            *quad = [half as i16, (half >> 16) as i16, (half >> 32) as i16, (half >> 48) as i16];
        }
    }
    scale_colour_plain(line, last, rest);
}

/// The six bytes of a tap's two pixels, the first one lowest, and two more that mean nothing: one load instead of six.
#[inline(always)]
fn two_pixels(line: &[u8], tap: &ColumnTap) -> i64 {
    let at = tap.at as usize;
    match line.get(at..at + 8).and_then(|eight| eight.try_into().ok()) {
        Some(eight) => i64::from_le_bytes(eight),
        None => last_two_pixels(line, at),
    }
}

#[cold]
#[inline(never)]
fn last_two_pixels(line: &[u8], at: usize) -> i64 {
    line.iter().skip(at).take(8).rev().fold(0, |value, &byte| value << 8 | i64::from(byte))
}

#[inline(always)]
fn weigh(a: u8, b: u8, weights: i32) -> i16 {
    let (left, right) = (i32::from(weights as i16), weights >> 16);
    ((i32::from(a) * left + i32::from(b) * right) >> 4) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resized(src: &[u8], channels: usize, from: (usize, usize), to: (usize, usize)) -> Vec<Vec<u8>> {
        let mut rows = Vec::new();
        let size = |(w, h)| Size { w, h };
        Resizer::default().each_row(src, channels, size(from), size(to), |y, row| {
            assert_eq!(y, rows.len());
            rows.push(row.to_vec());
        });
        rows
    }

    #[test]
    fn the_same_size_is_a_copy() {
        assert_eq!(resized(&[1, 2, 3, 4], 1, (2, 2), (2, 2)), [[1, 2], [3, 4]]);
        assert_eq!(resized(&[1, 2, 3, 4, 5, 6], 3, (2, 1), (2, 1)), [[1, 4, 2, 5, 3, 6]]);
    }

    #[test]
    fn half_the_size_is_the_mean_of_four() {
        assert_eq!(resized(&[1, 2, 3, 5], 1, (2, 2), (1, 1)), [[3]]);
        assert_eq!(resized(&[0, 10, 20, 2, 10, 20, 4, 10, 20, 8, 10, 21], 3, (2, 2), (1, 1)), [[4, 10, 20]]);
    }

    #[test]
    fn twice_the_size_weighs_quarters() {
        // Half-pixel centres: 0.75/0.25 mixes between the two, the edges outside.
        assert_eq!(resized(&[0, 100], 1, (2, 1), (4, 1)), [[0, 25, 75, 100]]);
        assert_eq!(resized(&[0, 100], 1, (1, 2), (1, 4)), [[0], [25], [75], [100]]);
    }

    #[test]
    fn one_column_has_no_neighbour_and_needs_none() {
        assert_eq!(resized(&[7, 8, 9], 3, (1, 1), (3, 1)), [[7, 7, 7, 8, 8, 8, 9, 9, 9]]);
    }

    #[test]
    fn the_shuffled_pass_is_the_plain_one() {
        let line: Vec<u8> = (0..3 * 50u32).map(|i| (i * 167 % 256) as u8).collect();
        for to in [1, 2, 7, 49, 90] {
            let taps: Vec<ColumnTap> = (0..to).map(|x| column_tap(x, 50, to, 3)).collect();
            let (mut fast, mut plain) = (vec![-1; QUAD * to], vec![-1; QUAD * to]);
            scale_colour(&line, &taps, &mut fast);
            scale_colour_plain(&line, &taps, &mut plain);
            assert_eq!(fast, plain);
        }
    }

    #[test]
    fn a_second_geometry_gets_its_own_taps() {
        let mut resizer = Resizer::default();
        let mut last = Vec::new();
        for (from, to) in [((4, 1), (3, 1)), ((2, 2), (3, 3)), ((2, 1), (4, 1))] {
            let src: Vec<u8> = (0..from.0 * from.1).map(|i| (i * 100) as u8).collect();
            let (from, to) = (Size { w: from.0, h: from.1 }, Size { w: to.0, h: to.1 });
            resizer.each_row(&src, 1, from, to, |_, row| last = row.to_vec());
        }
        assert_eq!(last, [0, 25, 75, 100]);
    }
}
