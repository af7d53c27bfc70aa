//! Sensors over fixture trees, and once over this machine.

use prony_types::Telemetry;

use crate::fixture::Fixture;
use crate::{Probe, environment, environment_at, peak_rss_bytes};

const SECOND: u64 = 1_000_000_000;

fn stat(name: &str, user: u64, system: u64) -> String {
    format!("77 ({name}) S 1 77 77 0 -1 4194304 1 2 3 4 {user} {system} 0 0 20 0 3 0 1 2 3")
}

#[test]
fn every_sensor_of_a_laptop_is_read() {
    let fixture = Fixture::laptop();
    let mut probe = Probe::at(fixture.root());
    // 100 ticks on: 60 of them busy.
    fixture.write("proc/stat", "cpu  140 0 70 830 60 0 0 0 0 0\n");
    let reading = probe.read(5, Some("c".into()), None);
    let mib = |kib: u64| Some(kib * 1024);
    assert_eq!(
        reading,
        Telemetry {
            t_ns: 5,
            cell: Some("c".into()),
            attempt: None,
            cpu_percent: Some(60.0),
            worker_cpu_percent: None,
            worker_rss_bytes: None,
            mem_available_bytes: mib(9_000_000),
            swap_used_bytes: mib(500_000),
            load1: Some(0.42),
            cpu_khz: vec![3_200_000, 3_200_000],
            temps_c: vec![("x86_pkg_temp".into(), 61.5)],
            throttle_events: Some(6),
            failed: vec![],
        }
    );
}

#[test]
fn a_machine_with_nothing_reads_nothing_and_nothing_failed() {
    let fixture = Fixture::new();
    let reading = Probe::at(fixture.root()).read(1, None, Some(77));
    assert_eq!(reading, Telemetry { t_ns: 1, ..Telemetry::default() });
    assert!(Probe::at(fixture.root()).sensors().is_empty());
}

#[test]
fn a_sensor_that_stops_answering_is_named_and_comes_back() {
    let fixture = Fixture::laptop();
    let mut probe = Probe::at(fixture.root());
    fixture.remove("sys/class/thermal/thermal_zone0/temp");
    fixture.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "<unknown>\n");
    fixture.remove("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count");
    fixture.remove("proc/stat");
    fixture.remove("proc/meminfo");
    fixture.remove("proc/loadavg");
    let reading = probe.read(1, None, None);
    let names =
        ["cpu time", "memory", "load", "frequency of cpu1", "temperature x86_pkg_temp", "throttle counter of cpu0"];
    assert_eq!(reading.failed, names);
    assert_eq!((reading.cpu_khz.len(), reading.throttle_events, reading.temps_c.len()), (0, None, 0));
    fixture.write("sys/class/thermal/thermal_zone0/temp", "70000\n");
    assert_eq!(probe.read(2, None, None).temps_c, [("x86_pkg_temp".to_owned(), 70.0)]);
}

#[test]
fn a_zone_that_never_answered_is_told_once_and_fails_nothing() {
    let fixture = Fixture::laptop();
    let mut probe = Probe::at(fixture.root());
    assert_eq!(probe.silent(), ["temperature iwlwifi_1"]);
    assert!(probe.read(1, None, None).failed.is_empty());
    assert!(environment_at(fixture.root()).notes.iter().any(|n| n.starts_with("temperature iwlwifi_1 exists")));
}

#[test]
fn zones_of_one_type_are_told_apart_in_order() {
    let fixture = Fixture::new();
    for (zone, temp) in [("0", "1000"), ("10", "3000"), ("2", "2000")] {
        fixture.write(&format!("sys/class/thermal/thermal_zone{zone}/type"), "acpitz\n");
        fixture.write(&format!("sys/class/thermal/thermal_zone{zone}/temp"), temp);
    }
    let temps = Probe::at(fixture.root()).read(1, None, None).temps_c;
    let want = [("acpitz", 1.0), ("acpitz (2)", 2.0), ("acpitz (10)", 3.0)];
    assert_eq!(temps, want.map(|(name, temp)| (name.to_owned(), temp)));
}

#[test]
fn the_worker_takes_two_readings_of_one_process() {
    let fixture = Fixture::laptop();
    let mut probe = Probe::at(fixture.root());
    let ticks = procfs::ticks_per_second();
    // A name with brackets and blanks must not shift the fields.
    fixture.write("proc/77/stat", &stat("a) b (c", 100, 50));
    fixture.write("proc/77/status", "Name:\tx\nVmHWM:\t 9000 kB\nVmRSS:\t 8000 kB\n");
    let first = probe.read(SECOND, None, Some(77));
    assert_eq!((first.worker_cpu_percent, first.worker_rss_bytes), (None, Some(8_000 * 1024)));
    fixture.write("proc/77/stat", &stat("a) b (c", 100 + ticks, 50 + ticks / 2));
    let second = probe.read(2 * SECOND, None, Some(77));
    assert_eq!(second.worker_cpu_percent, Some(150.0));
    // Another process has no earlier reading, and one that is gone is no failed sensor.
    fixture.write("proc/78/stat", &stat("y", 900, 900));
    assert_eq!(probe.read(3 * SECOND, None, Some(78)).worker_cpu_percent, None);
    let gone = probe.read(4 * SECOND, None, Some(79));
    assert_eq!((gone.worker_cpu_percent, gone.worker_rss_bytes, gone.failed.len()), (None, None, 0));
}

