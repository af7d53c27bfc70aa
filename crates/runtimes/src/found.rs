//! What runtimes this machine has. Files are found and looked at here; a child of this very binary opens each of them,
//! so that one that crashes is a finding and not an end.

mod absent;
mod child;
mod choose;
mod companions;
mod remedy;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use prony_types::os_text::path_to_text;
use prony_types::{BackendName, GpuRecord, RuntimeName, RuntimeRecord, RuntimeState};

pub use self::absent::absent;
pub use self::child::question;
pub use self::choose::choose;
use self::remedy::Elsewhere;
use crate::discovery::{self, Answer, Candidate, Places};
use crate::policy::{self, NotOpened, Policy, STARTED_AGAIN};
use prony_work::Watcher;

/// Children at a time: opening a library is reading a disk more than computing.
const AT_ONCE: usize = 8;

/// Whether a file may be opened; see [`Policy::ruling`].
type Ruling = Result<Option<String>, NotOpened>;

/// What is there, and what is not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Every copy of every runtime, in the order in which they would be used, and a line for each that is missing.
    pub runtimes: Vec<RuntimeRecord>,
    /// The GPUs that the driver sees.
    pub gpus: Vec<GpuRecord>,
    /// Whether the kernel sees an NVIDIA GPU, with or without its driver.
    pub has_nvidia_device: bool,
    /// Version of the GPU driver.
    pub driver: Option<String>,
    /// Folders of libraries that the GPU's providers need, for the loader of a worker.
    pub search: Vec<PathBuf>,
    /// Where libraries are that the loader did not find.
    elsewhere: Elsewhere,
}

/// Searches this machine. Takes about as long as the slowest library takes to open.
pub fn discover(home: &Path, explicit: &[(RuntimeName, PathBuf)]) -> anyhow::Result<Found> {
    Ok(searched(&Places::here(home, explicit), RuntimeName::ALL)?)
}

/// Searches for what one backend needs.
pub fn discover_for(backend: BackendName, home: &Path, explicit: &[(RuntimeName, PathBuf)]) -> anyhow::Result<Found> {
    let names: Vec<RuntimeName> = match backend.needs() {
        None => return Ok(Found::default()),
        Some((name, _)) if backend == BackendName::Tensorrt => {
            vec![name, RuntimeName::Nvonnxparser, RuntimeName::NvinferPlugin, RuntimeName::Cuda]
        }
        Some((name, _)) if backend.on_gpu() => {
            vec![name, RuntimeName::Cuda]
        }
        Some((name, _)) => vec![name],
    };
    // Engines run without a whole TensorRT too.
    let lean = (backend == BackendName::Tensorrt).then_some(RuntimeName::NvinferLean);
    let names: Vec<RuntimeName> = names.into_iter().chain(lean).collect();
    Ok(searched(&Places::here(home, explicit), &names)?)
}

fn searched(places: &Places, names: &[RuntimeName]) -> std::io::Result<Found> {
    Ok(search(&std::env::current_exe()?, places, names, policy::policy()))
}

/// Searches the given places with the given binary as the child.
fn search(binary: &Path, places: &Places, names: &[RuntimeName], policy: Policy) -> Found {
    let candidates: Vec<(Candidate, Ruling)> = discovery::candidates(places, names)
        .into_iter()
        .map(|candidate| {
            let ruling = policy.ruling(&candidate);
            (candidate, ruling)
        })
        .collect();
    let folders = policy.folders(places.gpu_folders());
    let answers = ask_all(binary, &candidates, &folders);
    let has_nvidia_device = has_nvidia_device(&places.root);
    let mut found = Found { driver: module_version(), search: folders, has_nvidia_device, ..Found::default() };
    for ((candidate, ruling), answer) in candidates.into_iter().zip(answers) {
        match ruling {
            Ok(trusted) => found.take(&candidate, trusted, answer),
            Err(not_opened) => found.runtimes.push(listed(&candidate, not_opened)),
        }
    }
    found.mend(places);
    for &name in names {
        if !found.runtimes.iter().any(|record| record.name == name) {
            found.runtimes.push(missing(places, name));
        }
    }
    // Stable: copies of one runtime keep the order in which they would be used.
    found.runtimes.sort_by_key(|record| record.name);
    found
}

impl Found {
    /// What was opened although it should not be, a line each.
    fn opened_by_trust(&self) -> Vec<String> {
        let said = |record: &RuntimeRecord| {
            let (path, problem) = (record.path.as_ref()?, record.trusted.as_ref()?);
            Some(format!("{path} is opened because of --trust-library, although {problem}"))
        };
        self.runtimes.iter().filter_map(said).collect()
    }

