//! Both sides of every rule.

use super::*;
use crate::environment_at;
use crate::fixture::Fixture;
use Outcome::{Fail, Pass, Warn};

/// A machine with nothing to complain about.
fn calm() -> (Environment, Facts) {
    let mut environment = Environment {
        arch: "x86_64".into(),
        mem_total_bytes: Some(16 * GIB),
        mem_available_bytes: Some(12 * GIB),
        swap_total_bytes: Some(2 * GIB),
        swap_used_bytes: Some(0),
        disk_free_bytes: Some(50 * GIB),
        load1: Some(0.5),
        sensors: vec!["memory".into()],
        ..Environment::default()
    };
    environment.cpu.usable = 4;
    environment.cpu.governor = Some("performance".into());
    let headroom = Headroom { zone: "pkg".into(), temp_c: 50.0, trip_c: 100.0, kind: "critical".into() };
    let facts =
        Facts { has_frequency: true, has_temperature: true, headroom: Some(headroom), disk: true, ..Facts::default() };
    (environment, facts)
}

/// Outcome and finding of one check after something was changed; `None` when the check is not there.
fn after(name: &str, change: impl FnOnce(&mut Environment, &mut Facts)) -> Option<(Outcome, String)> {
    let (mut environment, mut facts) = calm();
    change(&mut environment, &mut facts);
    let found = preflight(&environment, &facts).into_iter().find(|check| check.name == name);
    found.map(|check| (check.outcome, check.finding))
}

#[track_caller]
fn outcome(name: &str, change: impl FnOnce(&mut Environment, &mut Facts)) -> Outcome {
    after(name, change).unwrap_or_else(|| panic!("no check {name}")).0
}

#[test]
fn a_calm_machine_passes_everything() {
    let (environment, facts) = calm();
    let checks = preflight(&environment, &facts);
    assert!(checks.len() >= 8, "{checks:?}");
    assert!(checks.iter().all(|check| check.outcome == Pass && check.fix.is_none()), "{checks:?}");
    assert!(notes(&checks).is_empty());
}

#[test]
fn load() {
    for (load, want) in [(2.0, Pass), (2.01, Warn), (4.0, Warn), (4.01, Fail)] {
        assert_eq!(outcome("load", |e, _| e.load1 = Some(load)), want, "{load}");
    }
    let unknown = after("load", |e, _| e.load1 = None);
    assert_eq!(unknown, Some((Warn, "the load average cannot be read".into())));
}

#[test]
fn quota() {
    assert_eq!(outcome("CPU quota", |_, f| f.quota = Some(4.0)), Pass);
    let found = after("CPU quota", |_, f| f.quota = Some(1.5)).unwrap();
    assert_eq!(found, (Warn, "a control group allows 1.5 of 4 CPUs: long frames may be cut by its quota".into()));
}

#[test]
fn governor() {
    assert_eq!(after("CPU governor", |e, _| e.cpu.governor = None), None);
    let (mut environment, mut facts) = calm();
    environment.cpu.governor = Some("powersave".into());
    let fix = |environment: &Environment, facts: &Facts| {
        let found = super::governor(environment, facts).unwrap();
        (found.outcome, found.fix)
    };
    let by_hand = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    assert_eq!(fix(&environment, &facts), (Warn, Some(by_hand.into())));
    facts.jetson = true;
    assert_eq!(fix(&environment, &facts), (Warn, Some("sudo jetson_clocks".into())));
    facts.pinned_khz = Some(2_000_000);
    assert_eq!(fix(&environment, &facts), (Pass, None));
}

#[test]
fn thermal_headroom() {
    for (temp_c, want) in [(84.9, Pass), (85.0, Warn), (94.9, Warn), (95.0, Fail), (101.0, Fail)] {
        let heat = |_: &mut Environment, f: &mut Facts| f.headroom.as_mut().unwrap().temp_c = temp_c;
        assert_eq!(outcome("thermal headroom", heat), want, "{temp_c}");
    }
    let unknown = after("thermal headroom", |_, f| f.headroom = None).unwrap();
    assert_eq!(unknown, (Warn, "no trip point can be read: the thermal headroom is unknown".into()));
    let none = after("thermal headroom", |_, f| f.has_temperature = false).unwrap();
    assert_eq!(none, (Warn, "no temperature can be read".into()));
}

#[test]
fn past_a_trip_point_is_said_in_words_that_make_sense() {
    let (_, finding) = after("thermal headroom", |_, f| f.headroom.as_mut().unwrap().temp_c = 103.0).unwrap();
    assert_eq!(finding, "pkg is at 103.0 °C, 3.0 above its critical trip point of 100.0 °C: clocks will be cut");
}

