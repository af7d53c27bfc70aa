//! Whether the machine is fit to be measured on: a function a rule.
//!
//! What does not exist here (a power mode on a PC) has no line; what should be there and cannot be read has one that says
//! so. Findings stand alone: those that are not good are the notes of a report.

use prony_types::{Check, Environment, Outcome};

use crate::jetson::GpuClock;
use crate::power_mode::PowerModes;
use crate::size::size;
use crate::thermal::Headroom;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// What the rules need and [`Environment`] does not hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) jetson: bool,
    /// CPUs that a control group allows.
    pub(crate) quota: Option<f64>,
    /// The clock that equal limits hold the CPUs at.
    pub(crate) pinned_khz: Option<u64>,
    pub(crate) gpu_clock: Option<GpuClock>,
    pub(crate) power_modes: PowerModes,
    pub(crate) has_frequency: bool,
    pub(crate) has_temperature: bool,
    pub(crate) headroom: Option<Headroom>,
    /// Sensors that exist and do not answer.
    pub(crate) silent: Vec<String>,
    /// Whether the room on a disk was asked for.
    pub(crate) disk: bool,
}

/// Every rule that applies here, in the order in which they are worth reading.
pub(crate) fn preflight(environment: &Environment, facts: &Facts) -> Vec<Check> {
    let rules = [
        load(environment),
        quota(environment, facts),
        governor(environment, facts),
        power_mode(facts),
        gpu_clock(facts),
        thermal(facts),
        memory(environment),
        swap(environment),
        disk(environment, facts),
        virtual_machine(environment),
        frequency(facts),
        silent(environment, facts),
    ];
    rules.into_iter().flatten().collect()
}

/// What a report says in plain words: every finding that is not good.
pub(crate) fn notes(checks: &[Check]) -> Vec<String> {
    checks.iter().filter(|check| check.outcome != Outcome::Pass).map(|check| check.finding.clone()).collect()
}

fn check(name: &str, outcome: Outcome, finding: String, fix: Option<&str>) -> Option<Check> {
    let fix = fix.filter(|_| outcome != Outcome::Pass).map(str::to_owned);
    Some(Check { name: name.to_owned(), outcome, finding, fix })
}

fn unreadable(name: &str, what: &str) -> Option<Check> {
    check(name, Outcome::Warn, format!("{what} cannot be read"), None)
}

fn load(environment: &Environment) -> Option<Check> {
    let Some(load) = environment.load1 else { return unreadable("load", "the load average") };
    let cpus = environment.cpu.usable;
    let outcome = match load {
        load if load > f64::from(cpus) => Outcome::Fail,
        load if load > f64::from(cpus) / 2.0 => Outcome::Warn,
        _ => Outcome::Pass,
    };
    let remark = match outcome {
        Outcome::Pass => "",
        Outcome::Warn => ": something else is running",
        Outcome::Fail => ": other work takes the CPUs",
    };
    let finding = format!("the load average is {load:.2} on {cpus} usable CPUs{remark}");
    check("load", outcome, finding, Some("ps -eo pcpu,pid,user,args --sort=-pcpu | head"))
}

fn quota(environment: &Environment, facts: &Facts) -> Option<Check> {
    let cpus = environment.cpu.usable;
    match facts.quota.filter(|&quota| quota < f64::from(cpus)) {
        Some(quota) => {
            let finding =
                format!("a control group allows {quota:.1} of {cpus} CPUs: long frames may be cut by its quota");
            check("CPU quota", Outcome::Warn, finding, None)
        }
        None => check("CPU quota", Outcome::Pass, "no control group limits the CPUs".into(), None),
    }
}

