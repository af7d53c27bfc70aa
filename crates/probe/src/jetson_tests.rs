//! A made-up AGX Orin, and what other boards do differently.

use super::*;
use crate::fixture::Fixture;
use crate::{env_report, environment_at};
use prony_types::{Check, Environment, Outcome};

#[track_caller]
fn line<'a>(environment: &'a Environment, name: &str) -> &'a Check {
    environment.preflight.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no check {name}"))
}

#[test]
fn an_orin_is_described() {
    let found = environment_at(Fixture::orin().root());
    assert_eq!(found.machine.as_deref(), Some("NVIDIA Jetson AGX Orin Developer Kit"));
    assert_eq!(found.l4t.as_deref(), Some("R36.4.3"));
    assert_eq!(found.jetpack.as_deref(), Some("6.2"));
    assert_eq!(found.power_mode.as_deref(), Some("MODE_30W"));
    assert_eq!(found.swap_used_bytes, Some(0));
    let text = env_report(&found);
    assert!(
        text.contains("\nJetson\n  Jetson Linux: R36.4.3\n  JetPack:      6.2\n  power mode:   MODE_30W\n"),
        "{text}"
    );
}

#[test]
fn an_orin_that_follows_the_load_is_told_what_to_do() {
    let found = environment_at(Fixture::orin().root());
    let mode = line(&found, "power mode");
    assert_eq!((mode.outcome, mode.fix.as_deref()), (Outcome::Warn, Some("sudo nvpmodel -m 0")));
    assert_eq!(mode.finding, "the power mode is MODE_30W, not MAXN: clocks and cores are limited");
    let gpu = line(&found, "GPU clock");
    assert_eq!((gpu.outcome, gpu.fix.as_deref()), (Outcome::Warn, Some("sudo jetson_clocks")));
    assert_eq!(gpu.finding, "the GPU's clock follows the load (governor nvhost_podgov), now 306 of 1300 MHz");
    let governor = line(&found, "CPU governor");
    assert_eq!((governor.outcome, governor.fix.as_deref()), (Outcome::Warn, Some("sudo jetson_clocks")));
    let heat = line(&found, "thermal headroom");
    assert_eq!(heat.outcome, Outcome::Pass);
    assert_eq!(heat.finding, "cpu-thermal is at 48.5 °C, 50.5 below its passive trip point of 99.0 °C");
    assert!(line(&found, "sensors").finding.starts_with("temperature cv0-thermal exists"));
}

#[test]
fn an_orin_after_jetson_clocks_passes() {
    let fixture = Fixture::orin();
    fixture.write("var/lib/nvpmodel/status", "pmode:0000\n");
    fixture.write("sys/class/devfreq/17000000.gpu/min_freq", "1300500000\n");
    for cpu in ["cpu0", "cpu1"] {
        fixture.write(&format!("sys/devices/system/cpu/{cpu}/cpufreq/scaling_min_freq"), "2201600\n");
    }
    let found = environment_at(fixture.root());
    for (name, finding) in [
        ("power mode", "MAXN"),
        ("GPU clock", "held at 306 of 1300 MHz"),
        ("CPU governor", "schedutil, held at 2202 MHz by its limits"),
    ] {
        let check = line(&found, name);
        assert_eq!((check.outcome, check.finding.as_str(), &check.fix), (Outcome::Pass, finding, &None));
    }
    // One CPU that is free to move is enough.
    fixture.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq", "729600\n");
    assert_eq!(line(&environment_at(fixture.root()), "CPU governor").outcome, Outcome::Warn);
}

#[test]
fn the_mode_without_limits_is_found_by_name_not_by_number() {
    let fixture = Fixture::orin();
    let nano = "< POWER_MODEL ID=0 NAME=15W >\n< POWER_MODEL ID=1 NAME=25W >\n< POWER_MODEL ID=2 NAME=MAXN_SUPER >\n";
    fixture.write("etc/nvpmodel.conf", nano);
    fixture.write("var/lib/nvpmodel/status", "pmode:0000 fmode:quiet\n");
    let found = environment_at(fixture.root());
    assert_eq!(found.power_mode.as_deref(), Some("15W"));
    assert_eq!(line(&found, "power mode").fix.as_deref(), Some("sudo nvpmodel -m 2"));
    fixture.write("etc/nvpmodel.conf", "< POWER_MODEL ID=0 NAME=15W >\n<POWER_MODEL ID=1 NAME=7W>\n");
    let found = environment_at(fixture.root());
    assert_eq!(line(&found, "power mode").finding, "15W");
    assert_eq!(line(&found, "power mode").outcome, Outcome::Pass);
    fixture.write("var/lib/nvpmodel/status", "pmode:0001\n");
    assert_eq!(line(&environment_at(fixture.root()), "power mode").fix.as_deref(), Some("sudo nvpmodel -m 0"));
}

