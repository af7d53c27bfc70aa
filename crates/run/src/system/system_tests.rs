use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A machine in a folder: swappiness, two governors, and a Jetson's nvpmodel in mode 0 of an Orin Nano's table.
struct Machine {
    dir: tempfile::TempDir,
}

const ORIN_NANO: &str = "# < POWER_MODEL ID=9 NAME=MAXN >
< PARAM TYPE=FILE NAME=CPU_ONLINE >
CORE_0 /sys/devices/system/cpu/cpu0/online

< POWER_MODEL ID=0 NAME=15W >
CPU_ONLINE CORE_0 1
< POWER_MODEL ID=1 NAME=25W >
< POWER_MODEL ID=2 NAME=MAXN_SUPER >
< POWER_MODEL ID=3 NAME=7W >

< PM_CONFIG DEFAULT=1 >
";

/// As the program speaks: a mode listed in the file `reboot` is refused unless the answer is yes.
const NVPMODEL: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
if [ "$1" = -q ]; then
    echo 'NV Power Mode: X'
    cat mode
    exit
fi
if grep -qx "$2" reboot; then
    echo 'NVPM WARN: Golden image context is already created'
    echo "NVPM WARN: Reboot required for changing to this power mode: $2"
    echo 'NVPM WARN: DO YOU WANT TO REBOOT NOW? enter YES/yes to confirm:'
    read answer
    case $answer in YES | yes) echo "NVPM WARN: rebooting" >>rebooted ;; esac
    echo 'NVPM ERROR: optMask is 1, no request for power mode'
    exit "$(cat status)"
fi
echo "$2" >>set
echo "$2" >mode
"#;

impl Machine {
    fn new() -> Machine {
        let machine = Machine { dir: tempfile::tempdir().unwrap() };
        for (path, value) in [
            ("proc/sys/vm/swappiness", "60\n"),
            ("proc/sys/vm/drop_caches", "0\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
            ("etc/nvpmodel.conf", ORIN_NANO),
            ("mode", "0\n"),
            ("reboot", ""),
            ("status", "1\n"),
            ("set", ""),
            ("nvpmodel", NVPMODEL),
        ] {
            machine.write(path, value);
        }
        fs::set_permissions(machine.dir.path().join("nvpmodel"), fs::Permissions::from_mode(0o755)).unwrap();
        machine
    }

    fn write(&self, path: &str, value: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value).unwrap();
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

const BEFORE: [&str; 4] = ["60", "schedutil", "performance", "0"];
const DURING: [&str; 4] = ["100", "performance", "performance", "2"];

#[test]
fn everything_is_put_back_at_the_end() {
    let machine = Machine::new();
    let prepared = PreparedSystem::begin(&machine.state_folder(), machine.places(), |_| {}).unwrap();
    assert_eq!(machine.state(), DURING);
    assert_eq!(machine.value("proc/sys/vm/drop_caches"), "3");
    assert_eq!(
        prepared.notes,
        [
            "prepared: swappiness, CPU governor, power mode (15W to MAXN_SUPER), file caches (dropped); undone afterwards"
        ]
    );
    assert_eq!(prepared.end(), [""; 0]);
    assert_eq!(machine.state(), BEFORE);
    assert_eq!(fs::read_dir(machine.state_folder()).unwrap().count(), 0, "the journal is gone");
}

#[test]
fn a_panic_puts_it_back_too() {
    let machine = Machine::new();
    drop(PreparedSystem::begin(&machine.state_folder(), machine.places(), |_| {}).unwrap());
    assert_eq!(machine.state(), BEFORE);
}

#[test]
fn the_next_command_undoes_what_a_dead_one_left() {
    let machine = Machine::new();
    let prepared = PreparedSystem::begin(&machine.state_folder(), machine.places(), |_| {}).unwrap();
    assert_eq!(undo_leftovers(&machine.state_folder(), &machine.places()), None, "its maker lives");
    assert_eq!(machine.state(), DURING);
    let journal = fs::read(machine.state_folder().join("prepare.journal.json")).unwrap();
    drop(prepared);
    // As a process that was killed in the middle leaves it: changed, the journal on disk, and nobody who holds it.
    fs::write(machine.state_folder().join("prepare.journal.json"), journal).unwrap();
    machine.write("proc/sys/vm/swappiness", "100");
    machine.write("mode", "2");
    machine.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
    let said = undo_leftovers(&machine.state_folder(), &machine.places()).unwrap();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].ends_with("2 of 3 changes undone now"), "{said:?}");
    assert!(said[1].ends_with("scaling_governor is powersave now and was left alone; it was schedutil"), "{said:?}");
    assert_eq!(machine.state(), ["60", "powersave", "performance", "0"]);
    assert_eq!(undo_leftovers(&machine.state_folder(), &machine.places()), None);
}