#[test]
fn a_laptop_is_described() {
    let fixture = Fixture::laptop();
    let found = environment_at(fixture.root());
    assert_eq!(found.hostname.as_deref(), Some("ann-box"));
    assert_eq!(found.os.as_deref(), Some("Ubuntu 24.04.1 LTS"));
    assert_eq!(found.kernel.as_deref(), Some("6.8.0-40-generic"));
    assert_eq!(found.machine.as_deref(), Some("LENOVO 21HMCTO1WW"));
    assert_eq!(found.virtualization, None);
    assert_eq!(found.cpu.name.as_deref(), Some("Intel(R) Core(TM) i7"));
    assert_eq!(found.cpu.cores, Some(1));
    assert_eq!(found.cpu.governor.as_deref(), Some("powersave"));
    assert_eq!(found.cpu.max_khz, Some(4_800_000));
    assert_eq!(found.cpu.features, ["f16c", "fma", "avx", "avx2", "avx_vnni"]);
    assert_eq!(found.mem_total_bytes, Some(16_000_000 * 1024));
    let sensors =
        ["cpu time", "memory", "load average", "cpu frequency", "throttle counters", "temperature x86_pkg_temp"];
    assert_eq!(found.sensors, sensors);
    assert!(found.notes.iter().any(|n| n.contains("powersave, not performance")), "{:?}", found.notes);
    assert!(found.notes.iter().any(|n| n == "488 MiB of swap are in use"), "{:?}", found.notes);
    assert!(!found.notes.iter().any(|n| n.contains("load average")), "{:?}", found.notes);
}

#[test]
fn a_calm_machine_has_no_notes() {
    let fixture = Fixture::laptop();
    for cpu in ["cpu0", "cpu1"] {
        fixture.write(&format!("sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor"), "performance\n");
    }
    fixture.write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 9000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
    fixture.write("sys/class/thermal/thermal_zone1/temp", "40000\n");
    fixture.write("sys/class/thermal/thermal_zone1/trip_point_0_type", "critical\n");
    fixture.write("sys/class/thermal/thermal_zone1/trip_point_0_temp", "100000\n");
    assert_eq!(environment_at(fixture.root()).notes, Vec::<String>::new());
    fixture.write("proc/loadavg", "9999.5 1 1 1/1 1\n");
    fixture.write("proc/self/cgroup", "0::/box\n");
    fixture.write("sys/fs/cgroup/box/cpu.max", "50000 100000\n");
    let notes = environment_at(fixture.root()).notes;
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("9999.50") && notes[1].contains("0.5 of"), "{notes:?}");
    fixture.write("sys/fs/cgroup/box/cpu.max", "max 100000\n");
    assert_eq!(environment_at(fixture.root()).notes.len(), 1);
}

#[test]
fn a_board_is_described() {
    let fixture = Fixture::new();
    fixture.write("proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0");
    let core = "CPU implementer\t: 0x41\nCPU part\t: 0xd42\n";
    fixture.write(
        "proc/cpuinfo",
        &format!("Features\t: fp asimd fphp asimdhp asimddp\n{core}\n{core}CPU implementer : 0x99\nCPU part : 0x001\n"),
    );
    let found = environment_at(fixture.root());
    assert_eq!(found.machine.as_deref(), Some("NVIDIA Jetson AGX Orin Developer Kit"));
    assert_eq!(found.cpu.name.as_deref(), Some("Cortex-A78AE + Arm core 0x99/0x001"));
    assert_eq!(found.cpu.features, ["asimd", "fphp", "asimdhp", "asimddp"]);
    assert_eq!(found.virtualization, None);
    assert!(found.notes.iter().any(|n| n == "no CPU frequency can be read"));
    assert!(found.notes.iter().any(|n| n == "no temperature can be read"));
}

#[test]
fn a_guest_is_told_from_the_metal_of_the_same_vendor() {
    let fixture = Fixture::laptop();
    fixture.write("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    assert_eq!(environment_at(fixture.root()).virtualization, None);
    fixture.write("proc/cpuinfo", "flags\t: avx2 hypervisor\n");
    assert_eq!(environment_at(fixture.root()).virtualization.as_deref(), Some("Amazon EC2"));
    fixture.write("sys/class/dmi/id/sys_vendor", "Acme\n");
    let found = environment_at(fixture.root());
    assert_eq!(found.virtualization.as_deref(), Some("unnamed hypervisor"));
    assert!(found.notes.iter().any(|n| n.contains("virtual machine (unnamed hypervisor)")));
    // Arm has no such flag.
    fixture.write("proc/cpuinfo", "Features\t: asimd\n");
    fixture.write("sys/class/dmi/id/sys_vendor", "QEMU\n");
    assert_eq!(environment_at(fixture.root()).virtualization.as_deref(), Some("QEMU/KVM"));
}

#[test]
fn this_machine_answers() {
    let found = environment();
    assert!(found.cpu.usable >= 1);
    assert!(found.mem_total_bytes.is_some_and(|bytes| bytes > 1 << 26));
    assert!(found.kernel.is_some() && found.hostname.is_some());
    assert!(found.disk_free_bytes.is_some() && found.swap_used_bytes.is_some());
    let peak = peak_rss_bytes().unwrap();
    let mut probe = Probe::new();
    let reading = probe.read(1, None, Some(std::process::id()));
    let rss = reading.worker_rss_bytes.unwrap();
    assert!(rss > 1 << 18 && peak > 1 << 18, "{rss} {peak}");
    assert_eq!(reading.failed, Vec::<String>::new());
}
