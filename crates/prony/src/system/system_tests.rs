use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A machine in a folder: swappiness, two governors, and a Jetson's nvpmodel in mode 2.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine { dir: tempfile::tempdir().unwrap() };
        for (path, value) in [
            ("proc/sys/vm/swappiness", "60\n"),
            ("proc/sys/vm/drop_caches", "0\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
            ("mode", "2\n"),
        ] {
            let path = machine.dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value).unwrap();
        }
        let program = machine.dir.path().join("nvpmodel");
        let mode = machine.dir.path().join("mode");
        let mode = mode.display();
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = -q ]; then echo 'NV Power Mode: X'; cat {mode}; else echo \"$2\" > {mode}; fi\n"
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        machine
    }

    fn places(&self) -> Places {
        Places { root: self.dir.path().to_owned(), nvpmodel: Some(self.dir.path().join("nvpmodel")) }
    }

    fn state_folder(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    fn value(&self, path: &str) -> String {
        fs::read_to_string(self.dir.path().join(path)).unwrap().trim().to_owned()
    }

    fn state(&self) -> [String; 4] {
        let governor = |cpu: &str| self.value(&format!("sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor"));
        [self.value("proc/sys/vm/swappiness"), governor("cpu0"), governor("cpu1"), self.value("mode")]
    }
}

const BEFORE: [&str; 4] = ["60", "schedutil", "performance", "2"];
const DURING: [&str; 4] = ["100", "performance", "performance", "0"];

#[test]
fn everything_is_put_back_at_the_end() {
    let machine = Machine::new();
    let prepared = PreparedSystem::begin(&machine.state_folder(), machine.places()).unwrap();
    assert_eq!(machine.state(), DURING);
    assert_eq!(machine.value("proc/sys/vm/drop_caches"), "3");
    assert_eq!(
        prepared.notes,
        ["prepared: swappiness, CPU governor, power mode, file caches (dropped); undone afterwards"]
    );
    assert_eq!(prepared.end(), [""; 0]);
    assert_eq!(machine.state(), BEFORE);
    assert_eq!(fs::read_dir(machine.state_folder()).unwrap().count(), 0, "the journal is gone");
}

#[test]
fn a_panic_puts_it_back_too() {
    let machine = Machine::new();
    drop(PreparedSystem::begin(&machine.state_folder(), machine.places()).unwrap());
    assert_eq!(machine.state(), BEFORE);
}

#[test]
fn the_next_command_undoes_what_a_dead_one_left() {
    let machine = Machine::new();
    let prepared = PreparedSystem::begin(&machine.state_folder(), machine.places()).unwrap();
    assert_eq!(undo_leftovers(&machine.state_folder(), &machine.places()), None, "its maker lives");
    assert_eq!(machine.state(), DURING);
    let journal = fs::read(machine.state_folder().join("prepare.journal.json")).unwrap();
    drop(prepared);
    // As a process that was killed in the middle leaves it: changed, the journal on disk, and nobody who holds it.
    fs::write(machine.state_folder().join("prepare.journal.json"), journal).unwrap();
    for (path, value) in [("proc/sys/vm/swappiness", "100"), ("mode", "0")] {
        fs::write(machine.dir.path().join(path), value).unwrap();
    }
    fs::write(machine.dir.path().join("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"), "powersave").unwrap();
    let said = undo_leftovers(&machine.state_folder(), &machine.places()).unwrap();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].ends_with("2 of 3 changes undone now"), "{said:?}");
    assert!(said[1].ends_with("scaling_governor is powersave now and was left alone; it was schedutil"), "{said:?}");
    assert_eq!(machine.state(), ["60", "powersave", "performance", "2"]);
    assert_eq!(undo_leftovers(&machine.state_folder(), &machine.places()), None);
}

#[test]
fn what_cannot_be_changed_is_said_and_not_undone() {
    let machine = Machine::new();
    // A folder where a file should be: not even root can write to it.
    let swappiness = machine.dir.path().join("proc/sys/vm/swappiness");
    fs::remove_file(&swappiness).unwrap();
    fs::create_dir(&swappiness).unwrap();
    let prepared = PreparedSystem::begin(&machine.state_folder(), machine.places()).unwrap();
    assert!(prepared.notes[1].starts_with("could not set swappiness to 100: "), "{:?}", prepared.notes);
    assert_eq!(prepared.end(), [""; 0]);
    assert_eq!(machine.value("mode"), "2");
}

#[test]
fn two_cannot_prepare_at_once() {
    let machine = Machine::new();
    let _first = PreparedSystem::begin(&machine.state_folder(), machine.places()).unwrap();
    let error = PreparedSystem::begin(&machine.state_folder(), machine.places()).unwrap_err().to_string();
    assert!(error.starts_with("another prony has prepared this machine"), "{error}");
}

#[test]
fn a_journal_that_cannot_be_read_is_kept_and_named() {
    let machine = Machine::new();
    fs::create_dir_all(machine.state_folder()).unwrap();
    fs::write(machine.state_folder().join("prepare.journal.json"), b"[{").unwrap();
    let said = undo_leftovers(&machine.state_folder(), &machine.places()).unwrap();
    assert!(said[0].contains("cannot be read") && said[0].contains("was not undone"), "{said:?}");
    assert_eq!(undo_leftovers(&machine.state_folder(), &machine.places()), None);
}

#[test]
fn whoever_may_not_undo_it_is_told_who_may() {
    if rustix::process::geteuid().is_root() {
        // Root may write to every file, so the refusal itself is asked for.
        let machine = Machine::new();
        let path = machine.dir.path().join("prepare.journal.json");
        fs::write(&path, "[{}]").unwrap();
        let said = journal::left_to_root(&path).unwrap();
        assert!(said[0].contains("any command as root undoes it"), "{said:?}");
        let held = fs::File::open(&path).unwrap();
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
        assert_eq!(journal::left_to_root(&path), None, "its maker lives");
        return;
    }
    let machine = Machine::new();
    let prepared = PreparedSystem::begin(&machine.state_folder(), machine.places()).unwrap();
    let path = machine.state_folder().join("prepare.journal.json");
    let text = fs::read(&path).unwrap();
    drop(prepared);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let said = undo_leftovers(&machine.state_folder(), &machine.places()).unwrap();
    assert!(said[0].contains("any command as root undoes it"), "{said:?}");
}
