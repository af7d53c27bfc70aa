//! What an NVIDIA GPU can do by what its driver says: units by architecture, their number and their clock.
//!
//! Operations of a multiprocessor in a clock, dense, a multiply-add counting 2, are those of NVIDIA's white papers; where
//! products of one architecture differ, the highest: a peak is a bound. An architecture or a precision that is not listed
//! has no peak here.

use prony_types::{GpuRecord, PeakOrigin, PeakRecord, Precision};

/// The peak of a GPU in a precision; `None` where the driver does not tell enough, or the architecture is not known.
pub fn gpu_peak(number: u32, gpu: &GpuRecord, precision: Precision) -> Option<PeakRecord> {
    let (major, minor) = gpu.compute.as_deref()?.split_once('.')?;
    let compute = (major.parse().ok()?, minor.parse().ok()?);
    let operations = operations(compute, precision)?;
    let (sms, khz) = (gpu.sms.filter(|&sms| sms > 0)?, gpu.clock_khz.filter(|&khz| khz > 0)?);
    // Of memory that it shares with the host the driver tells a clock that is not the memory's.
    let own_memory = gpu.integrated != Some(true);
    let bandwidth = || {
        let (khz, bits) = (gpu.memory_khz.filter(|&khz| khz > 0)?, gpu.memory_bits.filter(|&bits| bits > 0)?);
        // Twice a clock, on both edges.
        Some(khz as f64 * 1e3 * 2.0 * f64::from(bits) / 8.0)
    };
    Some(PeakRecord {
        device: format!("gpu {number}"),
        precision,
        flops_per_s: f64::from(operations) * f64::from(sms) * khz as f64 * 1e3,
        bytes_per_s: own_memory.then(bandwidth).flatten(),
        cache_bytes: gpu.cache_bytes.filter(|&bytes| bytes > 0),
        threads: None,
        origin: PeakOrigin::Computed,
        how: format!("{sms} SMs x {operations} a clock x {:.2} GHz", khz as f64 / 1e6),
    })
}

/// Operations of one multiprocessor in one clock.
fn operations(compute: (u32, u32), precision: Precision) -> Option<u32> {
    use Precision::{Bf16, Fp8, Fp16, Fp32, Int8, Nvfp4, Tf32};
    Some(match (compute, precision) {
        ((6, 0) | (7, _) | (8, 0), Fp32) => 128,
        ((5, _) | (6, 1 | 2) | (8, 6 | 7 | 9) | (9, 0) | (10..=12, 0), Fp32) => 256,
        ((6, 0), Fp16) => 256,
        ((5, 3) | (6, 2), Fp16) => 512,
        ((7, _), Fp16) => 1024,
        ((7, 2 | 5), Int8) => 2048,
        ((8, 0 | 7), Fp16 | Bf16) => 2048,
        ((8, 0 | 7), Tf32) => 1024,
        ((8, 0 | 7), Int8) => 4096,
        ((8, 6 | 9) | (12, 0), Fp16 | Bf16) => 1024,
        ((8, 6 | 9) | (12, 0), Tf32) => 512,
        ((8, 6 | 9) | (12, 0), Int8) => 2048,
        ((8, 9) | (12, 0), Fp8) => 2048,
        ((12, 0), Nvfp4) => 4096,
        ((9, 0), Tf32) => 2048,
        ((9, 0), Fp16 | Bf16) => 4096,
        ((9, 0), Int8 | Fp8) => 8192,
        ((10 | 11, 0), Tf32) => 4096,
        ((10 | 11, 0), Fp16 | Bf16) => 8192,
        ((10, 0), Int8) => 16384,
        ((10 | 11, 0), Fp8) => 16384,
        ((10 | 11, 0), Nvfp4) => 32768,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(compute: &str, sms: u32, mhz: u64) -> GpuRecord {
        GpuRecord {
            name: "a GPU".into(),
            compute: Some(compute.into()),
            sms: Some(sms),
            clock_khz: Some(mhz * 1000),
            memory_khz: Some(2_619_000),
            memory_bits: Some(5120),
            cache_bytes: Some(50 << 20),
            ..GpuRecord::default()
        }
    }

    /// What NVIDIA publishes, in TFLOP/s, with the clock that it publishes it for.
    #[test]
    fn peaks_are_those_of_the_data_sheets() {
        let cases = [
            (gpu("9.0", 132, 1830), Precision::Fp16, 989.4),
            (gpu("9.0", 132, 1830), Precision::Int8, 1979.0),
            (gpu("8.0", 108, 1410), Precision::Fp16, 312.0),
            (gpu("8.0", 108, 1410), Precision::Fp32, 19.5),
            (gpu("8.6", 72, 1695), Precision::Fp16, 125.0),
            (gpu("8.7", 16, 1300), Precision::Int8, 85.0),
            (gpu("7.5", 40, 1590), Precision::Int8, 130.0),
            (gpu("8.9", 128, 2520), Precision::Fp32, 82.6),
        ];
        for (gpu, precision, published) in cases {
            let peak = gpu_peak(0, &gpu, precision).unwrap();
            let tera = peak.flops_per_s / 1e12;
            assert!((tera / published - 1.0).abs() < 0.02, "{:?} {precision}: {tera} for {published}", gpu.compute);
        }
        let bandwidth = gpu_peak(0, &gpu("9.0", 132, 1830), Precision::Fp32).unwrap().bytes_per_s.unwrap();
        assert!((bandwidth / 3.35e12 - 1.0).abs() < 0.01, "{bandwidth}");
    }

    #[test]
    fn what_is_not_told_is_not_made_up() {
        let card = gpu("9.0", 132, 1830);
        assert_eq!(gpu_peak(0, &GpuRecord { clock_khz: None, ..card.clone() }, Precision::Fp32), None);
        assert_eq!(gpu_peak(0, &gpu("99.0", 10, 1000), Precision::Fp32), None);
        assert_eq!(gpu_peak(0, &card, Precision::Nvfp4), None);
        let jetson = GpuRecord { integrated: Some(true), ..gpu("8.7", 16, 1300) };
        assert_eq!(gpu_peak(0, &jetson, Precision::Fp16).unwrap().bytes_per_s, None);
    }
}
