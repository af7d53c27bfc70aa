//! What a run leaves for people and machines to read.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::{Place, QUICK, expect_code, has_tool, prony, quick, stderr, stdout};

#[test]
fn a_report_is_rendered_again_from_its_record() {
    let place = Place::new();
    expect_code(&place.bench(&quick(&["builtin-thermal"])).output().unwrap(), 0);
    let run = place.run();
    for (format, file) in [("html", "report.html"), ("md", "report.md"), ("csv", "latency_comparative_320.csv")] {
        let before = fs::read(run.join(file)).unwrap();
        fs::remove_file(run.join(file)).unwrap();
        expect_code(&prony().arg("report").arg(&run).args(["--format", format]).output().unwrap(), 0);
        assert!(before == fs::read(run.join(file)).unwrap(), "{file} came out differently");
    }
    let output = prony().arg("report").arg(run.join("report.json")).output().unwrap();
    expect_code(&output, 0);
    assert!(stdout(&output).contains("builtin-thermal:rten:fp32"), "{}", stdout(&output));
    let output = prony().arg("report").arg(place.path("nowhere")).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("nowhere"));
}

#[test]
fn markdown_and_csv_say_what_the_json_says() {
    let place = Place::new();
    expect_code(&place.bench(&quick(&["builtin-thermal"])).output().unwrap(), 0);
    let record = place.record();
    let cell = &record.cells[0];
    let total = &cell.latency_ms[&prony_types::Stage::Total];
    let markdown = fs::read_to_string(place.run().join("report.md")).unwrap();
    for fact in [&cell.id, &record.recommendation[0].text, &record.environment.arch, &cell.model.sha256] {
        assert!(markdown.contains(fact.as_str()), "{fact} is not in the Markdown");
    }
    let csv = fs::read_to_string(place.run().join("latency_comparative_320.csv")).unwrap();
    let mut lines = csv.lines();
    let columns = "device,imgsz,backend,precision,mean_ms,p50_ms,p95_ms,fps_mean,speedup,temp_c_min,temp_c_avg,temp_c_max,verdict";
    assert!(lines.next().unwrap().starts_with(columns), "{csv}");
    let row: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(row[1..4], ["320", "rten", "fp32"]);
    let p50: f64 = row[5].parse().unwrap();
    assert!((p50 - total.p50).abs() < 0.01 * total.p50);
    assert_eq!(row[12], cell.verdict.unwrap().name());
}

#[test]
fn a_timed_cell_is_held_against_the_peak_of_its_device() {
    let place = Place::new();
    let output = place.bench(&quick(&["builtin-thermal", "--verbose"])).output().unwrap();
    expect_code(&output, 0);
    let record = place.record();
    let peak = &record.environment.peaks[0];
    assert_eq!((peak.device.as_str(), peak.precision.name()), ("cpu", "fp32"));
    let cell = &record.cells[0];
    let floor = cell.roofline.as_ref().unwrap();
    let inference = &cell.latency_ms[&prony_types::Stage::Inference];
    assert_eq!(floor.measured_ms, Some(inference.p50));
    assert!(floor.predicted_ms >= floor.flops as f64 / peak.flops_per_s * 0.999e3, "{floor:?} {peak:?}");
    let markdown = fs::read_to_string(place.run().join("report.md")).unwrap();
    let html = fs::read_to_string(place.run().join("report.html")).unwrap();
    for text in [&markdown, &html, &stdout(&output)] {
        assert!(text.contains(&floor.to_string()), "{floor}");
    }
}

#[test]
fn redact_leaves_host_name_and_paths_out_of_every_file() {
    let place = Place::new();
    let images = place.path("secret-photos");
    expect_code(&prony().args(["data", "synth", "--count", "3", "--quiet"]).arg(&images).output().unwrap(), 0);
    let source = images.join("images");
    let output = place.bench(&quick(&["builtin-rgb", "--redact"])).arg("--source").arg(&source).output().unwrap();
    expect_code(&output, 0);
    let record = place.record();
    assert!(record.run.redacted && record.environment.hostname.is_none());
    let secret = place.dir.path().to_str().unwrap();
    let mut looked_at = 0;
    let mut folders = vec![place.run()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|e| e != "jpg") {
                let text = fs::read_to_string(&path).unwrap().replace("&#x2f;", "/");
                assert!(!text.contains(secret), "{} holds a path", path.display());
                looked_at += 1;
            }
        }
    }
    assert!(looked_at >= 10, "{looked_at}");
    let output = support::prony().args(["bench", "--resume"]).arg(place.run()).output().unwrap();
    expect_code(&output, 2);
}

/// The page's final DOM and what was said on its console.
fn open_in_browser(page: &Path, profile: &Path) -> (String, Vec<String>) {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--v=0", "--virtual-time-budget=3000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", fs::canonicalize(page).unwrap().display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let console = stderr(&output).lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    (stdout(&output), console)
}

#[test]
fn the_page_opens_in_a_browser_without_an_error() {
    if !has_tool("chromium") {
        return;
    }
    let place = Place::new();
    expect_code(&place.bench(&QUICK).output().unwrap(), 0);
    let (dom, console) = open_in_browser(&place.run().join("report.html"), &place.path("profile"));
    assert!(console.is_empty(), "{console:?}");
    let record = place.record();
    for cell in &record.cells {
        assert!(dom.contains(&cell.id), "{} is not on the page", cell.id);
        assert!(dom.contains(cell.verdict.unwrap().name()));
    }
    assert!(dom.contains("<svg") && dom.contains("data:image/"), "charts and thumbnails are there");
    assert!(dom.contains(&record.recommendation[0].text[..24]), "the recommendation is there");
}

#[test]
fn a_console_error_would_be_seen() {
    if !has_tool("chromium") {
        return;
    }
    let place = Place::new();
    let page = place.path("bad.html");
    fs::write(&page, "<!doctype html><title>x</title><script>console.error('planted')</script>").unwrap();
    let (_, console) = open_in_browser(&page, &place.path("profile"));
    assert!(console.iter().any(|line| line.contains("planted")), "{console:?}");
}

#[test]
fn version_completions_and_manual_are_there() {
    let version = stdout(&prony().arg("--version").output().unwrap());
    assert!(version.starts_with(&format!("prony {}", env!("CARGO_PKG_VERSION"))), "{version}");
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&prony().args(["completions", shell]).output().unwrap());
        assert!(script.contains("prony") && script.contains("bench"), "{shell}");
        // Bash's script holds names alone, no help texts: a listed worker would show there.
        assert!(shell != "bash" || !script.contains("worker"), "the worker is not for people");
    }
    let manual = stdout(&prony().arg("man").output().unwrap());
    assert!(manual.contains(".TH prony") && manual.contains("EXIT") || manual.contains("Exit codes"), "{manual}");
    let place = Place::new();
    expect_code(&prony().args(["man", "--out"]).arg(place.path("man")).output().unwrap(), 0);
    assert!(place.path("man").join("prony-bench.1").exists());
    let help = stdout(&prony().args(["bench", "--help"]).output().unwrap());
    assert!(help.contains("Examples:"), "{help}");
}