#[test]
fn memory() {
    for (available, want) in [(2 * GIB, Pass), (GIB, Warn), (GIB - 1, Warn)] {
        assert_eq!(outcome("memory", |e, _| e.mem_available_bytes = Some(available)), want, "{available}");
    }
    // A tenth of 16 GiB is more than one; of 4 GiB it is less.
    let small = |available| {
        outcome("memory", |e, _| {
            e.mem_total_bytes = Some(4 * GIB);
            e.mem_available_bytes = Some(available);
        })
    };
    assert_eq!((small(GIB), small(GIB - 1)), (Pass, Warn));
    let unknown = after("memory", |e, _| e.mem_available_bytes = None);
    assert_eq!(unknown, Some((Warn, "the free memory cannot be read".into())));
}

#[test]
fn swap() {
    assert_eq!(outcome("swap", |e, _| e.swap_used_bytes = Some(1)), Warn);
    assert_eq!(outcome("swap", |e, _| e.swap_used_bytes = None), Warn);
    let (mut environment, _) = calm();
    environment.swap_used_bytes = Some(GIB);
    let fix = |environment: &Environment| super::swap(environment).unwrap().fix;
    assert_eq!(fix(&environment).as_deref(), Some("sudo swapoff -a && sudo swapon -a"));
    // Not where it would run the machine out of memory.
    environment.mem_available_bytes = Some(GIB);
    assert_eq!(fix(&environment), None);
}

#[test]
fn disk() {
    for (free, want) in [(GIB, Pass), (GIB - 1, Warn), (100 * MIB, Warn), (100 * MIB - 1, Fail)] {
        assert_eq!(outcome("disk", |e, _| e.disk_free_bytes = Some(free)), want, "{free}");
    }
    assert_eq!(outcome("disk", |e, _| e.disk_free_bytes = None), Warn);
    assert_eq!(after("disk", |_, f| f.disk = false), None);
}

#[test]
fn virtual_machine() {
    assert_eq!(outcome("virtual machine", |e, _| e.virtualization = Some("Xen".into())), Warn);
}

#[test]
fn sensors() {
    assert_eq!(after("CPU clock", |_, _| ()), None);
    let blind = after("CPU clock", |_, f| f.has_frequency = false).unwrap();
    assert_eq!(blind, (Warn, "no CPU frequency can be read".into()));
    let two = after("sensors", |_, f| f.silent = vec!["temperature a".into(), "temperature b".into()]).unwrap();
    let words = "temperature a, temperature b exist but give no answer; they are left alone";
    assert_eq!(two, (Warn, words.into()));
}

#[test]
fn the_zone_with_the_least_headroom_decides_not_the_hottest() {
    let fixture = Fixture::laptop();
    let zone =
        |n: u32, file: &str, text: &str| fixture.write(&format!("sys/class/thermal/thermal_zone{n}/{file}"), text);
    // The package is hotter, but further from its limit; its other points are a fan's and one that is switched off.
    zone(0, "trip_point_0_type", "active\n");
    zone(0, "trip_point_0_temp", "62000\n");
    zone(0, "trip_point_1_type", "passive\n");
    zone(0, "trip_point_1_temp", "-274000\n");
    zone(0, "trip_point_2_type", "critical\n");
    zone(0, "trip_point_2_temp", "105000\n");
    zone(2, "type", "skin\n");
    zone(2, "temp", "44000\n");
    zone(2, "trip_point_0_type", "passive\n");
    zone(2, "trip_point_0_temp", "50000\n");
    let found = environment_at(fixture.root()).preflight;
    let heat = found.iter().find(|check| check.name == "thermal headroom").unwrap();
    assert_eq!(heat.outcome, Warn);
    assert_eq!(heat.finding, "skin is at 44.0 °C, 6.0 below its passive trip point of 50.0 °C: clocks may be cut");
}

#[test]
fn a_quota_of_old_control_groups_is_seen() {
    let fixture = Fixture::laptop();
    fixture.write("proc/self/cgroup", "4:memory:/box\n3:cpu,cpuacct:/box\n0::/\n");
    fixture.write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000\n");
    fixture.write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    let quota =
        |fixture: &Fixture| environment_at(fixture.root()).preflight.into_iter().find(|c| c.name == "CPU quota");
    assert!(quota(&fixture).unwrap().finding.starts_with("a control group allows 0.5 of "));
    fixture.write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
    assert_eq!(quota(&fixture).unwrap().outcome, Pass);
}
