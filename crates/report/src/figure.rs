//! Numbers as text: three to four significant digits, always the same way, and never a 0 for what was not measured.

/// Stands where a figure is absent.
pub(crate) const ABSENT: &str = "–";

/// Stands for an infinite difference, which a record can only hold as the largest number there is.
pub(crate) const NOT_COMPARABLE: &str = "not comparable";

/// A bare number with three to four significant digits: `412.3`, `12.34`, `6.41`, `0.083`; from a million on, two.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    let size = value.abs();
    let decimals = match size {
        _ if size == 0.0 => return "0".to_owned(),
        _ if size == f64::MAX => return NOT_COMPARABLE.to_owned(),
        _ if size >= 999_999.5 => return format!("{value:.1e}"),
        _ if size >= 999.95 => 0,
        _ if size >= 99.995 => 1,
        _ if size >= 0.9995 => 2,
        _ if size >= 0.01 => 3,
        _ if size >= 0.001 => 4,
        _ => return format!("{value:.1e}"),
    };
    format!("{value:.decimals$}")
}

/// A figure beside its limit: exact enough that one which does not hold is seen not to.
pub(crate) fn against_limit(value: f64) -> String {
    match value {
        _ if !value.is_finite() => ABSENT.to_owned(),
        _ => format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// A duration in milliseconds, with its unit.
pub(crate) fn ms(value: f64) -> String {
    with_unit(value, "ms")
}

/// A duration in seconds, with its unit.
pub(crate) fn seconds(value: f64) -> String {
    with_unit(value, "s")
}

/// Memory in MiB, with its unit.
pub(crate) fn mib(value: f64) -> String {
    with_unit(value, "MiB")
}

/// A rate in frames a second, with its unit.
pub(crate) fn fps(value: f64) -> String {
    with_unit(value, "fps")
}

/// A temperature to a tenth of a degree.
pub(crate) fn celsius(value: f64) -> String {
    if value.is_finite() { format!("{value:.1} °C") } else { ABSENT.to_owned() }
}

/// Bytes as GiB or MiB, whichever reads better.
pub(crate) fn bytes(value: u64) -> String {
    const MIB: f64 = 1024.0 * 1024.0;
    let size = value as f64;
    if size >= 1024.0 * MIB { with_unit(size / (1024.0 * MIB), "GiB") } else { with_unit(size / MIB, "MiB") }
}

/// A share from 0 to 1 as a percentage.
pub(crate) fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { ABSENT.to_owned() }
}

/// A ratio, two decimals.
pub(crate) fn times(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.2}×") } else { ABSENT.to_owned() }
}

/// A ratio that stands beside its interval: with the decimals of [`ratio_interval`], so that rounding does not carry it out
/// of the interval.
pub(crate) fn ratio(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.3}×") } else { ABSENT.to_owned() }
}

/// The interval of a ratio: `0.711 – 0.766`.
pub(crate) fn ratio_interval([lo, hi]: [f64; 2]) -> String {
    format!("{lo:.3} – {hi:.3}")
}

/// An interval without its unit: `6.38 – 6.45`.
pub(crate) fn interval([lo, hi]: [f64; 2]) -> String {
    format!("{} – {}", number(lo), number(hi))
}

/// A count with thin groups of three: `12 345`; short ones stay whole.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// An optional figure, or the mark for an absent one.
pub(crate) fn or_absent(value: Option<f64>, format: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), format)
}

fn with_unit(value: f64, unit: &str) -> String {
    if value.is_finite() { format!("{}\u{a0}{unit}", number(value)) } else { ABSENT.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_consistent() {
        let cases = [
            (0.0, "0"),
            (0.00002, "2.0e-5"),
            (0.0083, "0.0083"),
            (0.0834, "0.083"),
            (0.9996, "1.00"),
            (6.412, "6.41"),
            (12.345, "12.35"),
            (99.996, "100.0"),
            (412.34, "412.3"),
            (999.96, "1000"),
            (12345.6, "12346"),
            (999_999.4, "999999"),
            (999_999.6, "1.0e6"),
            (-12_345_678.0, "-1.2e7"),
            (3.4e38, "3.4e38"),
            (f64::MAX, "not comparable"),
            (-f64::MAX, "not comparable"),
            (-6.412, "-6.41"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn a_ratio_is_printed_with_the_digits_of_its_interval() {
        assert_eq!((ratio(0.7114).as_str(), ratio_interval([0.7111, 0.766]).as_str()), ("0.711×", "0.711 – 0.766"));
        for (r, interval) in [(0.0019, [0.0018, 0.0019]), (0.9996, [0.9994, 1.004]), (12.3449, [12.3449, 12.4])] {
            let shown = |text: &str| text.trim_end_matches('×').parse::<f64>().unwrap();
            let ends = ratio_interval(interval);
            let (lo, hi) = ends.split_once(" – ").unwrap();
            assert!((shown(lo)..=shown(hi)).contains(&shown(&ratio(r))), "{r} {ends}");
        }
    }

    #[test]
    fn an_absent_figure_is_never_zero() {
        assert_eq!(or_absent(None, ms), "–");
        assert_eq!(ms(f64::INFINITY), "–");
        assert_eq!(or_absent(Some(6.41), ms), "6.41\u{a0}ms");
    }

    #[test]
    fn counts_and_bytes() {
        assert_eq!(count(9999), "9999");
        assert_eq!(count(1234567), "1\u{202f}234\u{202f}567");
        assert_eq!(bytes(16 << 30), "16.00\u{a0}GiB");
        assert_eq!(bytes(3 << 20), "3.00\u{a0}MiB");
    }
}
