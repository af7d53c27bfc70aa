//! The `inference` stage of `ort-cpu` against a bare loop around the same library.
//!
//! Two child processes load the same model with the same library and the same number of threads. The parent has them time
//! blocks of calls in the order A B B A, so that what happens to the machine happens to both. `bench/pipeline_vs_ultralytics`
//! builds and reads it.
//!
//! usage: ort_overhead LIBRARY MODEL.onnx THREADS ROUNDS CALLS
#![expect(clippy::disallowed_macros, reason = "a tool for developers, whose output nobody cuts short")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should say where it stopped")]

use std::env;
use std::io::{BufRead as _, BufReader, Write as _, stdin, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use prony_backend::{ModelFile, SessionSpec, SlotInput, backend};
use prony_types::{BackendName, ModelSource, RuntimeSpec};

/// Threads of the library that has just worked spin for a while; the other side waits until they sleep.
const PAUSE: Duration = Duration::from_millis(20);

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--side", side, library, model, threads] => serve(side, library, model, threads.parse().unwrap()),
        [library, model, threads, rounds, calls] => {
            compare([library, model, threads], rounds.parse().unwrap(), calls.parse().unwrap());
        }
        _ => {
            eprintln!("usage: ort_overhead LIBRARY MODEL.onnx THREADS ROUNDS CALLS");
            std::process::exit(2);
        }
    }
}

/// One side, seen from the parent.
struct Side {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Side {
    fn start(side: &str, setting: [&str; 3]) -> Side {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--side", side]).args(setting).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut side = Side { child, orders, answers };
        side.line();
        side
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.answers.read_line(&mut line).unwrap() > 0, "a side has died");
        line
    }

    /// Nanoseconds of so many calls.
    fn block(&mut self, calls: usize) -> Vec<u64> {
        sleep(PAUSE);
        writeln!(self.orders, "{calls}").unwrap();
        self.line().split_whitespace().map(|n| n.parse().unwrap()).collect()
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn compare(setting: [&str; 3], rounds: usize, calls: usize) {
    let (mut prony, mut bare) = (Side::start("prony", setting), Side::start("bare", setting));
    for side in [&mut prony, &mut bare] {
        side.block(calls);
    }
    let mut out = stdout().lock();
    for _ in 0..rounds {
        for name in ["prony", "bare", "bare", "prony"] {
            let times = if name == "prony" { prony.block(calls) } else { bare.block(calls) };
            let times: Vec<String> = times.iter().map(u64::to_string).collect();
            writeln!(out, "{name} {}", times.join(" ")).unwrap();
        }
    }
}

/// Does blocks of calls until the parent is gone.
fn serve(side: &str, library: &str, model: &str, threads: u32) {
    let model = ModelFile::open(&ModelSource::File(model.into())).unwrap();
    let mut call: Box<dyn FnMut() -> u64> = match side {
        "prony" => prony(library, &model, threads),
        _ => bare(library, &model, threads),
    };
    call();
    println!("ready");
    for line in stdin().lock().lines() {
        let calls: usize = line.unwrap().trim().parse().unwrap();
        let times: Vec<String> = (0..calls).map(|_| call().to_string()).collect();
        println!("{}", times.join(" "));
    }
}

/// The backend as a cell uses it: what it reports as its inference time.
fn prony(library: &str, model: &ModelFile, threads: u32) -> Box<dyn FnMut() -> u64> {
    let runtime = RuntimeSpec::new(library, "");
    let spec = SessionSpec { threads, slots: 2, runtime: Some(runtime), ..SessionSpec::new(model) };
    let mut session = backend(BackendName::OrtCpu).open(&spec).unwrap();
    if let SlotInput::F32(values) = session.input(0, 0) {
        values.fill(0.5);
    }
    Box::new(move || session.run(0).unwrap().inference_ns)
}

/// The library with nothing around it.
fn bare(library: &str, model: &ModelFile, threads: u32) -> Box<dyn FnMut() -> u64> {
    let environment = ort::init_from(library).unwrap().with_telemetry(false).build().unwrap();
    let mut builder = ort::session::Session::builder(&environment)
        .unwrap()
        .with_intra_threads(threads as usize)
        .unwrap()
        .with_inter_threads(1)
        .unwrap();
    let mut session = builder.commit_from_file(model.path.as_ref().unwrap()).unwrap();
    let shape: Vec<usize> = model.info.inputs[0]
        .dims
        .iter()
        .map(|dim| match dim {
            prony_types::Dim::Fixed(n) => *n as usize,
            prony_types::Dim::Named(_) => 1,
        })
        .collect();
    let elements = shape.iter().product();
    let input = ort::value::Tensor::from_array((shape, vec![0.5f32; elements])).unwrap();
    Box::new(move || {
        let begun = Instant::now();
        let outputs = session.run(ort::inputs![&input]).unwrap();
        let elapsed = begun.elapsed();
        drop(outputs);
        u64::try_from(elapsed.as_nanos()).unwrap()
    })
}
