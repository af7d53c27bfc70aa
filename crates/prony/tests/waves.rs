//! Cells that do not fit into memory together, and workers that the kernel kills for want of it.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use prony_model::onnx::{GraphProto, ModelProto, NodeProto, ValueInfo};
use prony_standin::impossible;
use prony_types::{CellStatus, Difference, Event, EventKind, RunRecord};
use rustix::process::Signal;
use support::{Place, QUICK, Running, cell, expect_code, signal, stderr, stdout, until, write_model};

const MIB: u64 = 1 << 20;
/// For tests that look at no figures.
const SHORTEST: [&str; 4] = ["--duration", "0.1", "--warmup", "0.1"];
const SIX: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Six models whose input makes a cell take about 400 MiB: 32 of them are kept resident.
fn six_models(place: &Place) -> Vec<String> {
    let shape = |name: &str| ValueInfo::floats(name, &[1, 3, 896, 896]);
    let model = |name: &str| {
        let graph = GraphProto {
            node: vec![NodeProto::new("Relu", &["x"], &["y"], vec![])],
            input: vec![shape("x")],
            output: vec![shape("y")],
            ..GraphProto::default()
        };
        ModelProto { doc_string: name.into(), ..ModelProto::new(graph, &[]) }
    };
    SIX.iter().map(|name| write_model(&place.path(&format!("{name}.onnx")), &model(name))).collect()
}

fn six(place: &Place, models: &[String], more: &[&str]) -> Command {
    let models: Vec<&str> = models.iter().map(String::as_str).collect();
    place.bench(&[&models[..], &["--head", "none"], &SHORTEST[..], more].concat())
}

/// A made-up machine with 24 GiB, in a control group that leaves so much of so much.
fn machine(place: &Place, limit_mib: u64, used_mib: u64) -> PathBuf {
    let root = place.path("machine");
    let write = |path: &str, text: String| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/meminfo", format!("MemTotal: {} kB\nMemAvailable: {} kB\n", 24 << 20, 20 << 20));
    write("proc/self/cgroup", "0::/box\n".into());
    write("sys/fs/cgroup/box/memory.max", format!("{}\n", limit_mib * MIB));
    write("sys/fs/cgroup/box/memory.current", format!("{}\n", used_mib * MIB));
    count_kills(&root, 0);
    root
}

fn count_kills(root: &Path, kills: u32) {
    fs::write(root.join("sys/fs/cgroup/box/memory.events"), format!("oom 0\noom_kill {kills}\n")).unwrap();
}

/// A control group with so much memory, where this process may make one; gone afterwards.
struct Group(PathBuf);

impl Group {
    fn new(limit: u64) -> Option<Group> {
        let text = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = |line: &str| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/').to_owned());
            let (mount, file) = match controllers {
                "" => ("/sys/fs/cgroup", "memory.max"),
                named if named.split(',').any(|name| name == "memory") => {
                    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
                }
                _ => return None,
            };
            Some((Path::new(mount).join(path), file))
        };
        // Beside this process's own group where it cannot have one below it.
        let places = text.lines().filter_map(own).flat_map(|(own, file)| {
            let above = own.parent().map(|above| (above.to_owned(), file));
            [Some((own, file)), above].into_iter().flatten()
        });
        for (folder, file) in places {
            let group = folder.join(format!("prony-test-{}", std::process::id()));
            if fs::create_dir(&group).is_ok() {
                if fs::write(group.join(file), limit.to_string()).is_ok() {
                    return Some(Group(group));
                }
                let _ = fs::remove_dir(&group);
            }
        }
        None
    }

    /// The same command, inside.
    fn enclose(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        inside.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.0);
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group is busy until its last process is gone.
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[track_caller]
fn all_completed(record: &RunRecord) {
    for cell in &record.cells {
        assert_eq!(cell.status, CellStatus::Completed, "{}: {:?}", cell.id, cell.reason);
        assert!(cell.agreement.is_some(), "{}: {:?}", cell.id, cell.agreement_absent);
    }
}

/// How many cells each wave has.
fn sizes(record: &RunRecord) -> Vec<usize> {
    record.waves.iter().map(|wave| wave.cells.len()).collect()
}

