//! What only a Jetson has: its releases and the clock of its GPU.

use crate::tree::Tree;

const DEVFREQ: &str = "sys/class/devfreq";

/// JetPack by release of Jetson Linux, for boards without the package that says so. A release that is not here is not
/// guessed.
const JETPACKS: &[(&str, &str)] = &[
    ("R32.6.1", "4.6"),
    ("R32.7.1", "4.6.1"),
    ("R32.7.2", "4.6.2"),
    ("R32.7.3", "4.6.3"),
    ("R32.7.4", "4.6.4"),
    ("R32.7.5", "4.6.5"),
    ("R32.7.6", "4.6.6"),
    ("R35.1.0", "5.0.2"),
    ("R35.2.1", "5.1"),
    ("R35.3.1", "5.1.1"),
    ("R35.4.1", "5.1.2"),
    ("R35.5.0", "5.1.3"),
    ("R35.6.0", "5.1.4"),
    ("R35.6.1", "5.1.5"),
    ("R35.6.2", "5.1.5"),
    ("R35.6.4", "5.1.6"),
    ("R36.3.0", "6.0"),
    ("R36.4.0", "6.1"),
    ("R36.4.3", "6.2"),
    ("R36.4.4", "6.2.1"),
    ("R36.5.0", "6.2.2"),
    ("R38.2.0", "7.0"),
    ("R38.2.1", "7.0"),
    ("R38.4.0", "7.1"),
    ("R39.2.0", "7.2"),
];

/// Whether this is one. A container has the device tree of its host but not always the release file.
pub(crate) fn is_jetson(tree: &Tree, model: Option<&str>) -> bool {
    tree.text("etc/nv_tegra_release").is_some() || model.is_some_and(|model| model.contains("Jetson"))
}

/// Release of Jetson Linux: its own file, else its package.
pub(crate) fn l4t(tree: &Tree, packages: &Packages) -> Option<String> {
    let from_file = tree.text("etc/nv_tegra_release").and_then(|text| l4t_of(&text));
    from_file.or_else(|| packages.version("nvidia-l4t-core").map(|version| format!("R{version}")))
}

/// `# R36 (release), REVISION: 4.3, GCID: …` is `R36.4.3`.
fn l4t_of(text: &str) -> Option<String> {
    let (major, rest) = text.trim_start_matches(['#', ' ']).split_once(" (release)")?;
    let (_, revision) = rest.split_once("REVISION:")?;
    let revision = revision.split(',').next()?.trim();
    let sound = major.starts_with('R') && !revision.is_empty();
    sound.then(|| format!("{major}.{revision}"))
}

/// Release of JetPack: its package, else what is known of the release of Jetson Linux.
pub(crate) fn jetpack(packages: &Packages, l4t: Option<&str>) -> Option<String> {
    let known = || JETPACKS.iter().find(|(release, _)| Some(*release) == l4t).map(|(_, name)| (*name).to_owned());
    packages.version("nvidia-jetpack").or_else(known)
}

/// What Debian's package manager has installed.
#[derive(Debug, Default)]
pub(crate) struct Packages {
    status: String,
}

impl Packages {
    pub(crate) fn read(tree: &Tree) -> Packages {
        Packages { status: tree.text("var/lib/dpkg/status").unwrap_or_default() }
    }

    /// Version of an installed package without the number of its build: `6.2+b77` is `6.2`.
    fn version(&self, name: &str) -> Option<String> {
        let field = |stanza: &'_ str, key: &str| -> Option<String> {
            stanza.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(": ")?.trim().to_owned()))
        };
        let named = |stanza: &&str| field(stanza, "Package").is_some_and(|package| package == name);
        let stanza = self.status.split("\n\n").find(named)?;
        // One that was removed keeps its stanza.
        field(stanza, "Status").filter(|status| status.ends_with(" installed"))?;
        let version = field(stanza, "Version")?;
        version.split(['+', '-', '~']).next().filter(|plain| !plain.is_empty()).map(str::to_owned)
    }
}

/// The clock of a GPU that the kernel scales.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GpuClock {
    pub(crate) now_hz: u64,
    pub(crate) max_hz: u64,
    pub(crate) min_hz: Option<u64>,
    pub(crate) governor: Option<String>,
}

impl GpuClock {
    /// The GPU's folder has another name on every generation: `17000000.ga10b`, `17000000.gpu`, `gpu-gpc-0`.
    pub(crate) fn find(tree: &Tree) -> Option<GpuClock> {
        let chips = [".gpu", ".ga10b", ".gv11b", ".gp10b", ".gm20b", ".gb10b"];
        let is_gpu = |name: &String| name.starts_with("gpu-gpc") || chips.iter().any(|chip| name.ends_with(chip));
        tree.names(DEVFREQ).into_iter().filter(is_gpu).find_map(|name| {
            let at = |file: &str| format!("{DEVFREQ}/{name}/{file}");
            Some(GpuClock {
                now_hz: tree.value(&at("cur_freq"))?,
                max_hz: tree.value(&at("max_freq"))?,
                min_hz: tree.value(&at("min_freq")),
                governor: tree.text(&at("governor")),
            })
        })
    }

    /// Whether it stays where it is: `jetson_clocks` keeps the governor and raises the floor to the ceiling.
    pub(crate) fn is_pinned(&self) -> bool {
        self.min_hz == Some(self.max_hz) || self.governor.as_deref() == Some("performance")
    }
}

#[cfg(test)]
#[path = "jetson_tests.rs"]
mod tests;
