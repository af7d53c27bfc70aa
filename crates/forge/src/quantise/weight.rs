//! Weights as bytes: symmetric, with a scale for each output channel or one for all.

use super::range::LEVELS;

/// Weights in bytes, and what a byte is worth.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rounded {
    /// In the order of the floats.
    pub(crate) bytes: Vec<i8>,
    /// One for each channel, or one.
    pub(crate) scales: Vec<f32>,
    /// Signal against what rounding added; `None` where it added nothing.
    pub(crate) sqnr_db: Option<f64>,
}

/// How the elements of a weight belong to its output channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Channels {
    /// How many there are.
    pub(crate) count: usize,
    /// Elements between two channels: those of all axes behind the channels' own.
    pub(crate) stride: usize,
}

impl Channels {
    /// Those along an axis; `None` where there is no such axis.
    pub(crate) fn along(axis: usize, dims: &[i64]) -> Option<Channels> {
        let count = usize::try_from(*dims.get(axis)?).ok()?;
        let stride = dims[axis + 1..].iter().map(|&dim| usize::try_from(dim).ok()).product::<Option<usize>>()?;
        Some(Channels { count, stride })
    }

    /// The channel of an element.
    fn of(self, element: usize) -> usize {
        element / self.stride.max(1) % self.count.max(1)
    }
}

/// Rounds to the nearest byte, halves to the even one as `QuantizeLinear` does. No scale is below its channel's `floor`.
pub(crate) fn round(weights: &[f32], channels: Option<Channels>, floor: impl Fn(usize) -> f32) -> Rounded {
    let channel = |element: usize| channels.map_or(0, |channels| channels.of(element));
    let mut scales = vec![0.0f32; channels.map_or(1, |channels| channels.count)];
    for (i, weight) in weights.iter().enumerate() {
        let max = &mut scales[channel(i)];
        *max = max.max(weight.abs());
    }
    for (i, scale) in scales.iter_mut().enumerate() {
        *scale = positive((f64::from(*scale) / LEVELS) as f32).max(floor(i));
    }
    let byte = |(i, &weight): (usize, &f32)| {
        let steps = f64::from(weight) / f64::from(scales[channel(i)]);
        steps.round_ties_even().clamp(-LEVELS, LEVELS) as i8
    };
    let bytes: Vec<i8> = weights.iter().enumerate().map(byte).collect();
    let back = bytes.iter().enumerate().map(|(i, &byte)| f32::from(byte) * scales[channel(i)]);
    let sqnr_db = Noise::between(weights.iter().copied(), back).sqnr_db();
    Rounded { bytes, scales, sqnr_db }
}

/// A scale that can be divided by: channels that are dead have no largest weight.
pub(crate) fn positive(scale: f32) -> f32 {
    if scale.is_normal() && scale > 0.0 { scale } else { f32::MIN_POSITIVE * 1e6 }
}

/// Energy of a signal and of what was added to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Noise {
    signal: f64,
    noise: f64,
}

impl Noise {
    /// Of a tensor and what became of it.
    pub(crate) fn between(is: impl Iterator<Item = f32>, became: impl Iterator<Item = f32>) -> Noise {
        let mut noise = Noise::default();
        noise.add(is, became);
        noise
    }

    /// Of one more.
    pub(crate) fn add(&mut self, is: impl Iterator<Item = f32>, became: impl Iterator<Item = f32>) {
        for (is, became) in is.zip(became) {
            let (is, became) = (f64::from(is), f64::from(became));
            self.signal += is * is;
            self.noise += (is - became).powi(2);
        }
    }

    /// In decibels; `None` where there is no noise, or no signal to hold it against.
    pub(crate) fn sqnr_db(&self) -> Option<f64> {
        (self.noise > 0.0 && self.signal > 0.0).then(|| 10.0 * (self.signal / self.noise).log10())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_channel_uses_the_whole_byte() {
        // Two channels along the first axis, then along the second.
        let weights = [0.5, -1.0, 0.25, 20.0, -40.0, 10.0];
        let first = round(&weights, Channels::along(0, &[2, 3]), |_| 0.0);
        assert_eq!(first.bytes, [64, -127, 32, 64, -127, 32]);
        assert_eq!(first.scales, [(1.0 / 127.0) as f32, (40.0 / 127.0) as f32]);
        let second = round(&weights, Channels::along(1, &[2, 3]), |_| 0.0);
        assert_eq!(second.bytes, [3, -3, 3, 127, -127, 127]);
        assert_eq!(second.scales.len(), 3);
        let whole = round(&weights, None, |_| 0.0);
        assert_eq!((whole.bytes, whole.scales.len()), (vec![2, -3, 1, 64, -127, 32], 1));
    }

    #[test]
    fn bytes_are_back_within_half_a_step() {
        let weights: Vec<f32> =
            (0..600).map(|i| ((i * 37 % 211) as f32 - 105.0) * 1.3e-3 * (1 + i / 100) as f32).collect();
        let channels = Channels::along(0, &[6, 100]);
        let rounded = round(&weights, channels, |_| 0.0);
        for (i, (&weight, &byte)) in weights.iter().zip(&rounded.bytes).enumerate() {
            let scale = rounded.scales[i / 100];
            assert!((f32::from(byte) * scale - weight).abs() <= scale * 0.5001, "{i}: {weight}");
            assert!(byte >= -127);
        }
        // A byte has about 48 dB; a scale for all of them loses some.
        let each = rounded.sqnr_db.unwrap();
        let all = round(&weights, None, |_| 0.0).sqnr_db.unwrap();
        assert!((35.0..60.0).contains(&each) && all < each, "{each} {all}");
    }

    #[test]
    fn halves_go_to_the_even_byte() {
        let rounded = round(&[127.0, 0.5, 1.5, -2.5, -3.5], None, |_| 0.0);
        assert_eq!((rounded.bytes, rounded.scales), (vec![127, 0, 2, -2, -4], vec![1.0]));
    }

    #[test]
    fn a_dead_channel_has_a_scale_and_no_noise() {
        let rounded = round(&[0.0, 0.0, 127.0, -127.0], Channels::along(0, &[2, 2]), |_| 0.0);
        assert_eq!(rounded.bytes, [0, 0, 127, -127]);
        assert!(rounded.scales.iter().all(|scale| scale.is_normal() && *scale > 0.0));
        assert_eq!(rounded.sqnr_db, None);
        let floored = round(&[0.0, 0.0, 127.0, -127.0], Channels::along(0, &[2, 2]), |channel| [0.5, 0.5][channel]);
        assert_eq!(floored.scales, [0.5, 1.0]);
    }

    #[test]
    fn noise_is_told_in_decibels() {
        let signal = [3.0, 4.0];
        assert_eq!(Noise::between(signal.into_iter(), signal.into_iter()).sqnr_db(), None);
        let noise = Noise::between(signal.into_iter(), [3.0, 4.5].into_iter());
        assert!((noise.sqnr_db().unwrap() - 20.0).abs() < 1e-9);
    }
}
