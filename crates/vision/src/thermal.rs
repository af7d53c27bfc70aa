//! Sixteen-bit heat as eight-bit grey: the range between the first and the ninety-ninth percentile is what is shown.

/// Stretches the contrast of 16-bit pixels into `out` (resized to fit).
///
/// The lower bound is the smallest value with more than 1 % of the pixels at or below it, the upper bound the smallest
/// with at least 99 %; what lies between is spread over 0 to 255, rounded half up, and what lies outside is cut off. An
/// image without contrast becomes black. Integer arithmetic only, so it is the same on every machine.
pub fn stretch(pixels: &[u16], out: &mut Vec<u8>) {
    Stretcher::new().run(pixels, out);
}

const VALUES: usize = 1 << 16;

/// [`stretch`] with its histogram kept from frame to frame.
pub(crate) struct Stretcher {
    /// As long as there are values, so that no index needs a check.
    histogram: Box<[u32; VALUES]>,
    table: Box<[u8; VALUES]>,
}

impl Stretcher {
    pub(crate) fn new() -> Stretcher {
        Stretcher { histogram: Box::new([0; VALUES]), table: Box::new([0; VALUES]) }
    }

    pub(crate) fn run(&mut self, pixels: &[u16], out: &mut Vec<u8>) {
        // Most of the 65,536 values do not occur; what lies outside of those that do is left alone.
        let range = pixels.iter().fold((u16::MAX, 0), |(lo, hi), &v| (v.min(lo), v.max(hi)));
        let bounds = if pixels.is_empty() { None } else { self.bounds(pixels, range) };
        let Some((lo, hi)) = bounds else {
            out.clear();
            out.resize(pixels.len(), 0);
            return;
        };
        // A sensor's frame has far fewer distinct values than pixels, so the division is done once a value.
        let span = u32::from(hi - lo);
        for (value, entry) in (range.0..=range.1).zip(&mut self.table[usize::from(range.0)..]) {
            let above = u32::from(value.clamp(lo, hi) - lo);
            *entry = ((above * 510 + span) / (2 * span)) as u8;
        }
        out.clear();
        out.extend(pixels.iter().map(|&v| self.table[usize::from(v)]));
    }

    /// The two percentiles; `None` when they are equal. All pixels lie in `range`.
    fn bounds(&mut self, pixels: &[u16], range: (u16, u16)) -> Option<(u16, u16)> {
        let range_of_indices = usize::from(range.0)..=usize::from(range.1);
        self.histogram[range_of_indices.clone()].fill(0);
        for &v in pixels {
            self.histogram[usize::from(v)] += 1;
        }
        let n = pixels.len() as u64;
        let (mut cumulative, mut lo) = (0u64, None);
        for (value, &count) in (range.0..=range.1).zip(&self.histogram[range_of_indices]) {
            cumulative += u64::from(count);
            if lo.is_none() && cumulative * 100 > n {
                lo = Some(value);
            }
            if cumulative * 100 >= n * 99 {
                // More than 1 % is reached no later than 99 % are.
                return lo.filter(|&lo| lo < value).map(|lo| (lo, value));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretched(pixels: &[u16]) -> Vec<u8> {
        let mut out = vec![9; 3];
        stretch(pixels, &mut out);
        out
    }

    #[test]
    fn the_middle_98_percent_fill_the_range() {
        let pixels: Vec<u16> = (0..200).map(|i| 7000 + i).collect();
        let out = stretched(&pixels);
        // 2 of 200 are 1 %, so the third value is the first with more; the 198th is the first with 99 %.
        assert_eq!(out[..4], [0, 0, 0, 1]);
        assert_eq!(out[196..], [254, 255, 255, 255]);
        assert_eq!(out[2 + 97], 127); // 97 * 255 / 195 = 126.8
    }

    #[test]
    fn one_hot_pixel_does_not_take_the_contrast() {
        let mut pixels: Vec<u16> = (0..1000).map(|i| 100 + i % 10).collect();
        pixels[500] = u16::MAX;
        let out = stretched(&pixels);
        assert_eq!((out[0], out[9], out[500]), (0, 255, 255));
    }

    #[test]
    fn no_contrast_is_black_and_nothing_is_nothing() {
        assert_eq!(stretched(&[5; 4]), [0; 4]);
        assert_eq!(stretched(&[]), Vec::<u8>::new());
        assert_eq!(stretched(&[u16::MAX, 0]), [255, 0]);
    }

    #[test]
    fn a_frame_does_not_remember_the_last_one() {
        let mut stretcher = Stretcher::new();
        let mut out = Vec::new();
        stretcher.run(&[0, 60000], &mut out);
        stretcher.run(&[10, 20], &mut out);
        assert_eq!(out, [0, 255]);
    }
}
