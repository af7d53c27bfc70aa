//! `prony inspect`: what a model file is, what it costs and what could run it here, and what TensorRT makes of an engine.

mod backends;
mod checkpoint;
mod graph;
mod sheet;
mod text;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{bail, ensure};
use prony_backend::precision_of;
use prony_model::{EngineFile, ModelFile};
use prony_types::os_text::path_to_text;
use prony_types::{
    BackendName, EngineRecord, EventKind, ExitCode, InspectJob, Job, ModelSource, ModelSpec, RuntimeSpec,
    WORKER_PROTOCOL,
};
use serde_json::{Value, json};

use self::backends::Runners;
use self::graph::Graph;
use crate::args::InspectArgs;
use crate::command::turn::wait_for_machine;
use crate::command::{tell_trusted, with_sign_of_life};
use crate::error::{CliError, OrCliError as _};
use crate::output::{View, print};
use prony_plan::named::{Opening, is_checkpoint, locate};
use prony_runtimes::home;
use prony_runtimes::policy::check_plugins;
use prony_runtimes::{Found, choose, discover, discover_for, question};
use prony_work::Interrupt;

/// How long an engine may take to be opened and its layers to be timed. Gigabytes from a slow card take minutes.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often it is looked whether the user has given up.
const TICK: Duration = Duration::from_millis(50);

/// What is known of a model.
struct Findings<'a> {
    name: &'a str,
    file: ModelFile,
    /// Size of the file.
    bytes: u64,
    /// What TensorRT says of an engine, or why it says nothing; `None` for any other model.
    opened: Option<Result<EngineRecord, String>>,
    /// What a graph is made of; `None` for an engine.
    graph: Option<Graph>,
    /// What could run a graph here; `None` where it was not asked for.
    runners: Option<Runners>,
    /// Whether every node is listed.
    layers: bool,
}

pub(crate) fn inspect(args: &InspectArgs) -> Result<ExitCode, CliError> {
    let source = match locate(&args.model).usage()?.source {
        ModelSource::File(path) => ModelSource::File(std::path::absolute(path).usage()?),
        builtin => builtin,
    };
    if let ModelSource::File(path) = &source
        && is_checkpoint(path)
    {
        print(of_checkpoint(args, path).usage()?)?;
        return Ok(ExitCode::Ok);
    }
    let findings = match with_sign_of_life("looking at the model", || look(args, &source)).usage()? {
        Looked::Graph(findings) => *findings,
        Looked::Engine(mut file) => {
            refuse_flags_of_graphs(args).usage()?;
            let bytes = file.bytes.len() as u64;
            file.forget_bytes_on_disk();
            check_plugins(&args.plugin).usage()?;
            let interrupt = Interrupt::listen().failed()?;
            let opened = match with_sign_of_life("looking for TensorRT", || tensorrt(args)).usage()? {
                Err(missing) => Some(Err(missing)),
                Ok(runtime) => {
                    // Its layers are timed: not beside a timed cell, and no cell beside it.
                    let Some(_lock) = wait_for_machine(&interrupt, args.wait)? else {
                        return Err(CliError::Interrupted(None));
                    };
                    let ask = || open(args, source, &file.sha256, runtime, &interrupt);
                    with_sign_of_life("opening the engine", ask).usage()?
                }
            };
            if opened.is_none() {
                return Err(CliError::Interrupted(None));
            }
            Findings { name: &args.model, file: *file, bytes, opened, graph: None, runners: None, layers: false }
        }
    };
    let text = match args.print.json {
        true => serde_json::to_string_pretty(&findings.json()).failed()? + "\n",
        false => findings.text(),
    };
    print(text)?;
    Ok(ExitCode::Ok)
}

