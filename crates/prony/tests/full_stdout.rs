//! A result that does not reach its reader is an error with exit code 1, whatever the command; and nothing is said to be written
//! that was not.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs::{self, File};
use std::process::{Command, Stdio};

use support::{Place, QUICK, Running, expect_code, prony, quick, stderr, stdout, until};

/// A run, a data set and a graph for the commands that take one.
fn prepared() -> Place {
    let place = Place::new();
    let data = place.path("scenes");
    expect_code(&prony().args(["data", "synth", "--kind", "thermal", "--count", "3"]).arg(&data).output().unwrap(), 0);
    expect_code(&place.bench(&quick(&["builtin-thermal", "--quiet"])).output().unwrap(), 0);
    fs::rename(place.run(), place.path("run")).unwrap();
    fs::write(place.path("boxes.json"), b"[]").unwrap();
    place
}

/// Every verb, in the words of a shell; `@` is the place.
const VERBS: [&str; 43] = [
    "--help",
    "--version",
    "help bench",
    "bench --help",
    "bench builtin-thermal --backends rten --dry-run",
    "bench builtin-thermal --backends rten --dry-run --json",
    "bench builtin-thermal --backends rten --duration 0.5 --warmup 0.1 --frames 8 --json",
    "eval builtin-thermal --backends rten --data @/scenes --quiet",
    "eval --detections @/boxes.json --data @/scenes --json",
    "run builtin-thermal --input @/scenes/images/000000.png",
    "run builtin-thermal --input @/scenes/images/000000.png --json",
    "inspect builtin-thermal --no-backends",
    "inspect builtin-thermal --no-backends --json",
    "convert builtin-thermal --precision fp16 -o @/half.onnx",
    "convert builtin-thermal --precision fp16 -o @/half2.onnx --json",
    "cache list",
    "cache list --json",
    "cache verify",
    "cache prune --all",
    "cache prune --all --json",
    "data info @/scenes",
    "data info @/scenes --json",
    "data synth --count 1 @/more",
    "data synth --count 1 @/more-json --json",
    "data subset @/scenes --out @/some --limit 1",
    "data subset @/scenes --out @/some-json --limit 1 --json",
    "compare @/run @/run",
    "compare @/run @/run --json",
    "compare-outputs builtin-thermal builtin-thermal --frames 1",
    "compare-outputs builtin-thermal builtin-thermal --frames 1 --json",
    "report @/run",
    "report @/run --json",
    "report @/run --format md -o -",
    "report @/run --format csv -o -",
    "report @/run --format html -o -",
    "report @/run --format csv",
    "runtime list",
    "runtime list --json",
    "doctor",
    "doctor --json",
    "doctor -o @/env.txt",
    "completions bash",
    "man",
];

fn command(place: &Place, words: &str) -> Command {
    let mut command = prony();
    command.args(words.replace('@', place.dir.path().to_str().unwrap()).split(' '));
    command.env("PRONY_HOME", place.path("home")).current_dir(place.dir.path());
    command
}

#[test]
fn json_to_a_full_disk_was_a_success() {
    let place = prepared();
    for words in VERBS {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = command(&place, words).stdout(full).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert!(said.contains("cannot write to stdout: No space left"), "{words}: {said}");
    }
}

#[test]
fn a_stdout_that_cannot_be_written_to_was_a_success() {
    let place = prepared();
    for words in
        ["inspect builtin-thermal --no-backends", "report @/run --json", "completions bash", "cache list --json"]
    {
        // Open for reading only: `prony … 1</dev/null`.
        let output = command(&place, words).stdout(File::open("/dev/null").unwrap()).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert!(said.contains("cannot write to stdout: Bad file descriptor"), "{words}: {said}");
    }
    // A reader that stops reading is none.
    for words in ["--help", "report @/run --json"] {
        let mut child = command(&place, words).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{words}");
    }
}

#[test]
fn a_page_that_was_not_written_was_named() {
    for (taken, named) in [("report.html", false), ("report.md", true), ("latency_comparative_320.csv", true)] {
        let place = Place::new();
        let running =
            Running::start(place, &["builtin-thermal", "--duration", "1", "--warmup", "0.1", "--frames", "8"]);
        let runs = running.place.runs();
        // A folder where the file should go.
        let run = until("the run folder", || fs::read_dir(&runs).ok()?.next()?.ok().map(|entry| entry.path()));
        fs::create_dir(run.join(taken)).unwrap();
        let (output, place) = running.finish();
        expect_code(&output, 1);
        let page = place.run().join("report.html");
        let told = stdout(&output).contains(&format!("report: {}", page.display()));
        assert_eq!((told, page.is_file()), (named, named), "{taken}: {}", stdout(&output));
        assert!(stderr(&output).contains(taken), "{}", stderr(&output));
        assert!(stdout(&output).contains("builtin-thermal:rten:fp32"), "the table is printed all the same");
        // What could be written was.
        for other in
            ["report.md", "report.html", "latency_comparative_320.csv"].into_iter().filter(|name| *name != taken)
        {
            assert!(place.run().join(other).is_file(), "{other} is missing because of {taken}");
        }
    }
}

#[test]
fn one_table_of_three_sizes_kept_the_last() {
    let place = Place::new();
    expect_code(&place.bench(&[&["builtin-thermal"][..], &QUICK].concat()).output().unwrap(), 0);
    let run = place.run();
    let mut record = place.record();
    for size in [416, 640] {
        let (mut spec, mut cell) = (record.plan.cells[0].clone(), record.cells[0].clone());
        spec.id = format!("{}-{size}", spec.id);
        cell.id.clone_from(&spec.id);
        cell.slug = prony_types::slug_of(&cell.id);
        spec.imgsz = Some([size, size]);
        record.plan.cells.push(spec);
        record.cells.push(cell);
    }
    fs::write(run.join("report.json"), serde_json::to_vec(&record).unwrap()).unwrap();
    let sizes =
        |table: &str| -> Vec<String> { table.lines().map(|line| line.split(',').nth(1).unwrap().to_owned()).collect() };
    let file = place.path("all.csv");
    let report = |out: &str| prony().args(["report", "--format", "csv"]).arg(&run).args(["-o", out]).output().unwrap();
    expect_code(&report(file.to_str().unwrap()), 0);
    assert_eq!(sizes(&fs::read_to_string(&file).unwrap()), ["imgsz", "320", "416", "640"]);
    let printed = report("-");
    expect_code(&printed, 0);
    assert_eq!(sizes(&stdout(&printed)), ["imgsz", "320", "416", "640"], "one header on stdout too");
    // Without a name there is a table per size, as a run writes them.
    expect_code(&prony().args(["report", "--format", "csv"]).arg(&run).output().unwrap(), 0);
    for size in ["320", "416", "640"] {
        let table = fs::read_to_string(run.join(format!("latency_comparative_{size}.csv"))).unwrap();
        assert_eq!(sizes(&table), ["imgsz", size]);
    }
}
