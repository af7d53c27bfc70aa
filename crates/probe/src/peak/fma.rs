//! Multiply-adds in 32-bit floats, as fast as the widest instructions of this CPU allow: independent chains in registers,
//! so that neither memory nor latency holds them up.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use super::pin;

/// How long each thread computes.
const SPAN: Duration = Duration::from_millis(60);
/// Steps of every chain in a block; a block is short enough that some are not disturbed.
const STEPS: u64 = 20_000;
/// Chosen so that the numbers of a chain stay ordinary ones.
const FACTOR: f32 = 0.999;
const OFFSET: f32 = 0.001;

/// One way to do it.
struct Kernel {
    name: &'static str,
    /// Operations of a step over all chains.
    flops: u64,
    run: fn(u64) -> f32,
}

/// Operations a second over all CPUs, and the instructions that gave them. The best block of each thread counts: a peak
/// is what is possible.
pub(super) fn peak(cpus: &[u32]) -> (f64, &'static str) {
    let kernel = widest();
    let work = |cpu: u32| {
        pin(cpu);
        let (begun, mut best) = (Instant::now(), 0.0f64);
        loop {
            let block = Instant::now();
            black_box((kernel.run)(black_box(STEPS)));
            let rate = (kernel.flops * STEPS) as f64 / block.elapsed().as_secs_f64().max(1e-9);
            best = best.max(rate);
            if begun.elapsed() >= SPAN {
                return best;
            }
        }
    };
    let rates = thread::scope(|scope| {
        let threads: Vec<_> = cpus.iter().map(|&cpu| scope.spawn(move || work(cpu))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0.0)).sum()
    });
    (rates, kernel.name)
}

#[cfg(target_arch = "x86_64")]
fn widest() -> Kernel {
    use std::arch::is_x86_feature_detected;
    if is_x86_feature_detected!("avx512f") {
        Kernel { name: "AVX-512", flops: 16 * 16 * 2, run: wide::avx512 }
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        Kernel { name: "AVX2 with FMA", flops: 12 * 8 * 2, run: wide::avx2 }
    } else {
        Kernel { name: "SSE2", flops: 12 * 4 * 2, run: plain }
    }
}

#[cfg(target_arch = "aarch64")]
fn widest() -> Kernel {
    Kernel { name: "NEON", flops: 16 * 4 * 2, run: neon }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn widest() -> Kernel {
    Kernel { name: "plain code", flops: 12 * 4 * 2, run: plain }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        _mm256_cvtss_f32, _mm256_fmadd_ps, _mm256_set1_ps, _mm512_cvtss_f32, _mm512_fmadd_ps, _mm512_set1_ps,
    };

    use super::{FACTOR, OFFSET};

    pub(super) fn avx512(steps: u64) -> f32 {
        #[target_feature(enable = "avx512f")]
        fn chains(steps: u64) -> f32 {
            let (factor, offset) = (_mm512_set1_ps(FACTOR), _mm512_set1_ps(OFFSET));
            let mut chains = [offset; 16];
            for _ in 0..steps {
                for chain in &mut chains {
                    *chain = _mm512_fmadd_ps(*chain, factor, offset);
                }
            }
            let mut sum = 0.0;
            for chain in chains {
                sum += _mm512_cvtss_f32(chain);
            }
            sum
        }
        #[expect(unsafe_code, reason = "a function with target features is called")]
        // SAFETY: it needs AVX-512F and nothing else, and `widest` chooses it only where the processor has it.
        unsafe {
            chains(steps)
        }
    }

    pub(super) fn avx2(steps: u64) -> f32 {
        #[target_feature(enable = "avx2,fma")]
        fn chains(steps: u64) -> f32 {
            let (factor, offset) = (_mm256_set1_ps(FACTOR), _mm256_set1_ps(OFFSET));
            let mut chains = [offset; 12];
            for _ in 0..steps {
                for chain in &mut chains {
                    *chain = _mm256_fmadd_ps(*chain, factor, offset);
                }
            }
            let mut sum = 0.0;
            for chain in chains {
                sum += _mm256_cvtss_f32(chain);
            }
            sum
        }
        #[expect(unsafe_code, reason = "a function with target features is called")]
        // SAFETY: it needs AVX2 and FMA and nothing else, and `widest` chooses it only where the processor has both.
        unsafe {
            chains(steps)
        }
    }
}

/// Every 64-bit Arm processor has NEON.
#[cfg(target_arch = "aarch64")]
fn neon(steps: u64) -> f32 {
    use std::arch::aarch64::{vaddvq_f32, vdupq_n_f32, vfmaq_f32};
    #[target_feature(enable = "neon")]
    fn chains(steps: u64) -> f32 {
        let (factor, offset) = (vdupq_n_f32(FACTOR), vdupq_n_f32(OFFSET));
        let mut chains = [offset; 16];
        for _ in 0..steps {
            for chain in &mut chains {
                // The sum is what the instruction overwrites.
                *chain = vfmaq_f32(*chain, factor, offset);
            }
        }
        let mut sum = 0.0;
        for chain in chains {
            sum += vaddvq_f32(chain);
        }
        sum
    }
    #[expect(unsafe_code, reason = "a function with target features is called")]
    // SAFETY: it needs NEON, which is part of the architecture.
    unsafe {
        chains(steps)
    }
}

/// Multiplies and adds apart, for processors that cannot do both at once.
#[cfg(not(target_arch = "aarch64"))]
fn plain(steps: u64) -> f32 {
    let mut chains = [[OFFSET; 4]; 12];
    for _ in 0..steps {
        for chain in &mut chains {
            *chain = chain.map(|x| x * FACTOR + OFFSET);
        }
    }
    chains.iter().map(|chain| chain[0]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chains_were_computed() {
        let kernel = widest();
        let (few, many) = ((kernel.run)(10), (kernel.run)(STEPS));
        assert!((0.01..few * 1e4).contains(&many) && few < many, "{}: {few} {many}", kernel.name);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn wider_instructions_compute_the_same() {
        let plain = plain(100) / 12.0;
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            assert!((wide::avx2(100) / 12.0 - plain).abs() < 1e-5);
        }
        if std::arch::is_x86_feature_detected!("avx512f") {
            assert!((wide::avx512(100) / 16.0 - plain).abs() < 1e-5);
        }
    }
}
