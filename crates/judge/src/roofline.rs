//! The roofline: the time below which no backend that computes layer by layer can come on a device. A floor, not a
//! forecast: how near to it a backend comes is what is measured.
//!
//! A layer takes at least as long as its arithmetic at the device's peak, and at least as long as what it must move at the
//! bandwidth of memory; the sum of the larger of the two is the floor. What fits into the last-level cache need not move:
//! of a layer's activations only what is beyond it counts, and of the weights only the share that cannot stay in it from
//! frame to frame. Only an algorithm that computes less (Winograd's, say) or fewer bits than the peak is of gets below.

use prony_types::{Bound, LayerCost, PeakRecord, RooflineRecord};

/// Predicts one call of a model on a device.
pub fn predict(layers: &[LayerCost], peak: &PeakRecord) -> Option<RooflineRecord> {
    if peak.flops_per_s.is_nan() || peak.flops_per_s <= 0.0 {
        return None;
    }
    // Where either is not known, nothing is said of moving: the floor still holds.
    let (bandwidth, cache) = match (peak.bytes_per_s.filter(|&rate| rate > 0.0), peak.cache_bytes) {
        (Some(bandwidth), Some(cache)) => (bandwidth, cache),
        _ => (f64::INFINITY, u64::MAX),
    };
    let sum = |of: fn(&LayerCost) -> u64| layers.iter().map(of).fold(0, u64::saturating_add);
    let weights = sum(|layer| layer.weight_bytes);
    let kept = cache.min(weights);
    let share = if weights > 0 { (weights - kept) as f64 / weights as f64 } else { 0.0 };
    let (mut total_s, mut memory_s) = (0.0, 0.0);
    for layer in layers {
        let compute = layer.flops as f64 / peak.flops_per_s;
        let beyond = layer.activation_bytes.saturating_sub(cache) as f64;
        let moving = (beyond + layer.weight_bytes as f64 * share) / bandwidth;
        total_s += compute.max(moving);
        if moving > compute {
            memory_s += moving;
        }
    }
    Some(RooflineRecord {
        flops: sum(|layer| layer.flops),
        bytes: weights.saturating_add(sum(|layer| layer.activation_bytes)),
        predicted_ms: total_s * 1e3,
        bound: if memory_s > total_s / 2.0 { Bound::Memory } else { Bound::Compute },
        device: peak.device.clone(),
        measured_ms: None,
    })
}

#[cfg(test)]
mod tests {
    use prony_types::{PeakOrigin, Precision};

    use super::*;

    /// 1 GFLOP/s, 1 GB/s, a cache of 1 MB.
    fn peak() -> PeakRecord {
        PeakRecord {
            device: "cpu".into(),
            precision: Precision::Fp32,
            flops_per_s: 1e9,
            bytes_per_s: Some(1e9),
            cache_bytes: Some(1_000_000),
            threads: Some(1),
            origin: PeakOrigin::Measured,
            how: String::new(),
        }
    }

    fn layer(flops: u64, weight_bytes: u64, activation_bytes: u64) -> LayerCost {
        LayerCost { flops, weight_bytes, activation_bytes }
    }

    #[test]
    fn each_layer_takes_the_longer_of_its_two_times() {
        let layers = [layer(2_000_000, 0, 0), layer(1_000_000, 0, 6_000_000)];
        let floor = predict(&layers, &peak()).unwrap();
        assert!((floor.predicted_ms - 7.0).abs() < 1e-9, "{floor:?}");
        assert_eq!((floor.flops, floor.bytes, floor.bound), (3_000_000, 6_000_000, Bound::Memory));
    }

    #[test]
    fn what_fits_the_cache_does_not_move() {
        let layers = [layer(1_000_000, 500_000, 900_000)];
        let floor = predict(&layers, &peak()).unwrap();
        assert!((floor.predicted_ms - 1.0).abs() < 1e-9 && floor.bound == Bound::Compute, "{floor:?}");
        // Weights beyond the cache come anew with every frame, as far as they are beyond it.
        let heavy = predict(&[layer(0, 3_000_000, 0), layer(0, 1_000_000, 0)], &peak()).unwrap();
        assert!((heavy.predicted_ms - 3.0).abs() < 1e-9 && heavy.bound == Bound::Memory, "{heavy:?}");
    }

    #[test]
    fn without_a_peak_nothing_is_predicted() {
        assert_eq!(predict(&[layer(1, 1, 1)], &PeakRecord { flops_per_s: 0.0, ..peak() }), None);
        let unknown = PeakRecord { bytes_per_s: None, ..peak() };
        assert_eq!(predict(&[layer(0, 1 << 40, 1 << 40)], &unknown).unwrap().predicted_ms, 0.0);
        let nothing = predict(&[], &peak()).unwrap();
        assert_eq!((nothing.predicted_ms, nothing.bound), (0.0, Bound::Compute));
    }
}