fn governor(environment: &Environment, facts: &Facts) -> Option<Check> {
    let governor = environment.cpu.governor.as_ref()?;
    if governor == "performance" {
        return check("CPU governor", Outcome::Pass, "performance".into(), None);
    }
    if let Some(khz) = facts.pinned_khz {
        let finding = format!("{governor}, held at {:.0} MHz by its limits", khz as f64 / 1e3);
        return check("CPU governor", Outcome::Pass, finding, None);
    }
    let fix = match facts.jetson {
        true => "sudo jetson_clocks",
        false => "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    };
    let finding = format!("the frequency governor is {governor}, not performance: clocks follow the load");
    check("CPU governor", Outcome::Warn, finding, Some(fix))
}

fn power_mode(facts: &Facts) -> Option<Check> {
    let modes = &facts.power_modes;
    if !facts.jetson && modes.all.is_empty() {
        return None;
    }
    let Some(name) = modes.name() else { return unreadable("power mode", "the power mode") };
    match modes.higher() {
        Err(_) if modes.all.is_empty() => {
            check("power mode", Outcome::Warn, format!("the power mode is {name}; its name cannot be read"), None)
        }
        Err(reason) => {
            let finding = format!("the power mode is {name}; whether another permits more is unknown: {reason}");
            check("power mode", Outcome::Warn, finding, None)
        }
        Ok(None) => check("power mode", Outcome::Pass, name, None),
        Ok(Some(best)) => {
            let finding = format!("the power mode is {name}, not {}: clocks and cores are limited", best.name);
            check("power mode", Outcome::Warn, finding, Some(&format!("sudo nvpmodel -m {}", best.id)))
        }
    }
}

fn gpu_clock(facts: &Facts) -> Option<Check> {
    let clock = facts.gpu_clock.as_ref()?;
    let mhz = |hz: u64| hz as f64 / 1e6;
    let range = format!("{:.0} of {:.0} MHz", mhz(clock.now_hz), mhz(clock.max_hz));
    if clock.is_pinned() {
        return check("GPU clock", Outcome::Pass, format!("held at {range}"), None);
    }
    let governor = clock.governor.as_ref().map(|name| format!(" (governor {name})")).unwrap_or_default();
    let finding = format!("the GPU's clock follows the load{governor}, now {range}");
    check("GPU clock", Outcome::Warn, finding, facts.jetson.then_some("sudo jetson_clocks"))
}

fn thermal(facts: &Facts) -> Option<Check> {
    const NAME: &str = "thermal headroom";
    if !facts.has_temperature {
        return check(NAME, Outcome::Warn, "no temperature can be read".into(), None);
    }
    let Some(headroom) = &facts.headroom else {
        return check(NAME, Outcome::Warn, "no trip point can be read: the thermal headroom is unknown".into(), None);
    };
    let outcome = match headroom.left_c() {
        left if left <= 5.0 => Outcome::Fail,
        left if left <= 15.0 => Outcome::Warn,
        _ => Outcome::Pass,
    };
    let remark = match outcome {
        Outcome::Pass => "",
        Outcome::Warn => ": clocks may be cut",
        Outcome::Fail => ": clocks will be cut",
    };
    let Headroom { zone, temp_c, trip_c, kind } = headroom;
    let left = headroom.left_c();
    let side = if left < 0.0 { "above" } else { "below" };
    let finding = format!(
        "{zone} is at {temp_c:.1} °C, {:.1} {side} its {kind} trip point of {trip_c:.1} °C{remark}",
        left.abs()
    );
    check(NAME, outcome, finding, facts.jetson.then_some("sudo jetson_clocks --fan"))
}

fn memory(environment: &Environment) -> Option<Check> {
    let (Some(available), Some(total)) = (environment.mem_available_bytes, environment.mem_total_bytes) else {
        return unreadable("memory", "the free memory");
    };
    let scarce = available < GIB || available < total / 10;
    let amounts = format!("{} of {} of memory are available", size(available), size(total));
    match scarce {
        true => {
            let fix = "ps -eo rss,pid,user,args --sort=-rss | head";
            check("memory", Outcome::Warn, format!("only {amounts}: a model may not fit"), Some(fix))
        }
        false => check("memory", Outcome::Pass, amounts, None),
    }
}

fn swap(environment: &Environment) -> Option<Check> {
    let Some(used) = environment.swap_used_bytes else { return unreadable("swap", "the use of swap") };
    if used == 0 {
        return check("swap", Outcome::Pass, "none in use".into(), None);
    }
    // What is swapped out must have room to come back.
    let fits = environment.mem_available_bytes.is_some_and(|available| available > used.saturating_add(GIB));
    let finding = format!("{} of swap are in use", size(used));
    check("swap", Outcome::Warn, finding, fits.then_some("sudo swapoff -a && sudo swapon -a"))
}

fn disk(environment: &Environment, facts: &Facts) -> Option<Check> {
    if !facts.disk {
        return None;
    }
    let Some(free) = environment.disk_free_bytes else { return unreadable("disk", "the free room on the disk") };
    let outcome = match free {
        free if free < 100 * MIB => Outcome::Fail,
        free if free < GIB => Outcome::Warn,
        _ => Outcome::Pass,
    };
    let remark = if outcome == Outcome::Pass { "" } else { ": a run may not fit" };
    let finding = format!("{} are free where runs are written{remark}", size(free));
    check("disk", outcome, finding, Some("du -sh runs/* | sort -h | tail"))
}

fn virtual_machine(environment: &Environment) -> Option<Check> {
    match &environment.virtualization {
        Some(hypervisor) => {
            let finding = format!("this is a virtual machine ({hypervisor}): neighbours can take time from it unseen");
            check("virtual machine", Outcome::Warn, finding, None)
        }
        None => check("virtual machine", Outcome::Pass, "no hypervisor is seen".into(), None),
    }
}

fn frequency(facts: &Facts) -> Option<Check> {
    let missing = || check("CPU clock", Outcome::Warn, "no CPU frequency can be read".into(), None);
    (!facts.has_frequency).then(missing).flatten()
}

fn silent(environment: &Environment, facts: &Facts) -> Option<Check> {
    let finding = match facts.silent.as_slice() {
        [] => return check("sensors", Outcome::Pass, format!("all {} answer", environment.sensors.len()), None),
        [one] => format!("{one} exists but gives no answer; it is left alone"),
        many => format!("{} exist but give no answer; they are left alone", many.join(", ")),
    };
    check("sensors", Outcome::Warn, finding, None)
}

#[cfg(test)]
#[path = "preflight_tests.rs"]
mod tests;
