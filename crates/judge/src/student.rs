//! Student's t: the 97.5 % quantile.

/// For 1 to 30 degrees of freedom.
const TABLE: [f64; 30] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157, 2.228_139,
    2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922, 2.093_024, 2.085_963,
    2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831, 2.048_407, 2.045_230, 2.042_272,
];

/// The factor of a two-sided 95 % interval.
pub(crate) fn t975(degrees: usize) -> f64 {
    if let Some(&t) = degrees.checked_sub(1).and_then(|i| TABLE.get(i)) {
        return t;
    }
    // Cornish-Fisher around the normal quantile; past 30 degrees it is right to five digits.
    let z = 1.959_963_984_540_054_f64;
    let v = degrees.max(1) as f64;
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * v)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * v * v)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * v * v * v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_scipy() {
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../tests/golden/student.json")).expect("golden");
        let rows = golden["t975"].as_array().expect("rows");
        assert!(rows.len() > 40);
        for row in rows {
            let (df, t) = (row[0].as_u64().expect("df") as usize, row[1].as_f64().expect("t"));
            assert!((t975(df) - t).abs() < 2e-5, "{df}: {} against {t}", t975(df));
        }
    }
}