#[test]
fn six_cells_of_400_mib_were_killed_in_a_group_of_1_gib() {
    let Some(group) = Group::new(1024 * MIB) else {
        impossible("no control group can be made here; needs root and a writable /sys/fs/cgroup");
        return;
    };
    let place = Place::new();
    let models = six_models(&place);
    let output = group.enclose(&six(&place, &models, &[])).output().unwrap();
    expect_code(&output, 0);
    let record = place.record();
    all_completed(&record);
    assert!(record.waves.len() > 1, "{:?}", record.waves);
    let reason = record.waves[0].reason.clone().unwrap();
    assert!(reason.contains("MiB of 1024 MiB are free in this control group"), "{reason}");
    assert!(record.cells.iter().all(|cell| cell.attempt == 1), "none was killed and tried again");
    assert!(stdout(&output).contains("so they are compared unpaired"), "{}", stdout(&output));

    // Where the user decides otherwise, the kernel kills; each is measured again alone.
    let forced = Place::new();
    let output = group.enclose(&six(&forced, &models, &["--resident", "6"])).output().unwrap();
    expect_code(&output, 0);
    let record = forced.record();
    all_completed(&record);
    let again: Vec<_> = record.cells.iter().filter(|cell| cell.attempt == 2).collect();
    assert!(!again.is_empty(), "{:?}", record.waves);
    for cell in again {
        let death = cell.out_of_memory.as_ref().unwrap();
        assert!(death.of_cgroup && death.limit_mib == Some(1024.0) && death.beside > 0, "{death}");
        assert!(death.used_mib.is_some_and(|used| used < 1024.0), "{death}");
        assert!(record.waves.iter().any(|wave| wave.cells == [cell.id.clone()]), "{:?}", record.waves);
    }
    assert!(stderr(&output).contains("killed by the kernel out of memory at "), "{}", stderr(&output));
}

#[test]
fn with_an_injected_limit_cells_of_400_mib_run_in_waves_and_without_it_together() {
    let place = Place::new();
    let models = six_models(&place);
    let root = machine(&place, 1100, 100);
    let output = six(&place, &models, &[]).env("PRONY_TEST_MEMORY_ROOT", &root).output().unwrap();
    expect_code(&output, 0);
    let record = place.record();
    all_completed(&record);
    assert_eq!(sizes(&record), [1; 6], "{:?}", record.waves);
    assert!(record.method.schedule.contains("in 6 waves"), "{}", record.method.schedule);
    assert!(stderr(&output).contains("1 of 6 cells loaded: b:rten:fp32 takes about "), "{}", stderr(&output));
    let roomy = Place::new();
    let root = machine(&roomy, 16_000, 100);
    let output = six(&roomy, &models, &[]).env("PRONY_TEST_MEMORY_ROOT", &root).output().unwrap();
    expect_code(&output, 0);
    let record = roomy.record();
    all_completed(&record);
    assert_eq!(sizes(&record), [6], "{:?}", record.waves);
    assert!(!record.method.schedule.contains("waves") && !stdout(&output).contains("unpaired"), "{}", stdout(&output));
}

#[test]
fn cells_of_different_waves_were_compared_as_if_paired() {
    let twice = ["builtin-thermal", "builtin-thermal"];
    let place = Place::new();
    expect_code(&place.bench(&[&twice[..], &QUICK[..], &["--resident", "1"]].concat()).output().unwrap(), 0);
    let apart = place.record();
    assert_eq!(sizes(&apart), [1, 1]);
    assert_eq!(apart.waves[0].reason.as_deref(), Some("--resident is 1"));
    let [comparison] = &apart.comparisons[..] else { panic!("{:?}", apart.comparisons) };
    assert_eq!(comparison.paired_rounds, Some(0));
    assert!(comparison.reason.contains("not paired (0 rounds in common"), "{}", comparison.reason);
    let rounds = |id: &str| -> std::collections::BTreeSet<u32> {
        let samples = prony_store::read_samples(&place.run().join("samples.csv")).unwrap();
        let timed =
            samples.iter().filter(|logged| logged.cell == id && logged.sample.phase == prony_types::Phase::Steady);
        timed.map(|logged| logged.sample.round).collect()
    };
    let [first, second] = [0, 1].map(|index| rounds(&apart.cells[index].id));
    assert!(first.is_disjoint(&second) && !first.is_empty() && !second.is_empty(), "{first:?} {second:?}");

    let place = Place::new();
    expect_code(&place.bench(&[&twice[..], &QUICK[..], &["--resident", "2"]].concat()).output().unwrap(), 0);
    let together = place.record();
    assert_eq!(sizes(&together), [2]);
    assert!(together.comparisons[0].paired_rounds.unwrap() >= 3, "{:?}", together.comparisons);
}

#[test]
fn the_cells_of_a_model_stay_together() {
    let place = Place::new();
    let models = ["builtin-thermal", "builtin-rgb", "builtin-rgb", "builtin-thermal"];
    let args = [&models[..], &SHORTEST[..], &["--resident", "3", "--frames", "8"]].concat();
    expect_code(&place.bench(&args).output().unwrap(), 0);
    let record = place.record();
    assert_eq!(sizes(&record), [2, 2], "{:?}", record.waves);
    for wave in &record.waves {
        let name = |id: &String| cell(&record, id).model.name.clone();
        assert_eq!(name(&wave.cells[0]), name(&wave.cells[1]), "{wave:?}");
    }
}