#[test]
fn what_cannot_be_changed_is_said_and_not_undone() {
    let machine = Machine::new();
    // A folder where a file should be: not even root can write to it.
    let swappiness = machine.dir.path().join("proc/sys/vm/swappiness");
    fs::remove_file(&swappiness).unwrap();
    fs::create_dir(&swappiness).unwrap();
    let prepared = PreparedSystem::begin(&machine.state_folder(), machine.places(), |_| {}).unwrap();
    assert!(prepared.notes[1].starts_with("could not set swappiness to 100: "), "{:?}", prepared.notes);
    assert_eq!(prepared.end(), [""; 0]);
    assert_eq!(machine.value("mode"), "0");
}

/// What is said about the power mode while the machine is prepared, and the modes that were set until it is as it was.
fn power_mode(machine: &Machine) -> (Vec<String>, String) {
    let before = machine.value("mode");
    let prepared = PreparedSystem::begin(&machine.state_folder(), machine.places(), |_| {}).unwrap();
    let said = prepared.notes.iter().filter(|note| note.contains("power mode")).cloned().collect();
    assert_eq!(prepared.end(), [""; 0]);
    assert_eq!(machine.value("mode"), before);
    (said, machine.value("set").replace('\n', " "))
}

#[test]
fn an_orin_nano_at_maxn_super_was_lowered_to_15_w() {
    let machine = Machine::new();
    machine.write("mode", "2\n");
    assert_eq!(power_mode(&machine), (vec![], String::new()));
    for (current, words) in [("1", "(25W to MAXN_SUPER)"), ("3", "(7W to MAXN_SUPER)")] {
        machine.write("mode", current);
        machine.write("set", "");
        let (said, set) = power_mode(&machine);
        assert!(said[0].contains(words), "{said:?}");
        assert_eq!(set, format!("2 {current}"));
    }
}

#[test]
fn a_board_without_maxn_is_set_to_its_highest_power() {
    let machine = Machine::new();
    machine.write("etc/nvpmodel.conf", "< POWER_MODEL ID=0 NAME=15W >\n< POWER_MODEL ID=1 NAME=7W >\n");
    assert_eq!(power_mode(&machine), (vec![], String::new()));
    machine.write("mode", "1");
    let (said, set) = power_mode(&machine);
    assert!(said[0].contains("power mode (7W to 15W)") && set == "0 1", "{said:?} {set}");
}

#[test]
fn a_mode_that_takes_a_reboot_is_left_alone() {
    for status in ["0", "1"] {
        let machine = Machine::new();
        machine.write("reboot", "2\n");
        machine.write("status", status);
        let (said, set) = power_mode(&machine);
        let expected = "power mode left at 15W: it takes a reboot to change that: `sudo nvpmodel -m 2`";
        assert_eq!((said, set), (vec![expected.to_owned()], String::new()));
        assert!(!machine.dir.path().join("rebooted").exists());
    }
}

#[test]
fn a_mode_that_only_a_reboot_can_put_back_is_reported() {
    let machine = Machine::new();
    machine.write("mode", "3\n");
    machine.write("reboot", "3\n");
    let prepared = PreparedSystem::begin(&machine.state_folder(), machine.places(), |_| {}).unwrap();
    assert_eq!(machine.value("mode"), "2");
    let problems = prepared.end();
    assert_eq!(
        problems,
        ["could not set the power mode back to 3: it takes a reboot to change that: `sudo nvpmodel -m 3`"]
    );
    assert!(!machine.dir.path().join("rebooted").exists());
}

#[test]
fn modes_that_cannot_be_compared_are_left_alone() {
    let machine = Machine::new();
    for (table, said) in [
        ("", "power mode left at mode 0: mode 0 is not in /etc/nvpmodel.conf"),
        (
            "< POWER_MODEL ID=0 NAME=QUIET >\n< POWER_MODEL ID=1 NAME=MAXN >\n",
            "power mode left at QUIET: the name QUIET does not say its power",
        ),
    ] {
        machine.write("etc/nvpmodel.conf", table);
        assert_eq!(power_mode(&machine), (vec![said.to_owned()], String::new()));
    }
}

#[test]
fn two_cannot_prepare_at_once() {
    let machine = Machine::new();
    let _first = PreparedSystem::begin(&machine.state_folder(), machine.places(), |_| {}).unwrap();
    let error = PreparedSystem::begin(&machine.state_folder(), machine.places(), |_| {}).unwrap_err().to_string();
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
    let prepared = PreparedSystem::begin(&machine.state_folder(), machine.places(), |_| {}).unwrap();
    let path = machine.state_folder().join("prepare.journal.json");
    let text = fs::read(&path).unwrap();
    drop(prepared);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let said = undo_leftovers(&machine.state_folder(), &machine.places()).unwrap();
    assert!(said[0].contains("any command as root undoes it"), "{said:?}");
}
