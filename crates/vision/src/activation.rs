//! Whether scores are probabilities already, found out once a decoder.
//!
//! Exporters disagree on who applies the sigmoid, and applying it twice squeezes every score between 0.5 and 0.73. Raw
//! scores of a detector lie far below 0 wherever there is nothing to see, so one look at a whole output tells: scores
//! within 0 and 1 (and a hair beside it, for what an 8-bit output rounds to) are probabilities, others are logits.

/// How far outside 0 to 1 a probability may lie after rounding to 8 bits.
const SLACK: f32 = 1.0 / 64.0;

/// What the scores of a model are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Activation {
    /// No output with a finite score was seen yet.
    #[default]
    Unknown,
    /// Used as they are.
    Probabilities,
    /// A sigmoid makes them probabilities.
    Logits,
}

impl Activation {
    /// Decides on the first scores; later ones change nothing.
    pub(crate) fn settle(&mut self, scores: impl Iterator<Item = f32>) {
        if *self != Activation::Unknown {
            return;
        }
        let (mut least, mut most) = (f32::INFINITY, f32::NEG_INFINITY);
        for score in scores.filter(|s| s.is_finite()) {
            least = least.min(score);
            most = most.max(score);
        }
        if least <= most {
            let inside = least >= -SLACK && most <= 1.0 + SLACK;
            *self = if inside { Activation::Probabilities } else { Activation::Logits };
        }
    }

    /// A score as a probability.
    pub(crate) fn apply(self, score: f32) -> f32 {
        match self {
            Activation::Logits => sigmoid(score),
            Activation::Unknown | Activation::Probabilities => score,
        }
    }

    /// A raw score below which no probability exceeds `conf`; a little low rather than high, for a first sieve.
    pub(crate) fn floor(self, conf: f32) -> f32 {
        match self {
            Activation::Unknown | Activation::Probabilities => conf,
            Activation::Logits if conf >= 1.0 => f32::INFINITY,
            Activation::Logits if conf > 0.0 => (f64::from(conf) / (1.0 - f64::from(conf))).ln() as f32 - 1e-3,
            Activation::Logits => f32::NEG_INFINITY,
        }
    }
}

pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(scores: &[f32]) -> Activation {
        let mut activation = Activation::default();
        activation.settle(scores.iter().copied());
        activation
    }

    #[test]
    fn one_look_tells() {
        assert_eq!(settled(&[0.0, 0.5, 1.0]), Activation::Probabilities);
        assert_eq!(settled(&[-0.004, 1.004]), Activation::Probabilities);
        assert_eq!(settled(&[-9.0, 0.5]), Activation::Logits);
        assert_eq!(settled(&[0.5, 3.0]), Activation::Logits);
        assert_eq!(settled(&[f32::NAN, f32::INFINITY]), Activation::Unknown);
        assert_eq!(settled(&[f32::NAN, 0.5]), Activation::Probabilities);
    }

    #[test]
    fn the_first_look_stays() {
        let mut activation = settled(&[0.5]);
        activation.settle([-9.0].into_iter());
        assert_eq!(activation, Activation::Probabilities);
    }

    #[test]
    fn the_sieve_lets_everything_through_that_counts() {
        for conf in [0.0, 0.001, 0.25, 0.5, 0.999, 1.0] {
            for step in -2000..2000 {
                let logit = step as f32 / 100.0;
                assert!(sigmoid(logit) <= conf || logit > Activation::Logits.floor(conf), "{logit} at {conf}");
            }
        }
    }
}
