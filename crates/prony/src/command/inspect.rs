//! `prony inspect`: what a model file is, and what TensorRT makes of an engine.

mod checkpoint;
mod text;

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{bail, ensure};
use prony_backend::precision_of;
use prony_model::{EngineFile, ModelFile};
use prony_types::{
    BackendName, EngineRecord, EventKind, ExitCode, InspectJob, Job, ModelSource, ModelSpec, WORKER_PROTOCOL,
};
use serde_json::{Value, json};

use crate::args::InspectArgs;
use crate::command::bench::wait_for_machine;
use crate::command::with_sign_of_life;
use crate::discover::{choose, discover_for, question};
use crate::model::locate;
use crate::run::Interrupt;
use crate::runtime::home;

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
}

pub(crate) fn inspect(args: &InspectArgs) -> anyhow::Result<ExitCode> {
    let source = match locate(&args.model)?.source {
        ModelSource::File(path) => ModelSource::File(std::path::absolute(path)?),
        builtin => builtin,
    };
    if let ModelSource::File(path) = &source
        && checkpoint::is_checkpoint(path)
    {
        refuse_flags_of_engines(args)?;
        print(&checkpoint::describe(&args.model, path, args.json)?);
        return Ok(ExitCode::Ok);
    }
    let mut file = with_sign_of_life("reading the model", || ModelFile::open(&source))?;
    let bytes = file.bytes.len() as u64;
    file.forget_bytes_on_disk();
    let opened = match file.engine {
        Some(_) => {
            let interrupt = Interrupt::listen()?;
            // Its layers are timed: not beside a timed cell, and no cell beside it.
            let Some(_lock) = wait_for_machine(&interrupt, false)? else { return Ok(ExitCode::Interrupted) };
            let opened = with_sign_of_life("opening the engine", || open(args, source, &file.sha256, &interrupt))?;
            match opened {
                Some(opened) => Some(opened),
                None => return Ok(ExitCode::Interrupted),
            }
        }
        None => {
            refuse_flags_of_engines(args)?;
            None
        }
    };
    let findings = Findings { name: &args.model, file, bytes, opened };
    let text = match args.json {
        true => serde_json::to_string_pretty(&findings.json())? + "\n",
        false => findings.text(),
    };
    print(&text);
    Ok(ExitCode::Ok)
}

fn print(text: &str) {
    // A reader that has seen enough is no error.
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

fn refuse_flags_of_engines(args: &InspectArgs) -> anyhow::Result<()> {
    let given = [("--plugin", !args.plugin.is_empty()), ("--force", args.force)];
    for (flag, given) in given {
        ensure!(!given, "{flag} is for engines, and {} is none", args.model);
    }
    Ok(())
}

/// Has a child open the engine with TensorRT. That it cannot is a finding and no error. `None` where the user gave up.
fn open(
    args: &InspectArgs,
    source: ModelSource,
    sha256: &str,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Result<EngineRecord, String>>> {
    let home = match &args.home {
        Some(home) => home::folder(Some(home))?,
        None => home::folder(None).unwrap_or_default(),
    };
    let explicit: Vec<_> = args.library.iter().map(|library| (library.name, library.path.clone())).collect();
    let found = discover_for(BackendName::Tensorrt, &home, &explicit)?;
    let runtime = match choose(&found, BackendName::Tensorrt) {
        Ok(Some(runtime)) => runtime,
        Ok(None) => return Ok(Some(Err("tensorrt: no library".to_owned()))),
        Err(reason) => return Ok(Some(Err(reason))),
    };
    let plugins = args.plugin.iter().map(std::path::absolute).collect::<io::Result<Vec<_>>>()?;
    let search = runtime.search.clone();
    let job = Job::Inspect(InspectJob {
        protocol: WORKER_PROTOCOL,
        model: ModelSpec::new(args.model.clone(), source, sha256),
        runtime,
        plugins,
        device: args.device,
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
            "path": self.path(),
            "bytes": self.bytes,
            "sha256": self.file.sha256,
            "precision": self.opened.is_none().then(|| precision_of(info)),
            "info": info,
            "engine": self.file.engine.as_ref().map(engine_json),
            "opened": opened,
            "not_opened": not_opened,
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