/// What a checkpoint is, and what its graph is where it can be made into one.
fn of_checkpoint(args: &InspectArgs, path: &Path) -> anyhow::Result<String> {
    refuse_flags_of_engines(args)?;
    let described = checkpoint::read(&args.model, path)?;
    let graph = match described.is_supported() {
        true => Some(as_graph(args)),
        false => {
            refuse_flags_of_graphs(args)?;
            None
        }
    };
    if args.print.json {
        let mut all = described.json();
        match &graph {
            Some(Ok(findings)) => {
                // The network's own, so that they are those of its ONNX file.
                all["parameters"] = json!(findings.file.info.parameters);
                all["flops"] = json!(findings.graph.as_ref().map(|graph| graph.anatomy.cost.flops()));
                all["onnx"] = findings.json();
            }
            Some(Err(reason)) => all["not_exported"] = json!(format!("{reason:#}")),
            None => {}
        }
        return Ok(serde_json::to_string_pretty(&all)? + "\n");
    }
    Ok(match graph {
        Some(Ok(findings)) => format!("{}\n{}", described.text(), findings.text()),
        Some(Err(reason)) => format!("{}  not exported  {reason:#}\n", described.text()),
        None => described.text(),
    })
}

/// The ONNX file of a checkpoint, looked at.
fn as_graph(args: &InspectArgs) -> anyhow::Result<Findings<'_>> {
    let mut how = Opening::in_home(args.home.as_deref(), &View);
    how.export.imgsz = args.imgsz.map(|size| size.0);
    how.export.batch = args.batch.unwrap_or(1);
    let opened = with_sign_of_life("writing the graph", || prony_plan::named::open(&args.model, &how))?;
    match with_sign_of_life("looking at the model", || look(args, &opened.spec.source))? {
        Looked::Graph(findings) => Ok(*findings),
        Looked::Engine(_) => bail!("{} was made into an engine", args.model),
    }
}

fn refuse_flags_of_engines(args: &InspectArgs) -> anyhow::Result<()> {
    let given = [
        ("--plugin", !args.plugin.is_empty()),
        ("--force", args.force),
        ("--wait", args.wait.wait.is_some()),
        ("--no-wait", args.wait.no_wait),
    ];
    for (flag, given) in given {
        ensure!(!given, "{flag} is for engines, and {} is none", args.model);
    }
    Ok(())
}

fn refuse_flags_of_graphs(args: &InspectArgs) -> anyhow::Result<()> {
    let given = [
        ("--layers", args.layers),
        ("--imgsz", args.imgsz.is_some()),
        ("--batch", args.batch.is_some()),
        ("--no-backends", args.no_backends),
    ];
    for (flag, given) in given {
        ensure!(!given, "{flag} is for ONNX files, and {} is none", args.model);
    }
    Ok(())
}

/// A model that was read.
enum Looked<'a> {
    Graph(Box<Findings<'a>>),
    Engine(Box<ModelFile>),
}

/// Reads a model. Where it is a graph, what could run it is looked for meanwhile: that takes as long as the slowest library.
fn look<'a>(args: &'a InspectArgs, source: &ModelSource) -> anyhow::Result<Looked<'a>> {
    let engine = source.is_engine();
    std::thread::scope(|scope| {
        let found = (!args.no_backends && !engine).then(|| scope.spawn(|| search(args)));
        let mut file = ModelFile::open(source)?;
        if file.engine.is_some() {
            return Ok(Looked::Engine(Box::new(file)));
        }
        refuse_flags_of_engines(args)?;
        let graph = Graph::of(&file, args)?;
        let bytes = file.bytes.len() as u64;
        file.forget_bytes_on_disk();
        let runners = match found.map(|found| found.join()) {
            None => None,
            Some(Ok(found)) => Some(Runners::of(&found?, &file.info, &graph, args.device.0)),
            Some(Err(_)) => bail!("the thread that looks for libraries died"),
        };
        let layers = args.layers;
        let findings = Findings { name: &args.model, file, bytes, opened: None, graph: Some(graph), runners, layers };
        Ok(Looked::Graph(Box::new(findings)))
    })
}

/// What is on this machine to run models with.
fn search(args: &InspectArgs) -> anyhow::Result<Found> {
    let explicit: Vec<_> = args.library.iter().map(|library| (library.name, library.path.clone())).collect();
    let found = discover(&home_of(args)?, &explicit)?;
    tell_trusted(&found);
    Ok(found)
}

