//! `prony doctor` on this machine, whatever it is.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;

use prony_types::{Environment, Outcome};
use support::{Place, expect_code, prony, stderr, stdout};

#[test]
fn the_text_has_every_section_and_no_colour() {
    let output = prony().arg("doctor").output().unwrap();
    expect_code(&output, 0);
    let text = stdout(&output);
    for section in
        ["System", "Processor", "Memory and load", "GPU", "Runtimes", "Python packages", "Sensors", "Preflight"]
    {
        assert!(text.contains(&format!("\n{section}\n")), "{section} is not in\n{text}");
    }
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(text.contains(kernel.trim()), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    assert_eq!(stderr(&output), "");
}

#[test]
fn the_json_is_the_environment_of_the_contract() {
    let output = prony().args(["doctor", "--json"]).output().unwrap();
    expect_code(&output, 0);
    let environment: Environment = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(environment.arch, std::env::consts::ARCH);
    assert!(environment.disk_free_bytes.is_some_and(|bytes| bytes > 0));
    let names: Vec<&str> = environment.preflight.iter().map(|check| check.name.as_str()).collect();
    for name in ["load", "thermal headroom", "memory", "swap", "disk", "virtual machine", "sensors"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    let bad = environment.preflight.iter().filter(|check| check.outcome != Outcome::Pass);
    assert_eq!(environment.notes, bad.map(|check| check.finding.clone()).collect::<Vec<_>>());
}

#[test]
fn a_process_without_any_environment_is_told_all_the_same() {
    let place = Place::new();
    for args in [&["doctor"][..], &["doctor", "--json"]] {
        let output = prony().args(args).env_clear().current_dir(place.dir.path()).output().unwrap();
        expect_code(&output, 0);
        assert!(stdout(&output).contains(std::env::consts::ARCH), "{}", stdout(&output));
    }
}

#[test]
fn packages_of_the_active_environment_are_listed_with_their_place() {
    let place = Place::new();
    let site = place.path("env/lib/python3.12/site-packages");
    let info = site.join("Ultralytics-8.3.0.dist-info");
    fs::create_dir_all(&info).unwrap();
    fs::write(info.join("METADATA"), "Name: ultralytics\nVersion: 8.3.0\n").unwrap();
    let output = prony().args(["doctor", "--json"]).env("VIRTUAL_ENV", place.path("env")).output().unwrap();
    let environment: Environment = serde_json::from_str(&stdout(&output)).unwrap();
    let site = fs::canonicalize(site).unwrap().display().to_string();
    let found = environment.python.iter().find(|package| package.place == site).unwrap();
    assert_eq!((found.name.as_str(), found.version.as_str()), ("ultralytics", "8.3.0"));
}

#[test]
fn out_writes_the_file_and_says_where() {
    let place = Place::new();
    let (text, json) = (place.path("env.txt"), place.path("env.json"));
    let output = prony().args(["doctor", "--out"]).arg(&text).output().unwrap();
    expect_code(&output, 0);
    assert_eq!(stdout(&output), format!("{}\n", text.display()));
    assert!(fs::read_to_string(&text).unwrap().starts_with("Prony environment report\n"));
    expect_code(&prony().args(["doctor", "--json", "--out"]).arg(&json).output().unwrap(), 0);
    let _: Environment = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let output = prony().args(["doctor", "--out", "/nonexistent/folder/env.txt"]).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("/nonexistent/folder"), "{}", stderr(&output));
}
