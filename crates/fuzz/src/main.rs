//! `prony-fuzz`: readers for a while, on any machine. Several run beside each other as processes of their own.
#![expect(clippy::disallowed_macros, reason = "a tool for developers, whose output nobody cuts short")]

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use prony_fuzz::drive::{Drive, Fault, PATIENCE, load, save};
use prony_fuzz::memory::Counting;
use prony_fuzz::reader::Reader;

#[global_allocator]
static MEMORY: Counting = Counting;

const HELP: &str = "\
Feeds damaged files to Prony's readers, and says what they do not stand.

Usage: prony-fuzz READER... [--seconds N] [--seed S] [--corpus DIR] [--jobs N]

READER         pickle, zip, checkpoint, onnx, npy, npz, record, events, samples, plan, data-yaml, coco, sidecar, wheel; or all
--seconds N    How long for each [default: 60]
--jobs N       How many at a time, where there are several; each has a process of its own [default: one per CPU]
--seed S       Where the damage starts [default: 1]
--corpus DIR   Inputs that got somewhere new are kept in DIR/READER and taken up by the next run; what the reader does not
               stand is put into DIR/READER-findings [default: fuzz]

The input under way is in DIR/READER-current: where the process died of it, that is the finding.

Exit codes: 0 nothing was found; 1 something was; 2 wrong usage.

Example:
  cargo build --profile fuzz -p prony-fuzz
  target/fuzz/prony-fuzz all --seconds 600
";
/// How long an input may take before the process is ended over it.
const LIMIT: Duration = Duration::from_secs(20);
/// How often there is a sign of life.
const TELL: Duration = Duration::from_secs(60);
/// Findings of one kind that are kept.
const ALIKE: usize = 3;

struct Spec {
    readers: Vec<Reader>,
    jobs: usize,
    seconds: u64,
    seed: u64,
    folder: PathBuf,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let run = |spec: Spec| match spec.readers[..] {
        [reader] => run(&spec, reader),
        _ => run_all(&spec),
    };
    match parse(&words).and_then(run) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}; see `prony-fuzz --help`");
            ExitCode::from(2)
        }
    }
}

fn parse(words: &[String]) -> Result<Spec, String> {
    let flags = words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len());
    let (names, flags) = words.split_at(flags);
    let jobs = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut spec = Spec { readers: Vec::new(), jobs, seconds: 60, seed: 1, folder: "fuzz".into() };
    for name in names {
        let known: Vec<Reader> =
            Reader::ALL.into_iter().filter(|reader| name == "all" || reader.name() == name).collect();
        if known.is_empty() {
            return Err(format!("`{name}` is no reader"));
        }
        spec.readers.extend(known);
    }
    if spec.readers.is_empty() {
        return Err("name a reader".into());
    }
    for pair in flags.chunks(2) {
        let [flag, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
        let number = || value.parse::<u64>().map_err(|_| format!("{flag} {value}: not a number"));
        match flag.as_str() {
            "--seconds" => spec.seconds = number()?,
            "--seed" => spec.seed = number()?,
            "--jobs" => spec.jobs = number()?.max(1) as usize,
            "--corpus" => spec.folder = value.into(),
            _ => return Err(format!("`{flag}` is no option")),
        }
    }
    Ok(spec)
}

