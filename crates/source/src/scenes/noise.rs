//! Value noise in integers: random lattices of several sizes, smoothly filled in between.

use super::rng::Rng;

/// Adds one octave to `field`: lattice cells of `1 << cell_log2` pixels, values from 0 to `amplitude`.
pub(super) fn add_octave(rng: &mut Rng, field: &mut [i32], width: usize, cell_log2: u32, amplitude: i32) {
    let cell = 1_usize << cell_log2;
    let height = field.len() / width;
    let columns = width / cell + 2;
    let lattice: Vec<i32> = (0..columns * (height / cell + 2)).map(|_| rng.range(0, 255) * amplitude).collect();
    let ease: Vec<i32> = (0..cell as i32).map(|i| smooth((i << 8) >> cell_log2)).collect();
    let mut line = vec![0; columns];
    for (y, row) in field.chunks_exact_mut(width).enumerate() {
        let above = &lattice[(y >> cell_log2) * columns..][..columns];
        let below = &lattice[((y >> cell_log2) + 1) * columns..][..columns];
        let weight = ease[y & (cell - 1)];
        for ((mixed, &a), &b) in line.iter_mut().zip(above).zip(below) {
            *mixed = (a * (256 - weight) + b * weight) >> 8;
        }
        for (pixels, ends) in row.chunks_mut(cell).zip(line.windows(2)) {
            for (pixel, &w) in pixels.iter_mut().zip(&ease) {
                *pixel += (ends[0] * (256 - w) + ends[1] * w) >> 16;
            }
        }
    }
}

/// Three octaves, values from 0 to 256 with most near the middle.
pub(super) fn texture(rng: &mut Rng, width: usize, height: usize, coarse_log2: u32) -> Vec<i32> {
    let mut field = vec![0; width * height];
    // Grain varies from scene to scene: smooth ground, gravel.
    let fine = rng.range(10, 80);
    add_octave(rng, &mut field, width, coarse_log2, 176 - fine);
    add_octave(rng, &mut field, width, coarse_log2 - 2, 80);
    add_octave(rng, &mut field, width, coarse_log2 - 4, fine);
    field
}

/// 3t^2 - 2t^3 for t in 256ths.
fn smooth(t: i32) -> i32 {
    (t * t * (768 - 2 * t)) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texture_stays_in_range_and_varies() {
        let field = texture(&mut Rng::new(3, 0, 1), 100, 70, 6);
        assert_eq!(field.len(), 7000);
        let (low, high) = (field.iter().min().unwrap(), field.iter().max().unwrap());
        assert!(*low >= 0 && *high <= 256, "{low} {high}");
        assert!(high - low > 60, "{low} {high}");
    }
}
