//! Readings of the sensors, boiled down.

use prony_types::{Telemetry, TempRange};

/// Lowest, mean and highest temperature over all zones and readings; `None` without a thermal sensor.
pub fn temp_range(readings: &[Telemetry]) -> Option<TempRange> {
    let all: Vec<f64> = readings.iter().flat_map(|r| r.temps_c.iter().map(|(_, c)| *c)).collect();
    let min = all.iter().copied().reduce(f64::min)?;
    let max = all.iter().copied().reduce(f64::max)?;
    Some(TempRange { min, avg: all.iter().sum::<f64>() / all.len() as f64, max })
}

/// The least memory the system could still give at any reading.
pub fn lowest_available_mib(readings: &[Telemetry]) -> Option<f64> {
    let lowest = readings.iter().filter_map(|r| r.mem_available_bytes).min()?;
    Some(lowest as f64 / (1 << 20) as f64)
}

/// Whether anything that would show throttling was read at all.
pub(crate) fn watches_clocks(readings: &[Telemetry]) -> bool {
    readings.iter().any(|r| !r.cpu_khz.is_empty() || !r.temps_c.is_empty() || r.throttle_events.is_some())
}

/// Readings further apart than this are of different rounds; what happened between them happened to other cells.
const SAME_ROUND_NS: u64 = 1_500_000_000;

/// How many throttle events the kernel counted while these readings were taken.
pub(crate) fn throttle_events(readings: &[Telemetry]) -> u64 {
    let counted: Vec<(u64, u64)> = readings.iter().filter_map(|r| Some((r.t_ns, r.throttle_events?))).collect();
    let neighbours = counted.windows(2).filter(|w| w[1].0.saturating_sub(w[0].0) <= SAME_ROUND_NS);
    neighbours.map(|w| w[1].1.saturating_sub(w[0].1)).sum()
}

/// A fall of the clock under load: megahertz in the first and in the last third of the readings.
pub(crate) struct ClockFall {
    pub(crate) from_mhz: f64,
    pub(crate) to_mhz: f64,
    pub(crate) whose: &'static str,
}

/// The clock of a busy machine between the first and last third of the readings; `None` where it cannot be told.
///
/// A governor that slows an idle CPU is not throttling, so only load counts: with most CPUs busy the mean clock is
/// looked at, with a busy worker on an otherwise idle machine the highest, which is the clock of the CPU it runs on.
pub(crate) fn clock_change(readings: &[Telemetry]) -> Option<ClockFall> {
    let with_clock: Vec<&Telemetry> = readings.iter().filter(|r| !r.cpu_khz.is_empty()).collect();
    let third = with_clock.len() / 3;
    if third == 0 {
        return None;
    }
    let (first, last) = (&with_clock[..third], &with_clock[with_clock.len() - third..]);
    let stays_above_half = |figure: fn(&Telemetry) -> Option<f64>| {
        [first, last].into_iter().all(|part| mean(part.iter().filter_map(|r| figure(r))).is_some_and(|m| m > 50.0))
    };
    let (whose, clock): (_, fn(&Telemetry) -> Option<f64>) = if stays_above_half(|r| r.cpu_percent) {
        ("mean CPU clock", |r| mean(r.cpu_khz.iter().map(|&k| k as f64)))
    } else if stays_above_half(|r| r.worker_cpu_percent) {
        ("highest CPU clock", |r| r.cpu_khz.iter().max().map(|&k| k as f64))
    } else {
        return None;
    };
    let of = |part: &[&Telemetry]| mean(part.iter().filter_map(|r| clock(r)));
    Some(ClockFall { from_mhz: of(first)? / 1e3, to_mhz: of(last)? / 1e3, whose })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum) = (0.0, 0.0);
    for value in values {
        n += 1.0;
        sum += value;
    }
    (n > 0.0).then(|| sum / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_are_over_all_zones_and_readings() {
        let reading = |a, b| Telemetry { temps_c: vec![("cpu".into(), a), ("soc".into(), b)], ..Telemetry::default() };
        let range = temp_range(&[reading(40.0, 50.0), reading(44.0, 58.0)]).unwrap();
        assert_eq!((range.min, range.avg, range.max), (40.0, 48.0, 58.0));
        assert_eq!(temp_range(&[Telemetry::default()]), None);
    }

    #[test]
    fn events_between_two_rounds_belong_to_other_cells() {
        let reading = |t_ms: u64, events| Telemetry {
            t_ns: t_ms * 1_000_000,
            throttle_events: Some(events),
            ..Telemetry::default()
        };
        let rounds = [reading(0, 5), reading(500, 5), reading(9_000, 8), reading(9_500, 9)];
        assert_eq!(throttle_events(&rounds), 1);
        assert_eq!(throttle_events(&rounds[..3]), 0);
        assert_eq!(throttle_events(&[]), 0);
    }

    #[test]
    fn the_lowest_memory_is_kept() {
        let reading = |mib: u64| Telemetry { mem_available_bytes: Some(mib << 20), ..Telemetry::default() };
        assert_eq!(lowest_available_mib(&[reading(900), reading(700), reading(800)]), Some(700.0));
        assert_eq!(lowest_available_mib(&[]), None);
    }
}
