//! Outputs against a reference: tensors value by value, boxes after NMS.

mod bounds;
mod boxes;
mod rows;

use prony_types::TensorAgreement;

pub use bounds::{Bounds, SEVERAL, epsilon};
pub use boxes::{Found, Near, Tally, matched, stands};
pub use rows::{Rows, rows};

/// Stands for infinity, which JSON cannot hold: `max_abs`, and with a minus sign `sqnr_db`, of tensors that
/// cannot be compared.
pub const WORST: f64 = f64::MAX;

/// Cosine, largest difference and signal-to-noise ratio. Where lengths differ or a value is not finite, the result is
/// the worst there is: cosine 0, `max_abs` [`WORST`], `sqnr_db` minus [`WORST`].
pub fn tensors(reference: &[f32], got: &[f32]) -> TensorAgreement {
    let worst = TensorAgreement { cosine: 0.0, max_abs: WORST, sqnr_db: Some(-WORST) };
    if reference.len() != got.len() {
        return worst;
    }
    let (mut dot, mut of_reference, mut of_got, mut noise, mut max_abs) = (0.0, 0.0, 0.0, 0.0, 0.0f64);
    let mut equal = true;
    for (&a, &b) in reference.iter().zip(got) {
        if !(a.is_finite() && b.is_finite()) {
            return worst;
        }
        equal &= a.to_bits() == b.to_bits();
        let (a, b) = (f64::from(a), f64::from(b));
        let gap = a - b;
        dot += a * b;
        of_reference += a * a;
        of_got += b * b;
        noise += gap * gap;
        max_abs = max_abs.max(gap.abs());
    }
    if equal || noise == 0.0 {
        // A zero of the other sign is no noise; its ratio would be infinite too.
        return TensorAgreement { cosine: 1.0, max_abs: 0.0, sqnr_db: None };
    }
    let length = of_reference.sqrt() * of_got.sqrt();
    let cosine = if length > 0.0 { (dot / length).clamp(-1.0, 1.0) } else { 0.0 };
    let sqnr_db = if of_reference > 0.0 { 10.0 * (of_reference / noise).log10() } else { -WORST };
    TensorAgreement { cosine, max_abs, sqnr_db: Some(sqnr_db) }
}

/// Of two tensors' figures the worse ones.
pub fn worse_tensor(a: TensorAgreement, b: TensorAgreement) -> TensorAgreement {
    TensorAgreement {
        cosine: a.cosine.min(b.cosine),
        max_abs: a.max_abs.max(b.max_abs),
        // Absent is without any noise.
        sqnr_db: match (a.sqnr_db, b.sqnr_db) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        },
    }
}

/// Of each tensor's figures the worse ones; one that only one side has counts as it is.
pub fn worse(a: Option<TensorAgreement>, b: Option<TensorAgreement>) -> Option<TensorAgreement> {
    match (a, b) {
        (Some(a), Some(b)) => Some(worse_tensor(a, b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_tensors_have_no_noise() {
        let all = tensors(&[1.0, -2.0, 0.0], &[1.0, -2.0, -0.0]);
        assert_eq!(all, TensorAgreement { cosine: 1.0, max_abs: 0.0, sqnr_db: None });
        assert_eq!(tensors(&[0.0; 4], &[0.0; 4]).cosine, 1.0);
        assert_eq!(tensors(&[], &[]).cosine, 1.0);
    }

    #[test]
    fn noise_is_told_in_decibels() {
        // Signal 100, noise 1: 20 dB.
        let one_off = tensors(&[10.0, 0.0], &[10.0, 1.0]);
        assert!((one_off.sqnr_db.unwrap() - 20.0).abs() < 1e-12);
        assert_eq!(one_off.max_abs, 1.0);
        assert!((one_off.cosine - 10.0 / 101.0f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_zeroed_tensor_does_not_look_like_its_reference() {
        assert_eq!(tensors(&[0.5, 0.25], &[0.0, 0.0]).cosine, 0.0);
        let from_nothing = tensors(&[0.0, 0.0], &[0.5, 0.0]);
        assert_eq!((from_nothing.cosine, from_nothing.sqnr_db), (0.0, Some(-WORST)));
    }

    #[test]
    fn what_cannot_be_compared_is_the_worst_and_json_can_hold_it() {
        for (a, b) in
            [(vec![1.0, f32::NAN], vec![1.0, f32::NAN]), (vec![f32::INFINITY], vec![1.0]), (vec![1.0], vec![])]
        {
            let worst = tensors(&a, &b);
            assert_eq!((worst.cosine, worst.max_abs, worst.sqnr_db), (0.0, WORST, Some(-WORST)));
            let json = serde_json::to_string(&worst).unwrap();
            assert_eq!(serde_json::from_str::<TensorAgreement>(&json).unwrap(), worst);
        }
    }
}