#[test]
fn a_power_mode_that_cannot_be_read_is_said_to_be_so() {
    let fixture = Fixture::orin();
    fixture.remove("etc/nvpmodel.conf");
    let found = environment_at(fixture.root());
    assert_eq!(found.power_mode.as_deref(), Some("mode 2"));
    assert_eq!(line(&found, "power mode").finding, "the power mode is mode 2; its name cannot be read");
    fixture.remove("var/lib/nvpmodel/status");
    let found = environment_at(fixture.root());
    assert_eq!(found.power_mode, None);
    assert_eq!(line(&found, "power mode").finding, "the power mode cannot be read");
    assert_eq!(line(&found, "power mode").outcome, Outcome::Warn);
}

#[test]
fn jetpack_is_known_by_its_package_or_by_the_release() {
    let fixture = Fixture::orin();
    // A package that was removed says nothing; the table does.
    let removed = "Package: nvidia-jetpack\nStatus: deinstall ok config-files\nVersion: 6.0+b106\n";
    fixture.write("var/lib/dpkg/status", removed);
    assert_eq!(environment_at(fixture.root()).jetpack.as_deref(), Some("6.2"));
    fixture.write("etc/nv_tegra_release", "# R99 (release), REVISION: 1.0, GCID: 1, BOARD: generic\n");
    let found = environment_at(fixture.root());
    assert_eq!((found.l4t.as_deref(), found.jetpack), (Some("R99.1.0"), None));
    // Without the file the package of Jetson Linux tells; the device tree says that this is a Jetson.
    fixture.remove("etc/nv_tegra_release");
    let core = "Package: other\nStatus: install ok installed\nVersion: 1\n\nPackage: nvidia-l4t-core\nStatus: install ok installed\nVersion: 35.4.1-20230801124926\n";
    fixture.write("var/lib/dpkg/status", core);
    let found = environment_at(fixture.root());
    assert_eq!((found.l4t.as_deref(), found.jetpack.as_deref()), (Some("R35.4.1"), Some("5.1.2")));
    fixture.write("etc/nv_tegra_release", "no release at all\n");
    fixture.remove("var/lib/dpkg/status");
    let found = environment_at(fixture.root());
    assert_eq!((found.l4t, found.jetpack), (None, None));
}

#[test]
fn every_release_of_the_table_is_there_once_and_well_formed() {
    for (at, (release, jetpack)) in JETPACKS.iter().enumerate() {
        assert!(JETPACKS[at + 1..].iter().all(|(other, _)| other != release), "{release}");
        let numbers = |text: &str| text.split('.').all(|part| part.parse::<u32>().is_ok());
        assert!(release.strip_prefix('R').is_some_and(numbers) && numbers(jetpack), "{release} {jetpack}");
    }
}

#[test]
fn the_clock_of_the_gpu_is_found_on_each_generation() {
    for name in ["17000000.ga10b", "17000000.gv11b", "gpu-gpc-0", "57000000.gpu"] {
        let fixture = Fixture::new();
        fixture.write("sys/class/devfreq/15340000.vic/cur_freq", "1\n");
        fixture.write("sys/class/devfreq/15340000.vic/max_freq", "1\n");
        fixture.write(&format!("sys/class/devfreq/{name}/cur_freq"), "500\n");
        fixture.write(&format!("sys/class/devfreq/{name}/max_freq"), "900\n");
        let clock = GpuClock::find(&Tree::new(fixture.root().to_owned())).unwrap();
        assert_eq!((clock.now_hz, clock.max_hz, clock.is_pinned()), (500, 900, false));
        fixture.write(&format!("sys/class/devfreq/{name}/governor"), "performance\n");
        assert!(GpuClock::find(&Tree::new(fixture.root().to_owned())).unwrap().is_pinned());
    }
}

#[test]
fn a_pc_has_nothing_of_a_jetson() {
    let found = environment_at(Fixture::laptop().root());
    assert_eq!((&found.l4t, &found.jetpack, &found.power_mode), (&None, &None, &None));
    assert!(!found.preflight.iter().any(|check| ["power mode", "GPU clock"].contains(&check.name.as_str())));
    assert!(!env_report(&found).contains("Jetson"));
}
