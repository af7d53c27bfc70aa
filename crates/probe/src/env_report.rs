//! The machine in plain words: what `prony doctor` prints and `env_report.txt` holds.

use prony_types::{Environment, GpuRecord, RuntimeName, RuntimeRecord, RuntimeState};

use crate::layout::{Page, widest};
use crate::size::size;

/// Sections of aligned lines, without colour. What is not known is said to be so; what cannot exist here is left out.
pub fn env_report(environment: &Environment) -> String {
    let mut page = Page::new("Prony environment report");
    system(&mut page, environment);
    processor(&mut page, environment);
    memory(&mut page, environment);
    gpu(&mut page, environment);
    jetson(&mut page, environment);
    runtimes(&mut page, &environment.runtimes);
    python(&mut page, environment);
    page.heading("Sensors");
    page.after("  ", &or_none(&environment.sensors.join(", ")));
    preflight(&mut page, environment);
    notes(&mut page, environment);
    page.into_text()
}

fn system(page: &mut Page, environment: &Environment) {
    page.rows(
        "System",
        &[
            ("host", environment.hostname.clone()),
            ("system", environment.os.clone()),
            ("kernel", environment.kernel.clone()),
            ("architecture", Some(environment.arch.clone())),
            ("machine", environment.machine.clone()),
            ("virtual machine", Some(environment.virtualization.clone().unwrap_or_else(|| "no".into()))),
        ],
    );
}

fn processor(page: &mut Page, environment: &Environment) {
    let cpu = &environment.cpu;
    page.rows(
        "Processor",
        &[
            ("name", cpu.name.clone()),
            ("usable CPUs", Some(cpu.usable.to_string())),
            ("physical cores", cpu.cores.map(|n| n.to_string())),
            ("governor", cpu.governor.clone()),
            ("highest clock", cpu.max_khz.map(|khz| format!("{:.0} MHz", khz as f64 / 1e3))),
            ("features", (!cpu.features.is_empty()).then(|| cpu.features.join(" "))),
        ],
    );
}

fn memory(page: &mut Page, environment: &Environment) {
    let swap = environment.swap_total_bytes.map(|total| match environment.swap_used_bytes {
        _ if total == 0 => "none".to_owned(),
        Some(used) => format!("{}, {} in use", size(total), size(used)),
        None => size(total),
    });
    page.rows(
        "Memory and load",
        &[
            ("memory", environment.mem_total_bytes.map(size)),
            ("available", environment.mem_available_bytes.map(size)),
            ("swap", swap),
            ("free on disk", environment.disk_free_bytes.map(size)),
            ("load average", environment.load1.map(|load| format!("{load:.2}"))),
        ],
    );
}

fn gpu(page: &mut Page, environment: &Environment) {
    let version = |name: RuntimeName| {
        let ready = |runtime: &&RuntimeRecord| runtime.name == name && runtime.state == RuntimeState::Ready;
        environment.runtimes.iter().find(ready).and_then(|runtime| runtime.version.clone())
    };
    let software = [
        ("driver", environment.driver.clone()),
        ("CUDA of the driver", version(RuntimeName::Cuda)),
        ("CUDA toolkit", version(RuntimeName::Cudart)),
    ];
    let mut rows: Vec<(&str, Option<String>)> = Vec::new();
    for gpu in &environment.gpus {
        rows.extend(gpu_rows(gpu));
    }
    if rows.is_empty() {
        rows.push(("name", Some("none found".into())));
    }
    rows.extend(software.into_iter().filter(|(_, value)| value.is_some() || !environment.gpus.is_empty()));
    page.rows("GPU", &rows);
}