#[test]
fn a_worker_killed_by_somebody_is_not_called_out_of_memory() {
    let place = Place::new();
    let root = machine(&place, 16_000, 100);
    let mut command = place.bench(&["builtin-thermal", "--duration", "1", "--warmup", "0.1", "--frames", "8"]);
    let child = command.env("PRONY_TEST_MEMORY_ROOT", root);
    let child = child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let running = Running { child, place };
    running.first_round("builtin-thermal:rten:fp32");
    signal(running.worker("builtin-thermal:rten:fp32"), Signal::KILL);
    let (output, place) = running.finish();
    expect_code(&output, 1);
    let record = place.record();
    let reason = record.cells[0].reason.clone().unwrap();
    assert!(reason.contains("killed by SIGKILL") && record.cells[0].out_of_memory.is_none(), "{reason}");
}

#[test]
fn a_worker_that_the_kernel_killed_was_not_tried_again() {
    const ID: &str = "builtin-thermal:rten:fp32";
    let place = Place::new();
    let root = machine(&place, 1000, 100);
    let mut command = place.bench(&["builtin-thermal", "--duration", "2", "--warmup", "0.1", "--frames", "8"]);
    let child = command.env("PRONY_TEST_MEMORY_ROOT", &root);
    let child = child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let running = Running { child, place };
    running.first_round(ID);
    // As the kernel does it: it counts, and kills.
    let first = running.worker(ID);
    count_kills(&root, 1);
    signal(first, Signal::KILL);
    let second = until("a second worker", || {
        running.events().into_iter().find_map(|event| match event.kind {
            EventKind::Started { pid, .. } if pid != first => Some(pid),
            _ => None,
        })
    });
    until("its first round", || {
        let events = running.events();
        let begun = |event: &&Event| matches!(event.kind, EventKind::Started { pid, .. } if pid == second);
        let mut since = events.iter().skip_while(|event| !begun(event));
        since.any(|event| matches!(event.kind, EventKind::RoundDone { .. })).then_some(())
    });
    count_kills(&root, 2);
    signal(second, Signal::KILL);
    let (output, place) = running.finish();
    expect_code(&output, 1);
    let record = place.record();
    let cell = cell(&record, ID);
    assert_eq!((cell.status, cell.attempt), (CellStatus::Failed, 2), "once, not for ever");
    let reason = cell.reason.clone().unwrap();
    assert!(reason.starts_with("worker was again killed by the kernel out of memory at "), "{reason}");
    assert!(reason.contains(" MiB of 1000 MiB (limit of its control group) while measuring"), "{reason}");
    assert!(cell.out_of_memory.is_some() && cell.latency_ms.is_empty());
}

#[test]
fn a_number_of_resident_cells_that_is_none_is_refused() {
    let place = Place::new();
    for wrong in ["0", "-1", "many"] {
        let output = place.bench(&["builtin-thermal", "--resident", wrong]).output().unwrap();
        expect_code(&output, 2);
        assert!(stderr(&output).contains("`auto` or a number of cells from 1"), "{}", stderr(&output));
    }
    fs::write(place.path("plan.toml"), "models = [\"builtin-thermal\"]\nresident = 0\n").unwrap();
    let plan = place.path("plan.toml");
    let output = place.bench(&["--plan", plan.to_str().unwrap()]).output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("line 2"), "{}", stderr(&output));
}

#[test]
fn a_plan_file_may_say_how_many_cells_are_resident() {
    let place = Place::new();
    for (value, kept) in [("3", "3"), ("\"auto\"", "auto")] {
        fs::write(place.path("plan.toml"), format!("models = [\"builtin-thermal\"]\nresident = {value}\n")).unwrap();
        let plan = place.path("plan.toml");
        let output = place.bench(&["--plan", plan.to_str().unwrap(), "--dry-run", "--json"]).output().unwrap();
        expect_code(&output, 0);
        let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(json["plan"]["resident"].to_string().trim_matches('"'), kept);
    }
}

/// A run that was taken up again has pairs only among cells of one sitting.
#[test]
fn a_cell_of_an_earlier_sitting_is_compared_unpaired() {
    let place = Place::new();
    let running =
        Running::start(place, &[&["builtin-thermal", "builtin-thermal", "--resident", "1"][..], &QUICK].concat());
    let second = until("the second cell", || {
        let events = running.events();
        let mut started = events.iter().filter_map(|event| match event.kind {
            EventKind::Started { pid, .. } => Some(pid),
            _ => None,
        });
        started.nth(1)
    });
    signal(second, Signal::KILL);
    let (output, place) = running.finish();
    expect_code(&output, 1);
    let output = support::prony().args(["bench", "--resume"]).arg(place.run()).output().unwrap();
    expect_code(&output, 0);
    let record = place.record();
    let [comparison] = &record.comparisons[..] else { panic!("{:?}", record.comparisons) };
    assert_eq!(comparison.paired_rounds, Some(0), "{comparison:?}");
    assert_ne!(comparison.difference, Difference::NotComparable);
    assert_eq!(record.waves.len(), 2, "{:?}", record.waves);
}
