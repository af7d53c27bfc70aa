//! Trees of small files that stand in for `/proc` and `/sys`.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// A tree that disappears with the test.
pub(crate) struct Fixture {
    folder: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        Fixture { folder: tempfile::tempdir().unwrap() }
    }

    /// A laptop: two hyper-threads on one core, clocks, two zones of which one is silent, throttle counters.
    pub(crate) fn laptop() -> Fixture {
        let fixture = Fixture::new();
        fixture.write("proc/stat", "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3 4\n");
        fixture.write(
            "proc/meminfo",
            "MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:    9000000 kB\nSwapTotal:       2000000 kB\nSwapFree:        1500000 kB\n",
        );
        fixture.write("proc/loadavg", "0.42 0.30 0.20 1/200 4242\n");
        fixture.write("proc/sys/kernel/hostname", "ann-box\n");
        fixture.write("proc/sys/kernel/osrelease", "6.8.0-40-generic\n");
        fixture.write(
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Intel(R) Core(TM) i7\nflags\t\t: fpu avx avx2 fma f16c avx_vnni\n\nprocessor\t: 1\n",
        );
        fixture.write("etc/os-release", "NAME=\"Ubuntu\"\nPRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\n");
        for cpu in ["cpu0", "cpu1"] {
            let at = |file: &str| format!("sys/devices/system/cpu/{cpu}/{file}");
            fixture.write(&at("cpufreq/scaling_cur_freq"), "3200000\n");
            fixture.write(&at("cpufreq/cpuinfo_max_freq"), "4800000\n");
            fixture.write(&at("cpufreq/scaling_governor"), "powersave\n");
            fixture.write(&at("topology/thread_siblings_list"), "0-1\n");
            fixture.write(&at("thermal_throttle/core_throttle_count"), "3\n");
        }
        fixture.write("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n");
        fixture.write("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
        fixture.write("sys/class/thermal/thermal_zone0/temp", "61500\n");
        fixture.write("sys/class/thermal/thermal_zone1/type", "iwlwifi_1\n");
        fixture.write("sys/class/thermal/cooling_device0/type", "Fan\n");
        fixture.write("sys/class/dmi/id/sys_vendor", "LENOVO\n");
        fixture.write("sys/class/dmi/id/product_name", "21HMCTO1WW\n");
        fixture
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.root().join(path)).unwrap();
    }
}