fn gpu_rows(gpu: &GpuRecord) -> [(&'static str, Option<String>); 4] {
    let shared = if gpu.integrated == Some(true) { ", shared with the host" } else { "" };
    [
        ("name", Some(gpu.name.clone())),
        ("SMs", gpu.sms.map(|sms| sms.to_string())),
        ("compute capability", gpu.compute.clone()),
        ("memory", gpu.mem_total_bytes.map(|bytes| size(bytes) + shared)),
    ]
}

fn jetson(page: &mut Page, environment: &Environment) {
    let rows = [
        ("Jetson Linux", environment.l4t.clone()),
        ("JetPack", environment.jetpack.clone()),
        ("power mode", environment.power_mode.clone()),
    ];
    if rows.iter().any(|(_, value)| value.is_some()) {
        page.rows("Jetson", &rows);
    }
}

/// Columns for the state of a runtime: as wide as `missing`.
const NARROWEST_STATE: usize = 7;

/// A line a copy; the places that were searched in vain are many and only in the JSON.
fn runtimes(page: &mut Page, runtimes: &[RuntimeRecord]) {
    page.heading("Runtimes");
    if runtimes.is_empty() {
        page.line("  not looked for");
    }
    let names = widest(runtimes.iter().map(|runtime| runtime.name.name()));
    let states = widest(runtimes.iter().map(|runtime| runtime.state.name())).max(NARROWEST_STATE);
    let versions = widest(runtimes.iter().filter_map(|runtime| runtime.version.as_deref()));
    let mut last = None;
    for runtime in runtimes {
        // Further copies stand under the first.
        let name = if last.replace(runtime.name) == Some(runtime.name) { "" } else { runtime.name.name() };
        let label = format!("  {name:<names$}  {:<states$}  ", runtime.state.name());
        let under = " ".repeat(names + 4);
        match (runtime.state, &runtime.remedy) {
            (RuntimeState::Missing, Some(remedy)) => page.after(&label, remedy),
            (RuntimeState::Missing, None) => page.line(&label),
            _ => {
                let version = runtime.version.as_deref().unwrap_or("-");
                page.line(&format!("{label}{version:<versions$}  {}", runtime.path.as_deref().unwrap_or_default()));
            }
        }
        if !runtime.looked.is_empty() {
            page.after(&format!("{under}looked in: "), &places(&runtime.looked));
        }
        if let Some(reason) = &runtime.reason {
            page.after(&format!("{under}why: "), reason);
        }
        if let Some(problem) = &runtime.trusted {
            page.after(&format!("{under}trusted: "), &format!("{problem}; opened because of --trust-library"));
        }
        if !runtime.provides.is_empty() {
            page.after(&format!("{under}provides: "), &runtime.provides.join(", "));
        }
        if let Some(remedy) = runtime.remedy.as_ref().filter(|_| runtime.state != RuntimeState::Missing) {
            page.after(&format!("{under}fix: "), remedy);
        }
    }
}

/// The first few places; all of them are in the JSON.
fn places(looked: &[String]) -> String {
    const FEW: usize = 4;
    let rest = looked.len().saturating_sub(FEW);
    let more = if rest > 0 { format!(" and {rest} more (--json lists them)") } else { String::new() };
    format!("{}{more}", looked[..looked.len().min(FEW)].join(", "))
}

fn python(page: &mut Page, environment: &Environment) {
    page.heading("Python packages");
    let packages = &environment.python;
    if packages.is_empty() {
        page.line("  none of those that matter here");
    }
    let names = widest(packages.iter().map(|package| package.name.as_str()));
    let versions = widest(packages.iter().map(|package| package.version.as_str()));
    for package in packages {
        page.line(&format!("  {:<names$}  {:<versions$}  {}", package.name, package.version, package.place));
    }
}

fn preflight(page: &mut Page, environment: &Environment) {
    if environment.preflight.is_empty() {
        return;
    }
    page.heading("Preflight");
    let names = widest(environment.preflight.iter().map(|check| check.name.as_str()));
    for check in &environment.preflight {
        page.after(&format!("  {}  {:<names$}  ", check.outcome.name(), check.name), &check.finding);
        if let Some(fix) = &check.fix {
            page.line(&format!("        {:<names$}  fix: {fix}", ""));
        }
    }
}

/// Notes that no line of the preflight has said already.
fn notes(page: &mut Page, environment: &Environment) {
    let said = |note: &&String| !environment.preflight.iter().any(|check| check.finding == **note);
    let left: Vec<&String> = environment.notes.iter().filter(said).collect();
    if left.is_empty() {
        return;
    }
    page.heading("Notes");
    for note in left {
        page.after("  - ", note);
    }
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "none".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
#[path = "env_report_tests.rs"]
mod tests;
