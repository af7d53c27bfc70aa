//! Leaves the names of host and user and all paths out of what a run writes, so that it can be shown to others. What must not
//! be seen is known by value: what the user gave, what the plan names, and what the machine says about itself.

use std::collections::BTreeMap;
use std::path::Path;

use prony_files::{Folder, Kind};
use prony_store::{Secrets, StoreError};
use prony_types::{Environment, Happened, Plan, RunEvent, RunEventKind, RunRecord};
use serde::Serialize;
use serde_json::Value;

/// Variables whose values are folders of the user's.
const VARIABLES: [&str; 12] = [
    "HOME",
    "PWD",
    "TMPDIR",
    "PRONY_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PIXI_PROJECT_ROOT",
    "LD_LIBRARY_PATH",
    "PATH",
];
/// Variables that say who the user is.
const USERS: [&str; 4] = ["USER", "LOGNAME", "SUDO_USER", "USERNAME"];

/// Knows what must not be seen.
#[derive(Clone, Debug)]
pub struct Redactor {
    secrets: Secrets,
}

impl Redactor {
    /// Everything private about a plan on this machine.
    pub fn new(plan: &Plan, out: &Path, home: Option<&Path>, environment: &Environment) -> Redactor {
        let mut secrets = Secrets::default();
        secrets.add_path(out);
        std::env::current_dir().iter().for_each(|folder| secrets.add_path(folder));
        std::env::current_exe().iter().for_each(|binary| secrets.add_path(binary));
        prony_runtimes::home::folder(home).iter().for_each(|home| secrets.add_path(home));
        std::env::args().skip(1).for_each(|word| secrets.add_argument(&word));
        for value in VARIABLES.iter().filter_map(std::env::var_os) {
            std::env::split_paths(&value).filter(|path| path.is_absolute()).for_each(|path| secrets.add_path(&path));
        }
        prony_store::paths_of(plan).iter().for_each(|path| secrets.add_path(path));
        for runtime in &environment.runtimes {
            runtime.path.iter().chain(&runtime.looked).for_each(|path| secrets.add_path(Path::new(path)));
        }
        environment.python.iter().for_each(|package| secrets.add_path(Path::new(&package.place)));
        environment.hostname.iter().for_each(|host| secrets.add_host(host));
        secrets.add_host(&rustix::system::uname().nodename().to_string_lossy());
        USERS.iter().filter_map(|name| std::env::var(name).ok()).for_each(|user| secrets.add_user(&user));
        account().iter().for_each(|user| secrets.add_user(user));
        Redactor { secrets }
    }

    /// A text without them.
    pub fn text(&self, text: &str) -> String {
        self.secrets.text(text)
    }

    /// A value as JSON without what must not be seen.
    pub fn json(&self, value: &impl Serialize) -> Result<Value, StoreError> {
        let unwritten = |error: serde_json::Error| StoreError::Malformed {
            path: "JSON without names".into(),
            line: None,
            reason: error.to_string(),
        };
        let mut value = serde_json::to_value(value).map_err(unwritten)?;
        self.secrets.json(&mut value);
        Ok(value)
    }

    /// An event of a run with this record. How it began is told by what the record shows of it.
    pub(crate) fn event(&self, event: &Happened, record: &RunRecord) -> Result<Value, StoreError> {
        let began = match event {
            Happened::Run(event) if matches!(event.kind, RunEventKind::Began { .. }) => event,
            _ => return self.json(event),
        };
        let mut shown = record.clone();
        self.record(&mut shown);
        let kind = RunEventKind::Began {
            info: Box::new(shown.run),
            plan: Box::new(shown.plan),
            environment: Box::new(shown.environment),
            fates: BTreeMap::new(),
            earlier: None,
            baseline: None,
        };
        self.json(&RunEvent { t_ns: began.t_ns, kind })
    }

    /// A record.
    pub fn record(&self, record: &mut RunRecord) {
        prony_store::redact(record, &self.secrets);
    }

    /// Rewrites the sidecars of artifacts that are kept in a run folder. Where calibration data lie is no part of their key.
    pub fn artifacts(&self, run: &Folder) -> anyhow::Result<()> {
        for name in run.names()?.iter().filter(|name| name.to_string_lossy().starts_with("artifacts")) {
            let folder = run.sub(name)?;
            for name in folder.names()?.iter().filter(|name| name.to_string_lossy().ends_with(".json")) {
                let sidecar: Value = serde_json::from_slice(&folder.read(name, Kind::Sidecar)?)?;
                folder.replace(name, &serde_json::to_vec_pretty(&self.json(&sidecar)?)?)?;
            }
        }
        Ok(())
    }

    /// Rewrites the logs of a folder.
    pub fn logs(&self, folder: &Folder) -> anyhow::Result<()> {
        for name in folder.names()? {
            if Path::new(&name).extension().is_some_and(|ending| ending == "log") {
                let text = folder.read(&name, Kind::Log)?;
                folder.replace(&name, self.text(&String::from_utf8_lossy(&text)).as_bytes())?;
            }
        }
        Ok(())
    }
}

/// The name of the account that runs this process.
fn account() -> Option<String> {
    let accounts = prony_files::read_text(Path::new("/etc/passwd"), Kind::List).ok()?;
    let uid = rustix::process::getuid().as_raw().to_string();
    let mut lines = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    lines.find(|fields| fields.get(2) == Some(&uid.as_str())).map(|fields| fields[0].to_owned())
}
