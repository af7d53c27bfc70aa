//! A child process that does one job, seen from the parent.

use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::Duration;

use prony_bench::{RingReader, Shared};
use prony_runtimes::policy::search_paths;
use prony_types::{
    BackendName, Command as Order, Event, Fault, Job, MeasureJob, Precision, PrepareJob, ReferenceJob, RewriteJob,
    Sample, Telemetry,
};
use prony_work::{Death, Supervised, WORKER_VERB};

/// How often the parent looks at the ring and the clock while a worker is timed. It costs a worker's core a few
/// microseconds each time.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// How long a worker may take to end after its last word.
const LAST_RITES: Duration = Duration::from_secs(5);

/// What reaches the parent's one loop.
#[derive(Debug)]
pub(crate) enum Message {
    /// A worker said something.
    Event { worker: usize, event: Box<Event> },
    /// A worker's event pipe carried something else.
    Garbage { worker: usize, line: String },
    /// A worker's event pipe is closed: it has ended.
    Closed { worker: usize },
    /// The sensors were read.
    Telemetry(Box<Telemetry>),
}

/// A running worker.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Supervised,
    orders: Option<ChildStdin>,
    ring: RingReader,
}

impl Worker {
    /// Starts a child of this very binary with its job. Its stdout and stderr beside events go to `log`.
    pub(crate) fn spawn(index: usize, job: Job, log: File, messages: Sender<Message>) -> anyhow::Result<Worker> {
        let shared = Shared::create()?;
        let job = match job {
            Job::Measure(job) => {
                Job::Measure(MeasureJob { ring_fd: shared.raw_fd(), fault: injected_fault(&job.cell.id), ..job })
            }
            Job::Reference(job) => Job::Reference(ReferenceJob { ring_fd: shared.raw_fd(), ..job }),
            Job::Prepare(job) => Job::Prepare(PrepareJob { ring_fd: shared.raw_fd(), ..job }),
            Job::Rewrite(job) => Job::Rewrite(RewriteJob { ring_fd: shared.raw_fd(), ..job }),
            job @ (Job::Discover(_) | Job::Inspect(_)) => job,
        };
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(WORKER_VERB)
            .envs(search_paths(search(&job)))
            .envs(without_tf32(&job))
            .envs(lazily(&job))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        // Whatever goes wrong below, it ends with this value.
        let mut child = Supervised::spawn(&mut command)?;
        shared.seal()?;
        let ring = shared.reader()?;
        if let Some(stdout) = child.take_stdout() {
            std::thread::spawn(move || listen(index, BufReader::new(stdout), &messages));
        }
        let orders = child.take_stdin();
        volunteer(child.pid(), &job);
        let mut worker = Worker { child, orders, ring };
        worker.write(&job)?;
        Ok(worker)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Gives an order. A worker that has died takes none; that is found out by its closed pipe.
    pub(crate) fn order(&mut self, order: &Order) {
        if let Err(error) = self.write(order) {
            tracing::debug!("worker {} takes no orders: {error}", self.child.pid());
        }
    }

    fn write(&mut self, message: &impl serde::Serialize) -> io::Result<()> {
        let Some(orders) = &mut self.orders else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        orders.write_all(&line)
    }

    /// Takes what is new in the ring.
    pub(crate) fn drain(&mut self, into: &mut Vec<Sample>) {
        self.ring.drain(into);
    }

    /// Samples that were overwritten before they could be read.
    pub(crate) fn lost(&self) -> u64 {
        self.ring.lost()
    }

    /// Signs of life beside samples and events.
    pub(crate) fn beats(&self) -> u64 {
        self.ring.beats()
    }

    /// Asks it to end the loop it is in.
    pub(crate) fn ask_to_stop(&self) {
        self.ring.ask_to_stop();
    }

    /// Ends it and whatever it started, now.
    pub(crate) fn kill(&mut self) {
        self.child.kill();
    }

    /// Waits for the end of a worker that has said its last word. One that hangs in a library's destructor is helped.
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.orders = None;
        if let Some(status) = self.child.ends_within(LAST_RITES)? {
            return Ok(status);
        }
        tracing::warn!("worker {} does not end by itself; killed", self.child.pid());
        self.child.end()
    }
}

/// Folders that the libraries of a job need.
fn search(job: &Job) -> &[PathBuf] {
    let runtime = match job {
        Job::Measure(job) => job.cell.runtime.as_ref(),
        Job::Reference(job) => job.cell.runtime.as_ref(),
        Job::Prepare(job) => Some(&job.runtime),
        Job::Rewrite(job) => job.runtime.as_ref(),
        Job::Inspect(job) => Some(&job.runtime),
        Job::Discover(_) => None,
    };
    runtime.map(|runtime| runtime.search.as_slice()).unwrap_or_default()
}

/// fp32 is fp32: where it was not asked for, the driver is told to keep TF32 out of every library's products.
fn without_tf32(job: &Job) -> Option<(&'static str, &'static str)> {
    let Job::Measure(job) = job else { return None };
    // An engine has its own say on TF32, from when it was built.
    let decides = matches!(job.cell.backend, BackendName::OrtCuda | BackendName::OrtTensorrt);
    (decides && job.cell.precision != Precision::Tf32).then_some(prony_backend::NO_TF32)
}

/// With little memory, kernels are loaded when they are needed.
fn lazily(job: &Job) -> Option<(&'static str, &'static str)> {
    matches!(job, Job::Prepare(job) if job.engine.low_memory).then_some(("CUDA_MODULE_LOADING", "LAZY"))
}

/// If memory runs out, the kernel ends what can be done again: first what helps a cell, then a cell, and this process last,
/// because it has the results. Where that cannot be said, the kernel chooses by size.
fn volunteer(pid: u32, job: &Job) {
    let score = if matches!(job, Job::Measure(_)) { "500" } else { "800" };
    if let Err(error) = std::fs::write(format!("/proc/{pid}/oom_score_adj"), score) {
        tracing::debug!("oom_score_adj of worker {pid}: {error}");
    }
}

fn listen(worker: usize, pipe: impl io::BufRead, messages: &Sender<Message>) {
    for line in pipe.lines() {
        let Ok(line) = line else { break };
        let message = match serde_json::from_str::<Event>(&line) {
            Ok(event) => Message::Event { worker, event: Box::new(event) },
            Err(_) => Message::Garbage { worker, line },
        };
        if messages.send(message).is_err() {
            return;
        }
    }
    let _ = messages.send(Message::Closed { worker });
}

/// How a process ended, and what that may mean.
pub(crate) fn cause_of_death(status: ExitStatus) -> (String, &'static str) {
    let death = Death::from(status);
    let hint = match death {
        Death::Signal(_) if death.signal_name() == Some("SIGKILL") => {
            "; if nobody killed it, the kernel ran out of memory (see dmesg)"
        }
        Death::Signal(_) if death.is_crash() => "; a library crashed, see the cell's worker.log",
        Death::Status(_) => "; see the cell's worker.log",
        Death::Signal(_) | Death::Unknown => "",
    };
    (death.to_string(), hint)
}

/// A fault that a test asks for through the environment, as `{"cell": "…", "fault": …}`. Debug builds only, so that
/// no user's binary can be told to lie.
fn injected_fault(cell: &str) -> Option<Fault> {
    if !cfg!(debug_assertions) {
        return None;
    }
    #[derive(serde::Deserialize)]
    struct Injection {
        cell: String,
        fault: Fault,
    }
    let injection: Injection = serde_json::from_str(&std::env::var("PRONY_TEST_FAULT").ok()?).ok()?;
    (injection.cell == cell).then_some(injection.fault)
}
