//! The board or machine, and whether it is a real one.

use crate::cpuinfo::CpuInfo;
use crate::tree::Tree;

const DMI: &str = "sys/class/dmi/id";

/// Vendors that firmware of virtual machines names, and the hypervisor it means.
const VENDORS: &[(&str, &str)] = &[
    ("QEMU", "QEMU/KVM"),
    ("VMware", "VMware"),
    ("innotek", "VirtualBox"),
    ("Xen", "Xen"),
    ("Microsoft", "Hyper-V"),
    ("Google", "Google Compute Engine"),
    ("Amazon EC2", "Amazon EC2"),
    ("Parallels", "Parallels"),
    ("DigitalOcean", "DigitalOcean"),
    ("OpenStack", "OpenStack"),
    ("Red Hat", "KVM"),
];

/// Words that a PC maker leaves where a name should be.
const FILLERS: &[&str] = &["To Be Filled By O.E.M.", "System Product Name", "System manufacturer", "Default string"];

/// Vendor and product of a PC, or the model of a board.
pub(crate) fn model(tree: &Tree) -> Option<String> {
    if let Some(model) = tree.text("proc/device-tree/model") {
        return Some(model);
    }
    let name = |file: &str| tree.text(&format!("{DMI}/{file}")).filter(|text| !FILLERS.contains(&text.as_str()));
    match (name("sys_vendor"), name("product_name")) {
        (Some(vendor), Some(product)) if !product.starts_with(&vendor) => Some(format!("{vendor} {product}")),
        (vendor, product) => product.or(vendor),
    }
}

/// The hypervisor, where this is a virtual machine. Vendors of clouds sell bare metal too; on x86 the flag decides.
pub(crate) fn hypervisor(tree: &Tree, cpu: &CpuInfo) -> Option<String> {
    if cpu.x86 && !cpu.hypervisor_flag {
        return None;
    }
    let vendor = tree.text(&format!("{DMI}/sys_vendor")).unwrap_or_default();
    let known = VENDORS.iter().find(|(word, _)| vendor.contains(word)).map(|(_, name)| (*name).to_owned());
    let fallback = cpu.hypervisor_flag.then(|| "unnamed hypervisor".to_owned());
    known.or_else(|| tree.text("sys/hypervisor/type")).or(fallback)
}

/// CPUs that the control group allows this process, where it sets a quota.
pub(crate) fn cpu_quota(tree: &Tree) -> Option<f64> {
    let groups = tree.text("proc/self/cgroup")?;
    unified_quota(tree, &groups).or_else(|| legacy_quota(tree, &groups))
}

fn unified_quota(tree: &Tree, groups: &str) -> Option<f64> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let in_group = format!("sys/fs/cgroup{}/cpu.max", own.trim_end_matches('/'));
    // Inside a container the own group is mounted as the root.
    let text = tree.text(&in_group).or_else(|| tree.text("sys/fs/cgroup/cpu.max"))?;
    let (quota, period) = text.split_once(' ')?;
    share(quota.parse().ok()?, period.trim().parse().ok()?)
}

/// Version 1, as on JetPack 4 and 5: a controller a folder, and -1 for no quota.
fn legacy_quota(tree: &Tree, groups: &str) -> Option<f64> {
    let own = groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == "cpu").then_some(group)
    })?;
    let value = |file: &str| {
        let in_group = format!("sys/fs/cgroup/cpu{}/{file}", own.trim_end_matches('/'));
        tree.value::<f64>(&in_group).or_else(|| tree.value(&format!("sys/fs/cgroup/cpu/{file}")))
    };
    share(value("cpu.cfs_quota_us")?, value("cpu.cfs_period_us")?)
}

fn share(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}
