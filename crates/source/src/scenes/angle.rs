//! Rotation without libm: a circle of 256 steps and a quarter of a sine in integers.

/// Binary digits behind the point of [`sin`] and [`cos`].
pub(super) const ONE_LOG2: u32 = 14;
/// One in the fixed point of [`sin`] and [`cos`].
pub(super) const ONE: i32 = 1 << ONE_LOG2;

/// `ONE * sin(i / 64 of a right angle)`, rounded.
const QUARTER: [i32; 65] = [
    0, 402, 804, 1205, 1606, 2006, 2404, 2801, 3196, 3590, 3981, 4370, 4756, 5139, 5520, 5897, 6270, 6639, 7005, 7366,
    7723, 8076, 8423, 8765, 9102, 9434, 9760, 10080, 10394, 10702, 11003, 11297, 11585, 11866, 12140, 12406, 12665,
    12916, 13160, 13395, 13623, 13842, 14053, 14256, 14449, 14635, 14811, 14978, 15137, 15286, 15426, 15557, 15679,
    15791, 15893, 15986, 16069, 16143, 16207, 16261, 16305, 16340, 16364, 16379, 16384,
];

/// Sine of `angle` 256ths of a circle.
pub(super) fn sin(angle: i32) -> i32 {
    let step = (angle & 63) as usize;
    match (angle >> 6) & 3 {
        0 => QUARTER[step],
        1 => QUARTER[64 - step],
        2 => -QUARTER[step],
        _ => -QUARTER[64 - step],
    }
}

/// Cosine of `angle` 256ths of a circle.
pub(super) fn cos(angle: i32) -> i32 {
    sin(angle + 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sine_and_cosine_lie_on_the_circle() {
        assert_eq!((sin(0), sin(64), sin(128), sin(192), cos(0), cos(128)), (0, ONE, 0, -ONE, ONE, -ONE));
        for angle in -300..600 {
            let square = sin(angle) * sin(angle) + cos(angle) * cos(angle);
            assert!((square - ONE * ONE).abs() < ONE * 2, "{angle}: {square}");
        }
    }
}
