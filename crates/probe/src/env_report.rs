//! `env_report.txt`: the machine in plain words.

use prony_types::Environment;

/// Aligned `key: value` lines in sections, then the notes. What is not known is said to be so.
pub fn env_report(environment: &Environment) -> String {
    let cpu = &environment.cpu;
    let mut text = String::from("Prony environment report\n");
    section(
        &mut text,
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
    section(
        &mut text,
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
    section(
        &mut text,
        "Memory and load",
        &[
            ("memory", environment.mem_total_bytes.map(mib)),
            ("available", environment.mem_available_bytes.map(mib)),
            ("swap", environment.swap_total_bytes.map(mib)),
            ("load average", environment.load1.map(|load| format!("{load:.2}"))),
        ],
    );
    list(&mut text, "Sensors", &environment.sensors);
    list(&mut text, "Notes", &environment.notes);
    text
}

fn section(text: &mut String, title: &str, rows: &[(&str, Option<String>)]) {
    text.push_str(&format!("\n{title}\n"));
    let width = rows.iter().map(|(key, _)| key.len()).max().unwrap_or(0) + 1;
    for (key, value) in rows {
        let value = value.as_deref().unwrap_or("unknown");
        text.push_str(&format!("  {:<width$} {value}\n", format!("{key}:")));
    }
}

fn list(text: &mut String, title: &str, items: &[String]) {
    text.push_str(&format!("\n{title}\n"));
    if items.is_empty() {
        text.push_str("  none\n");
    }
    for item in items {
        text.push_str(&format!("  - {item}\n"));
    }
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
