//! How near outputs must be to the reference's to be still the model's.

use prony_types::{Precision, TensorAgreement};

/// Outputs are wrong where they are this many times further off than the model's own rounding carries them.
pub const SEVERAL: f64 = 10.0;

/// Least agreement of outputs with a reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Lowest cosine, of boxes and scores each.
    pub cosine: f64,
    /// Lowest signal-to-noise ratio, of boxes and scores each.
    pub sqnr_db: f64,
    /// The same where it is known how far rounding carries the model: no allowance is needed then for chaotic ones.
    pub known_db: f64,
    /// Lowest share of boxes that found their like.
    pub matched: f64,
}

impl Bounds {
    /// By precision: rounding is no mistake, but two libraries in fp32 differ by the order of their sums alone.
    pub const fn of(precision: Precision) -> Bounds {
        let (cosine, sqnr_db, matched) = match precision {
            Precision::Fp32 => (0.9999, 40.0, 0.99),
            Precision::Tf32 => (0.9995, 30.0, 0.95),
            Precision::Fp16 => (0.999, 25.0, 0.95),
            Precision::Bf16 => (0.99, 15.0, 0.90),
            Precision::Int8 | Precision::Fp8 | Precision::Native => (0.98, 10.0, 0.80),
            Precision::Nvfp4 => (0.95, 8.0, 0.70),
        };
        // Backends in fp32 lie above 130 dB of each other; arithmetic in TF32 or fp16 lies below 90.
        let known_db = if matches!(precision, Precision::Fp32) { 70.0 } else { sqnr_db };
        Bounds { cosine, sqnr_db, known_db, matched }
    }

    /// The same for a tensor that rounding alone moves: where several times that is more than the precision's own bounds
    /// allow, it is allowed.
    pub fn with_rounding(self, moved: Option<TensorAgreement>) -> Bounds {
        let Some(rounding) = moved.and_then(|moved| moved.sqnr_db) else { return self };
        let sqnr_db = self.known_db.min(rounding - 20.0 * SEVERAL.log10());
        // Noise that stands at a right angle to the signal turns it by this much.
        let turned = 1.0 / (1.0 + 10f64.powf(-sqnr_db / 10.0)).sqrt();
        let cosine = if sqnr_db < self.known_db { self.cosine.min(turned) } else { self.cosine };
        // Noise as large as the signal may turn it anywhere.
        Bounds { sqnr_db, cosine: if sqnr_db <= 0.0 { -1.0 } else { cosine }, ..self }
    }
}

/// Largest relative error of rounding to a precision, by which inputs are perturbed; `None` where the step depends on the
/// range of the values.
pub fn epsilon(precision: Precision) -> Option<f64> {
    match precision {
        Precision::Fp32 => Some(2f64.powi(-24)),
        Precision::Tf32 | Precision::Fp16 => Some(2f64.powi(-11)),
        Precision::Bf16 => Some(2f64.powi(-8)),
        Precision::Int8 | Precision::Fp8 | Precision::Nvfp4 | Precision::Native => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(sqnr_db: Option<f64>) -> Option<TensorAgreement> {
        Some(TensorAgreement { cosine: 1.0, max_abs: 0.0, sqnr_db })
    }

    #[test]
    fn a_model_that_rounding_hardly_moves_keeps_the_bounds_of_its_precision() {
        let fp32 = Bounds::of(Precision::Fp32);
        assert_eq!(fp32.with_rounding(None), fp32);
        assert_eq!(fp32.with_rounding(moved(None)), fp32);
        let known = fp32.with_rounding(moved(Some(130.0)));
        assert_eq!((known.cosine, known.sqnr_db), (fp32.cosine, 70.0), "and less noise is allowed");
        let fp16 = Bounds::of(Precision::Fp16);
        assert_eq!(fp16.with_rounding(moved(Some(130.0))), fp16);
    }

    #[test]
    fn a_chaotic_model_may_be_several_times_as_far_off_as_its_rounding_and_no_further() {
        let fp32 = Bounds::of(Precision::Fp32).with_rounding(moved(Some(50.0)));
        assert!((fp32.sqnr_db - 30.0).abs() < 1e-9, "{fp32:?}");
        // 30 dB of noise turn by its thousandth part, squared and halved.
        assert!((fp32.cosine - (1.0 - 0.0005)).abs() < 1e-6, "{fp32:?}");
        let lost = Bounds::of(Precision::Fp16).with_rounding(moved(Some(-3.0)));
        assert_eq!(lost.cosine, -1.0);
        assert_eq!(lost.matched, 0.95, "boxes are looked at one by one");
    }
}