/// All readers, each in a process of its own so that one that ends it ends no other; how many did not stand something.
fn run_all(spec: &Spec) -> Result<usize, String> {
    let binary = std::env::current_exe().map_err(|error| error.to_string())?;
    let next = AtomicUsize::new(0);
    let broken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..spec.jobs.min(spec.readers.len()) {
            scope.spawn(|| {
                while let Some(reader) = spec.readers.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut child = Command::new(&binary);
                    child.arg(reader.name()).arg("--seconds").arg(spec.seconds.to_string());
                    child.arg("--seed").arg(spec.seed.to_string()).arg("--corpus").arg(&spec.folder);
                    let status = child.status();
                    if !status.as_ref().is_ok_and(|status| status.success()) {
                        println!("{}: {}", reader.name(), status.map_or_else(|e| e.to_string(), |s| s.to_string()));
                        broken.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    Ok(broken.into_inner())
}

/// Cases until the time is up; how many findings there are.
fn run(spec: &Spec, reader: Reader) -> Result<usize, String> {
    let name = reader.name();
    let place = |ending: &str| spec.folder.join(format!("{name}{ending}"));
    let (kept, found, current) = (place(""), place("-findings"), place("-current"));
    let unwritable = |e: std::io::Error| format!("{}: {e}", spec.folder.display());
    fs::create_dir_all(&spec.folder).map_err(unwritable)?;
    // Panics are findings, not noise.
    std::panic::set_hook(Box::new(|_| {}));
    let watched = Arc::new(AtomicU64::new(0));
    watch(name, Arc::clone(&watched), current.clone());
    let mut drive = Drive::new(reader, spec.seed, load(&kept));
    let under_way = File::create(&current).map_err(unwritable)?;
    let (begun, mut told, mut findings) = (Instant::now(), Instant::now(), Vec::new());
    let end = Duration::from_secs(spec.seconds);
    while begun.elapsed() < end {
        let input = drive.next_input();
        // Not made anew each time: some file systems write a file that was emptied to the disk at once.
        under_way.write_all_at(&input, 0).and_then(|()| under_way.set_len(input.len() as u64)).map_err(unwritable)?;
        watched.store(drive.cases + 1, Ordering::Relaxed);
        let (new, fault) = drive.run(&input);
        if new {
            save(&kept, &input).map_err(unwritable)?;
        }
        if let Some(fault) = fault {
            tell(name, &fault, &input, &found, &mut findings).map_err(unwritable)?;
        }
        if told.elapsed() > TELL {
            told = Instant::now();
            progress(name, &drive, begun, findings.len());
        }
    }
    progress(name, &drive, begun, findings.len());
    let _ = fs::remove_file(&current);
    Ok(findings.len())
}

fn progress(name: &str, drive: &Drive, begun: Instant, findings: usize) {
    let seconds = begun.elapsed().as_secs_f64();
    let (cases, rate) = (drive.cases, drive.cases as f64 / seconds);
    let (kept, reached) = (drive.corpus().len(), drive.reached());
    println!(
        "{name}: {cases} cases in {seconds:.0} s, {rate:.0} a second; {reached} places reached, {kept} inputs kept, {findings} findings"
    );
}

/// Says what was found and keeps the input; of one kind a few will do.
fn tell(name: &str, fault: &Fault, input: &[u8], folder: &Path, findings: &mut Vec<String>) -> std::io::Result<()> {
    let kind = match fault {
        Fault::Panicked(words) => format!("panicked: {words}"),
        Fault::Slow(_) => format!("took more than {} s", PATIENCE.as_secs()),
        Fault::Greedy(_) => "held too much memory".to_owned(),
    };
    findings.push(kind.clone());
    if findings.iter().filter(|earlier| **earlier == kind).count() <= ALIKE {
        let path = save(folder, input)?;
        println!("{name}: {kind} ({fault:?}): {} bytes in {}", input.len(), path.display());
    }
    Ok(())
}

/// Ends the process over an input that does not come to an end.
fn watch(name: &'static str, cases: Arc<AtomicU64>, current: PathBuf) {
    thread::spawn(move || {
        let mut last = (0, Instant::now());
        loop {
            thread::sleep(Duration::from_millis(500));
            let now = cases.load(Ordering::Relaxed);
            if now != last.0 {
                last = (now, Instant::now());
            } else if now > 0 && last.1.elapsed() > LIMIT {
                println!("{name}: an input takes more than {} s: {}", LIMIT.as_secs(), current.display());
                std::process::exit(1);
            }
        }
    });
}
