//! The processor, from `/proc/cpuinfo` and the topology.

use crate::clock::CPUS;
use crate::tree::Tree;

/// Instruction sets that change how fast a network runs, in the kernel's spelling: x86 first, then Arm.
const FEATURES: &[&str] = &[
    "f16c",
    "fma",
    "avx",
    "avx2",
    "avx_vnni",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
    "asimd",
    "fphp",
    "asimdhp",
    "asimddp",
    "i8mm",
    "bf16",
    "sve",
    "sve2",
];

/// Arm cores of the boards Prony meets: implementer, part, name.
const ARM_CORES: &[(&str, &str, &str)] = &[
    ("0x41", "0xd03", "Cortex-A53"),
    ("0x41", "0xd04", "Cortex-A35"),
    ("0x41", "0xd05", "Cortex-A55"),
    ("0x41", "0xd07", "Cortex-A57"),
    ("0x41", "0xd08", "Cortex-A72"),
    ("0x41", "0xd09", "Cortex-A73"),
    ("0x41", "0xd0a", "Cortex-A75"),
    ("0x41", "0xd0b", "Cortex-A76"),
    ("0x41", "0xd0c", "Neoverse-N1"),
    ("0x41", "0xd40", "Neoverse-V1"),
    ("0x41", "0xd41", "Cortex-A78"),
    ("0x41", "0xd42", "Cortex-A78AE"),
    ("0x41", "0xd49", "Neoverse-N2"),
    ("0x41", "0xd4f", "Neoverse-V2"),
    ("0x41", "0xd83", "Neoverse-V3AE"),
    ("0x4e", "0x003", "Denver 2"),
    ("0x4e", "0x004", "Carmel"),
];

/// What `/proc/cpuinfo` tells.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CpuInfo {
    pub(crate) name: Option<String>,
    pub(crate) features: Vec<String>,
    /// x86 tells a guest that it is one.
    pub(crate) hypervisor_flag: bool,
    /// Whether the format is that of x86, where the flag can be trusted to be there.
    pub(crate) x86: bool,
}

pub(crate) fn read(tree: &Tree) -> CpuInfo {
    let Some(text) = tree.text("proc/cpuinfo") else { return CpuInfo::default() };
    let first = |key: &'static str| values(&text, key).next();
    let x86 = first("flags").is_some();
    let flags: Vec<&str> = first("flags").or(first("Features")).unwrap_or("").split_whitespace().collect();
    CpuInfo {
        name: first("model name").map(str::to_owned).or_else(|| arm_name(&text)),
        features: FEATURES.iter().filter(|f| flags.contains(f)).map(|f| (*f).to_owned()).collect(),
        hypervisor_flag: flags.contains(&"hypervisor"),
        x86,
    }
}

/// Physical cores: CPUs with the same siblings are one.
pub(crate) fn cores(tree: &Tree) -> Option<u32> {
    let of = |cpu: &String| tree.text(&format!("{CPUS}/{cpu}/topology/thread_siblings_list"));
    let mut siblings: Vec<String> = tree.numbered(CPUS, "cpu").iter().filter_map(of).collect();
    siblings.sort_unstable();
    siblings.dedup();
    u32::try_from(siblings.len()).ok().filter(|&n| n > 0)
}

/// Kinds of cores, each once and in the order in which they come, e.g. `Cortex-A72 + Cortex-A53`.
fn arm_name(text: &str) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for (implementer, part) in values(text, "CPU implementer").zip(values(text, "CPU part")) {
        let known = ARM_CORES.iter().find(|(i, p, _)| *i == implementer && *p == part);
        let name = known.map_or_else(|| format!("Arm core {implementer}/{part}"), |(.., name)| (*name).to_owned());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| names.join(" + "))
}

fn values<'a>(text: &'a str, key: &'static str) -> impl Iterator<Item = &'a str> + use<'a> {
    text.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}
