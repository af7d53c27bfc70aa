//! Installing a runtime: fetch, check, unpack aside, move into place.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use prony_files::Folder;
use prony_work::{Interrupt, Length, Watcher};
use tempfile::TempDir;

use super::installed::{InstallRecord, RECORD_FILE, SCHEMA};
use super::pip::{Pip, Task};
use super::platform::Platform;
use super::stage::{ShelfTurn, sync_folder};
use super::{Installed, Request, Shelf, State, Stopped, layout};
use crate::{FileRecord, Wheel, disk_error};

/// What to install, from where.
pub struct Order<'a> {
    /// What was asked for.
    pub request: &'a Request,
    /// A wheel that is here already.
    pub from: Option<&'a Path>,
    /// Told how far it is.
    pub watcher: &'a dyn Watcher,
    /// When it is, RFC 3339.
    pub now: String,
    /// Ends it, and leaves nothing behind.
    pub interrupt: &'a Interrupt,
}

/// How it ended.
#[derive(Debug)]
pub enum Outcome {
    /// It was there, whole.
    Already(Installed),
    /// It is new.
    Installed(Installed),
}

/// What there is to unpack.
enum Fetched {
    Wheel(PathBuf),
    NotNeeded(Box<Installed>),
}

/// Installs a runtime. Until its last step nothing is visible, and an error leaves nothing behind.
pub fn install(shelf: &Shelf, order: &Order<'_>) -> anyhow::Result<Outcome> {
    let on_wait = || order.watcher.say("another prony is changing this folder; waiting for it to end");
    let turn = ShelfTurn::wait(shelf, order.interrupt, on_wait)?;
    let stage = turn.stage()?;
    let path = match order.from {
        Some(path) => path.to_owned(),
        None => match fetch(shelf, order, &stage)? {
            Fetched::Wheel(path) => path,
            Fetched::NotNeeded(installed) => return Ok(Outcome::Already(*installed)),
        },
    };
    let mut wheel = Wheel::open(&path)?;
    check_identity(&wheel, &path, order.request)?;
    let request = Request { name: order.request.name, version: Some(wheel.version.clone()) };
    // A wheel that somebody names is wanted as it is, even where another of that version is installed.
    if let Some(installed) = whole(shelf, &request, order)
        && (order.from.is_none() || installed.record.as_ref().is_ok_and(|record| record.wheel_sha256 == wheel.sha256))
    {
        return Ok(Outcome::Already(installed));
    }
    let finished = stage.path().join("unpacked");
    unpack(&mut wheel, &finished, order)?;
    turn.publish(&finished, &shelf.place(request.name, &wheel.version), &stage)?;
    let place = shelf.place(request.name, &wheel.version);
    match shelf.find(&request) {
        Some(installed) => Ok(Outcome::Installed(installed)),
        None => bail!("{} vanished as soon as it was installed", place.display()),
    }
}

/// The version that is asked for, if it is there with every byte as it should be.
fn whole(shelf: &Shelf, request: &Request, order: &Order<'_>) -> Option<Installed> {
    let installed = shelf.find(request)?;
    match installed.examine() {
        State::Whole => Some(installed),
        State::Damaged(what) => {
            order
                .watcher
                .say(&format!("{} {} is damaged ({what}); installing it again", request.name, installed.version));
            None
        }
    }
}

fn fetch(shelf: &Shelf, order: &Order<'_>, stage: &TempDir) -> anyhow::Result<Fetched> {
    let request = order.request;
    if request.version.is_some()
        && let Some(installed) = whole(shelf, request, order)
    {
        return Ok(Fetched::NotNeeded(Box::new(installed)));
    }
    let pip = Pip::find(order.interrupt)?;
    let folder = stage.path().join("download");
    fs::create_dir(&folder).map_err(disk_error("make", &folder))?;
    let task = Task { name: request.name, folder: &folder, watcher: order.watcher, interrupt: order.interrupt };
    let mut choice = None;
    if request.version.is_none()
        && let Some((version, python)) = pip.newest(&task)?
    {
        choice = Some(python);
        let newest = Request { name: request.name, version: Some(version) };
        if let Some(installed) = whole(shelf, &newest, order) {
            return Ok(Fetched::NotNeeded(Box::new(installed)));
        }
    }
    Ok(Fetched::Wheel(pip.download(&task, request.version.as_ref(), choice)?))
}

/// Whether the wheel is the one that was asked for, and for this machine.
fn check_identity(wheel: &Wheel, path: &Path, request: &Request) -> anyhow::Result<()> {
    let file = path.display();
    let package = request.name.package();
    ensure!(
        wheel.package == package,
        "{file} is a wheel of {}, {} needs one of {package}",
        wheel.package,
        request.name
    );
    if let Some(version) = &request.version {
        ensure!(version.is_same(&wheel.version), "{file} has version {}, not {version}", wheel.version);
    }
    if let Err(reason) = Platform::here().check(&wheel.tags) {
        bail!("{file} does not fit: {reason}");
    }
    Ok(())
}

fn unpack(wheel: &mut Wheel, into: &Path, order: &Order<'_>) -> anyhow::Result<()> {
    let name = order.request.name;
    fs::create_dir(into).map_err(disk_error("make", into))?;
    let what = format!("checking and unpacking {name} {}", wheel.version);
    let step = order.watcher.step(&what, Length::Bytes(Some(wheel.bytes())));
    let mut done = 0;
    let files = wheel.unpack(name, into, &mut |count| {
        done += count;
        step.at(done);
        if order.interrupt.asked() { Err(Stopped.into()) } else { Ok(()) }
    })?;
    drop(step);
    let Some(main) = files.iter().map(|file| &file.path).find(|path| layout::is_main(name, path)) else {
        bail!(layout::nothing_inside(name, &wheel.version));
    };
    let plain = layout::plain_name(name);
    if main != plain {
        symlink(main, into.join(plain)).map_err(disk_error("make", &into.join(plain)))?;
    }
    let main = main.clone();
    write_record(wheel, into, order, main, files)
}

fn write_record(
    wheel: &Wheel,
    into: &Path,
    order: &Order<'_>,
    main: String,
    files: Vec<FileRecord>,
) -> anyhow::Result<()> {
    let record = InstallRecord {
        schema: SCHEMA.to_owned(),
        name: order.request.name.to_string(),
        version: wheel.version.clone(),
        wheel: wheel.file_name(),
        wheel_sha256: wheel.sha256.clone(),
        arch: Platform::here().arch.to_owned(),
        installed: order.now.clone(),
        main,
        files,
    };
    let text = serde_json::to_string_pretty(&record)? + "\n";
    let written = Folder::open(into).and_then(|folder| folder.replace(RECORD_FILE, text.as_bytes()));
    written.map_err(disk_error("write", &into.join(RECORD_FILE)))?;
    sync_folder(into);
    Ok(())
}