fn home_of(args: &InspectArgs) -> anyhow::Result<PathBuf> {
    match &args.home {
        Some(home) => home::folder(Some(home)),
        // Without a home there is nothing of ours to find; the rest of the machine is still there.
        None => Ok(home::folder(None).unwrap_or_default()),
    }
}

/// TensorRT as it is here. That there is none is a finding and no error.
fn tensorrt(args: &InspectArgs) -> anyhow::Result<Result<RuntimeSpec, String>> {
    let home = home_of(args)?;
    let explicit: Vec<_> = args.library.iter().map(|library| (library.name, library.path.clone())).collect();
    let found = discover_for(BackendName::Tensorrt, &home, &explicit)?;
    tell_trusted(&found);
    let chosen = choose(&found, BackendName::Tensorrt);
    Ok(chosen.and_then(|runtime| runtime.ok_or_else(|| "tensorrt: no library".to_owned())))
}

/// Has a child open the engine with TensorRT. That it cannot is a finding and no error. `None` where the user gave up.
fn open(
    args: &InspectArgs,
    source: ModelSource,
    sha256: &str,
    runtime: RuntimeSpec,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Result<EngineRecord, String>>> {
    let plugins = args.plugin.iter().map(std::path::absolute).collect::<io::Result<Vec<_>>>()?;
    let search = runtime.search.clone();
    let job = Job::Inspect(InspectJob {
        protocol: WORKER_PROTOCOL,
        model: ModelSpec::new(args.model.clone(), source, sha256),
        runtime,
        plugins,
        device: args.device.0,
        force: args.force,
    });
    let answer = |event| match event {
        EventKind::Inspected(record) => Some(Ok(*record)),
        EventKind::Failed { message, .. } => Some(Err(message)),
        _ => None,
    };
    let binary = std::env::current_exe()?;
    let (sender, answers) = channel();
    // The child dies with this process, so whoever gives up need not wait for its thread.
    std::thread::spawn(move || drop(sender.send(question(&binary, &job, &search, PATIENCE, answer))));
    loop {
        match answers.recv_timeout(TICK) {
            Ok(answer) => return Ok(Some(answer)),
            Err(RecvTimeoutError::Disconnected) => bail!("the thread that asks TensorRT died"),
            Err(RecvTimeoutError::Timeout) if interrupt.asked() => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

impl Findings<'_> {
    fn path(&self) -> Option<&Path> {
        self.file.path.as_deref()
    }

    fn json(&self) -> Value {
        let info = &self.file.info;
        let (opened, not_opened) = match &self.opened {
            Some(Ok(record)) => (Some(record), None),
            Some(Err(reason)) => (None, Some(reason)),
            None => (None, None),
        };
        json!({
            "model": self.name,
            "format": info.format,
            "path": self.path().map(path_to_text),
            "bytes": self.bytes,
            "sha256": self.file.sha256,
            "precision": self.opened.is_none().then(|| precision_of(info)),
            "info": info,
            "engine": self.file.engine.as_ref().map(engine_json),
            "opened": opened,
            "not_opened": not_opened,
            "graph": self.graph.as_ref().map(|graph| graph.json(self.layers)),
            "backends": self.runners.as_ref().map(Runners::json),
            "peaks": self.runners.as_ref().map(|runners| &runners.peaks),
        })
    }
}

fn engine_json(engine: &EngineFile) -> Value {
    json!({
        "header_bytes": engine.header_bytes,
        "header": engine.header,
        "plan": {
            "bytes": engine.file_bytes - engine.header_bytes as u64,
            "magic": String::from_utf8_lossy(&engine.plan.magic),
            "tensorrt": engine.plan.version.map(|version| version.to_string()),
        },
        "identity": engine.identity(),
        "sidecar": engine.sidecar.as_ref().map(|sidecar| &sidecar.facts),
    })
}