    /// Says what was opened although it should not be. A process that has started again has said it.
    pub fn tell_trusted(&self, watcher: &dyn Watcher) {
        if std::env::var_os(STARTED_AGAIN).is_none() {
            self.opened_by_trust().iter().for_each(|line| watcher.say(line));
        }
    }

    fn take(&mut self, candidate: &Candidate, trusted: Option<String>, answer: Result<Answer, String>) {
        let state = if answer.is_ok() { RuntimeState::Ready } else { RuntimeState::Broken };
        let reason = answer.as_ref().err().cloned();
        let answer = answer.unwrap_or_default();
        if self.gpus.is_empty() {
            self.gpus = answer.gpus;
        }
        if candidate.name == RuntimeName::Nvml && answer.version.is_some() {
            self.driver.clone_from(&answer.version);
        }
        self.runtimes.push(RuntimeRecord {
            name: candidate.name,
            state,
            path: Some(path_to_text(&candidate.path)),
            found_by: Some(candidate.found_by.clone()),
            version: answer.version,
            provides: answer.provides,
            reason,
            trusted,
            looked: Vec::new(),
            remedy: None,
        });
    }

    /// Says how to mend what is broken: finds the libraries that the loader did not, and gives each record its remedy.
    fn mend(&mut self, places: &Places) {
        let folders = places.library_folders();
        let all = self.runtimes.iter().flat_map(reasons);
        let libraries: Vec<String> = all.flat_map(remedy::unresolved).map(str::to_owned).collect();
        for library in libraries {
            if let Some(folder) = folders.iter().find(|folder| folder.join(&library).exists()) {
                self.elsewhere.insert(library, folder.clone());
            }
        }
        for record in &mut self.runtimes {
            record.remedy = match record.state {
                RuntimeState::NotOpened => continue,
                RuntimeState::Broken => Some(remedy::for_broken(&self.elsewhere, record)),
                _ => reasons(record).find_map(|reason| remedy::for_dependency(&self.elsewhere, reason)),
            };
        }
    }
}

/// Why a copy, or a part of it, cannot be used.
fn reasons(record: &RuntimeRecord) -> impl Iterator<Item = &str> {
    record.reason.as_deref().into_iter().chain(record.provides.iter().filter_map(|entry| discovery::provided(entry).1))
}

/// What is there and was not opened.
fn listed(candidate: &Candidate, NotOpened { reason, remedy }: NotOpened) -> RuntimeRecord {
    RuntimeRecord {
        name: candidate.name,
        state: RuntimeState::NotOpened,
        path: Some(candidate.path.display().to_string()),
        found_by: Some(candidate.found_by.clone()),
        version: None,
        provides: Vec::new(),
        reason: Some(reason),
        trusted: None,
        looked: Vec::new(),
        remedy: Some(remedy),
    }
}

fn missing(places: &Places, name: RuntimeName) -> RuntimeRecord {
    RuntimeRecord {
        name,
        state: RuntimeState::Missing,
        path: None,
        found_by: None,
        version: None,
        provides: Vec::new(),
        reason: None,
        trusted: None,
        looked: discovery::looked(places, name),
        remedy: Some(remedy::for_missing(name).to_owned()),
    }
}

/// Has every candidate that may be opened answer, a few at a time; the answers are in the order of the candidates.
fn ask_all(binary: &Path, candidates: &[(Candidate, Ruling)], folders: &[PathBuf]) -> Vec<Result<Answer, String>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut answers = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((candidate, ruling)) = candidates.get(index) else { return answers };
            let ask = || child::ask(binary, candidate.name, &candidate.path, folders);
            let answer = match ruling {
                Ok(_) => candidate.verdict.clone().and_then(|()| ask()),
                Err(not_opened) => Err(not_opened.reason.clone()),
            };
            answers.push((index, answer));
        }
    };
    let mut answers: Vec<(usize, Result<Answer, String>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE.min(candidates.len())).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Whether there is an NVIDIA GPU on the PCI bus, or the one in a Jetson's chip.
fn has_nvidia_device(root: &Path) -> bool {
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let is_gpu = |device: &Path| {
        // A card's sound and USB functions are NVIDIA's too.
        read(device.join("vendor")).trim() == "0x10de" && read(device.join("class")).starts_with("0x03")
    };
    let mut on_bus = std::fs::read_dir(root.join("sys/bus/pci/devices")).into_iter().flatten().flatten();
    on_bus.any(|entry| is_gpu(&entry.path()))
        || read(root.join("proc/device-tree/compatible")).contains("nvidia,tegra")
        || root.join("dev/nvidiactl").exists()
}

/// The driver's version by the kernel's word, where NVML has none to say.
fn module_version() -> Option<String> {
    std::fs::read_to_string("/sys/module/nvidia/version").ok().map(|version| version.trim().to_owned())
}

#[cfg(test)]
#[path = "found/found_tests.rs"]
mod tests;
