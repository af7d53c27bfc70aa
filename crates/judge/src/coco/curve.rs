//! Precision over recall from finds in the order of their scores.
//!
//! Only the finds matter: between two of them precision falls and recall stands, and a curve shows at each recall the best
//! precision from there on.

use super::RECALLS;

/// How many finds each recall needs, given the number of objects: at least one, so that recall 0 is the whole curve.
#[derive(Clone, Debug)]
pub(super) struct Needs([u32; RECALLS]);

impl Needs {
    /// The same comparison of doubles that numpy's `searchsorted` makes.
    pub(super) fn new(objects: u32) -> Needs {
        let all = f64::from(objects);
        Needs(std::array::from_fn(|r| {
            // numpy's `linspace(0, 1, 101)`.
            let recall = r as f64 * 0.01;
            let reached = |finds: u32| f64::from(finds) / all >= recall;
            let mut finds = (recall * all).ceil() as u32;
            while finds > 0 && reached(finds - 1) {
                finds -= 1;
            }
            while !reached(finds) {
                finds += 1;
            }
            finds.max(1)
        }))
    }
}

/// A find: how many there are up to it, and the share of right boxes up to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) finds: u32,
    pub(super) precision: f64,
}

impl Point {
    pub(super) fn new(right: u32, wrong: u32) -> Point {
        let right_share = f64::from(right) / (f64::from(wrong) + f64::from(right) + f64::EPSILON);
        Point { finds: right, precision: right_share }
    }
}

/// Tells `each` recall, from the last that is reached to the first, and the best precision from there on.
pub(super) fn walk(points: &[Point], needs: &Needs, mut each: impl FnMut(usize, f64)) {
    let Some(last) = points.last() else { return };
    let mut recalls = needs.0.partition_point(|&need| need <= last.finds);
    let mut best = 0.0f64;
    for (i, point) in points.iter().enumerate().rev() {
        best = best.max(point.precision);
        let before = if i == 0 { 0 } else { points[i - 1].finds };
        while recalls > 0 && needs.0[recalls - 1] > before {
            recalls -= 1;
            each(recalls, best);
        }
    }
}

/// Mean precision over all recalls.
pub(super) fn mean_precision(points: &[Point], needs: &Needs) -> f64 {
    let mut sum = 0.0;
    walk(points, needs, |_, precision| sum += precision);
    sum / RECALLS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recall_is_reached_by_numpys_comparison() {
        for objects in 1..2000u32 {
            let needs = Needs::new(objects);
            assert_eq!(needs.0[0], 1);
            assert_eq!(needs.0[100], objects);
            for (r, &need) in needs.0.iter().enumerate() {
                let recall = r as f64 * 0.01;
                assert!(f64::from(need) / f64::from(objects) >= recall, "{objects}, {r}");
                assert!(need == 1 || f64::from(need - 1) / f64::from(objects) < recall, "{objects}, {r}");
            }
        }
        // 0.35 is 0.35000000000000003 on numpy's line, which 35 of 100 do not reach.
        assert_eq!((Needs::new(100).0[7], Needs::new(100).0[35]), (7, 36));
    }

    #[test]
    fn a_curve_never_rises() {
        // Right, wrong, right, right: 1, 1/2, 2/3, 3/4. Of four objects, three are found.
        let points = [Point::new(1, 0), Point::new(2, 1), Point::new(3, 1)];
        let needs = Needs::new(4);
        let mut curve = [0.0; RECALLS];
        walk(&points, &needs, |r, precision| curve[r] = precision);
        for (r, precision) in curve.into_iter().enumerate() {
            let want = match r {
                0..=25 => 1.0,
                26..=75 => 0.75,
                _ => 0.0,
            };
            assert!((precision - want).abs() < 1e-12, "{r}: {precision}");
        }
        let mean = mean_precision(&points, &needs);
        assert!((mean - (26.0 + 50.0 * 0.75) / 101.0).abs() < 1e-12, "{mean}");
        assert_eq!(mean_precision(&[], &needs), 0.0);
    }
}
