//! Trees of small files that stand in for `/proc` and `/sys`.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::tree::Tree;

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

    /// An AGX Orin at 30 W as it comes up: clocks follow the load, one zone has no power.
    pub(crate) fn orin() -> Fixture {
        let fixture = Fixture::new();
        fixture.write("proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0");
        fixture.write("proc/loadavg", "0.10 0.10 0.10 1/500 1000\n");
        fixture.write(
            "proc/meminfo",
            "MemTotal: 31000000 kB\nMemAvailable: 28000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
        );
        fixture.write(
            "etc/nv_tegra_release",
            "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64\n",
        );
        fixture.write("var/lib/dpkg/status", "Package: bash\nStatus: install ok installed\nVersion: 5.1\n\nPackage: nvidia-jetpack\nStatus: install ok installed\nArchitecture: arm64\nVersion: 6.2+b77\nDepends: nvidia-jetpack-runtime (= 6.2+b77)\n");
        fixture.write("var/lib/nvpmodel/status", "pmode:0002\n");
        fixture.write(
            "etc/nvpmodel.conf",
            "< PARAM TYPE=FILE NAME=CPU_ONLINE >\n< POWER_MODEL ID=0 NAME=MAXN >\nCPU_ONLINE CORE_0 1\n< POWER_MODEL ID=2 NAME=MODE_30W >\n< PM_CONFIG DEFAULT=2 >\n",
        );
        for (file, text) in [
            ("cur_freq", "306000000\n"),
            ("max_freq", "1300500000\n"),
            ("min_freq", "306000000\n"),
            ("governor", "nvhost_podgov\n"),
        ] {
            fixture.write(&format!("sys/class/devfreq/17000000.gpu/{file}"), text);
        }
        for cpu in ["cpu0", "cpu1"] {
            let at = |file: &str| format!("sys/devices/system/cpu/{cpu}/cpufreq/{file}");
            fixture.write(&at("scaling_cur_freq"), "729600\n");
            fixture.write(&at("scaling_min_freq"), "729600\n");
            fixture.write(&at("scaling_max_freq"), "2201600\n");
            fixture.write(&at("cpuinfo_max_freq"), "2201600\n");
            fixture.write(&at("scaling_governor"), "schedutil\n");
        }
        let zone =
            |n: u32, file: &str, text: &str| fixture.write(&format!("sys/class/thermal/thermal_zone{n}/{file}"), text);
        zone(0, "type", "cpu-thermal\n");
        zone(0, "temp", "48500\n");
        zone(0, "trip_point_0_type", "active\n");
        zone(0, "trip_point_0_temp", "51000\n");
        zone(0, "trip_point_1_type", "critical\n");
        zone(0, "trip_point_1_temp", "104500\n");
        zone(0, "trip_point_2_type", "passive\n");
        zone(0, "trip_point_2_temp", "99000\n");
        zone(1, "type", "gpu-thermal\n");
        zone(1, "temp", "45000\n");
        zone(1, "trip_point_0_type", "passive\n");
        zone(1, "trip_point_0_temp", "99000\n");
        zone(2, "type", "cv0-thermal\n");
        fixture
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree::new(self.root().to_owned())
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
