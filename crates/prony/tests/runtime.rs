//! `prony runtime` with real processes: wheels made here, and the official one where pip and a network are demanded.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;
#[path = "support/wheel.rs"]
mod wheel;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use support::{Place, expect_code, has_tool, prony, signal, skip, stderr, stdout, until};
use wheel::{Recipe, noise};

fn runtime(home: &Path, words: &[&str]) -> Command {
    let mut command = prony();
    command.arg("runtime").args(words).arg("--home").arg(home);
    command
}

fn run(home: &Path, words: &[&str]) -> Output {
    runtime(home, words).output().unwrap()
}

fn install_from(home: &Path, name: &str, file: &Path) -> Command {
    let mut command = runtime(home, &["install", name]);
    command.arg("--from").arg(file);
    command
}

/// Names under the folder of runtimes, without the lock.
fn names(home: &Path) -> Vec<String> {
    let entries = fs::read_dir(home.join("runtimes")).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != ".lock");
    names.sort();
    names
}

/// Every file of an installed version but its record, links by their target.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let read = |entry: fs::DirEntry| {
        let path = entry.path();
        let link = fs::read_link(&path).map(|target| format!("-> {}", target.display()).into_bytes());
        (entry.file_name().into_string().unwrap(), link.unwrap_or_else(|_| fs::read(&path).unwrap()))
    };
    entries.map(read).filter(|(name, _)| name != "runtime.json").collect()
}

#[track_caller]
fn refused(home: &Path, name: &str, file: &Path, said: &[&str]) {
    let output = install_from(home, name, file).output().unwrap();
    expect_code(&output, 2);
    let text = stderr(&output);
    assert_eq!(text.lines().count(), 1, "{text}");
    for word in said {
        assert!(text.contains(word), "{word} not in: {text}");
    }
    assert_eq!(names(home), [""; 0], "something was left behind");
}

#[test]
fn a_wheel_becomes_a_runtime() {
    let place = Place::new();
    let home = place.path("home");
    let recipe = Recipe::onnxruntime("1.31.1", 5000);
    let output = install_from(&home, "onnxruntime", &recipe.write(place.dir.path())).output().unwrap();
    expect_code(&output, 0);
    assert!(stdout(&output).starts_with("onnxruntime 1.31.1 installed in "), "{}", stdout(&output));
    let folder = home.join("runtimes/onnxruntime/1.31.1");
    let expected = [
        ("libonnxruntime.so", b"-> libonnxruntime.so.1.31.1".to_vec()),
        ("libonnxruntime.so.1.31.1", noise(5000)),
        ("libonnxruntime_providers_shared.so", noise(500)),
    ];
    assert_eq!(contents(&folder), expected.map(|(name, bytes)| (name.to_owned(), bytes)).into());
    let record: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("runtime.json")).unwrap()).unwrap();
    assert_eq!(record["schema"], "prony.runtime/1");
    assert_eq!(record["main"], "libonnxruntime.so.1.31.1");
    assert_eq!(record["arch"], std::env::consts::ARCH);
    assert_eq!(record["files"].as_array().unwrap().len(), 2);
    assert_eq!(names(&home), ["onnxruntime"]);

    let path = run(&home, &["path", "onnxruntime"]);
    expect_code(&path, 0);
    assert_eq!(PathBuf::from(stdout(&path).trim_end()), folder.join("libonnxruntime.so.1.31.1"));
}

#[test]
fn json_and_quiet_are_for_installing_and_removing_too() {
    let place = Place::new();
    let home = place.path("home");
    let wheel = Recipe::onnxruntime("1.31.1", 5000).write(place.dir.path());
    let json = |output: Output| -> serde_json::Value {
        expect_code(&output, 0);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let quiet = install_from(&home, "onnxruntime", &wheel).arg("--quiet").output().unwrap();
    expect_code(&quiet, 0);
    assert_eq!(stderr(&quiet), "");
    let again = json(install_from(&home, "onnxruntime", &wheel).arg("--json").output().unwrap());
    assert_eq!((&again["already_installed"], &again["runtime"]["version"]), (&true.into(), &"1.31.1".into()));
    let path = json(run(&home, &["path", "onnxruntime", "--json"]));
    assert_eq!(path["runtime"]["path"], again["runtime"]["path"]);
    let removed = json(run(&home, &["remove", "onnxruntime", "--json"]));
    assert_eq!(removed["removed"][0]["name"], "onnxruntime");
}

#[test]
fn versions_stand_side_by_side_and_the_newest_by_number_is_given() {
    let place = Place::new();
    let home = place.path("home");
    for version in ["1.9.0", "1.31.1", "1.20.1"] {
        let file = Recipe::onnxruntime(version, 100).write(place.dir.path());
        expect_code(&install_from(&home, "onnxruntime", &file).output().unwrap(), 0);
    }
    let path = |name: &str| stdout(&run(&home, &["path", name]));
    assert!(path("onnxruntime").contains("/1.31.1/"));
    assert!(path("onnxruntime@1.9").contains("/1.9.0/"));
    let missing = run(&home, &["path", "onnxruntime@1.2"]);
    expect_code(&missing, 1);
    assert!(stdout(&missing).is_empty() && stderr(&missing).contains("prony runtime install onnxruntime@1.2"));

    expect_code(&run(&home, &["remove", "onnxruntime@1.31.1"]), 0);
    assert!(path("onnxruntime").contains("/1.20.1/"));
    let both = run(&home, &["remove", "onnxruntime"]);
    expect_code(&both, 0);
    assert_eq!(stdout(&both).lines().count(), 2);
    assert_eq!(names(&home), [""; 0]);
    expect_code(&run(&home, &["remove", "onnxruntime"]), 1);
    expect_code(&run(&home, &["path", "onnxruntime"]), 1);
}

#[test]
fn the_list_tells_whole_from_damaged_and_installing_mends() {
    let place = Place::new();
    let home = place.path("home");
    let file = Recipe::onnxruntime("1.31.1", 5000).write(place.dir.path());
    expect_code(&install_from(&home, "onnxruntime", &file).output().unwrap(), 0);
    let again = install_from(&home, "onnxruntime", &file).output().unwrap();
    expect_code(&again, 0);
    assert!(stdout(&again).contains("installed already and whole"), "{}", stdout(&again));

    let list = || serde_json::from_slice::<serde_json::Value>(&run(&home, &["list", "--json"]).stdout).unwrap();
    let first = |list: &serde_json::Value| list["runtimes"][0]["installed"][0].clone();
    assert_eq!(first(&list())["whole"], true);
    let library = home.join("runtimes/onnxruntime/1.31.1/libonnxruntime.so.1.31.1");
    let mut bytes = fs::read(&library).unwrap();
    bytes[2500] ^= 1;
    fs::write(&library, &bytes).unwrap();
    assert_eq!(first(&list())["problem"], "libonnxruntime.so.1.31.1 was changed since it was installed");
    let text = stdout(&run(&home, &["list"]));
    assert!(text.contains("damaged: libonnxruntime.so.1.31.1"), "{text}");
    assert!(text.contains("`prony runtime install openvino` gets it"), "{text}");
    let mended = install_from(&home, "onnxruntime", &file).output().unwrap();
    expect_code(&mended, 0);
    assert!(stderr(&mended).contains("is damaged"), "{}", stderr(&mended));
    assert_eq!(fs::read(&library).unwrap(), noise(5000));

    fs::remove_file(&library).unwrap();
    let path = run(&home, &["path", "onnxruntime"]);
    expect_code(&path, 1);
    assert!(stderr(&path).contains("libonnxruntime.so.1.31.1 cannot be read"), "{}", stderr(&path));
}

#[test]
fn openvino_keeps_its_data_and_ffmpeg_runs() {
    let place = Place::new();
    let home = place.path("home");
    let mut recipe = Recipe::onnxruntime("2026.4.1", 10);
    recipe.package = "openvino";
    recipe.files =
        ["_pyopenvino.so", "libs/libopenvino.so.2641", "libs/libopenvino_c.so.2641", "libs/cache.json", "libs/tbb.pc"]
            .map(|name| (format!("openvino/{name}"), noise(100)))
            .to_vec();
    expect_code(&install_from(&home, "openvino", &recipe.write(place.dir.path())).output().unwrap(), 0);
    let found = contents(&home.join("runtimes/openvino/2026.4.1"));
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["cache.json", "libopenvino.so.2641", "libopenvino_c.so", "libopenvino_c.so.2641"]);

    recipe.package = "imageio-ffmpeg";
    let script = b"#!/bin/sh\necho I am ffmpeg\n".to_vec();
    recipe.files = vec![("imageio_ffmpeg/binaries/ffmpeg-linux-x86_64-v7.0.2".to_owned(), script)];
    expect_code(&install_from(&home, "ffmpeg", &recipe.write(place.dir.path())).output().unwrap(), 0);
    let path = stdout(&run(&home, &["path", "ffmpeg"]));
    let ran = Command::new(path.trim_end()).output().unwrap();
    assert_eq!(stdout(&ran), "I am ffmpeg\n");
}

#[test]
fn unknown_names_list_the_known_ones() {
    let place = Place::new();
    for verb in ["install", "remove", "path"] {
        let output = run(&place.path("home"), &[verb, "tensorflow"]);
        expect_code(&output, 2);
        assert!(stderr(&output).contains("onnxruntime, onnxruntime-gpu, openvino, ffmpeg"), "{}", stderr(&output));
    }
    assert!(!place.path("home").exists());
}

#[test]
fn a_wheel_of_something_else_is_refused() {
    let place = Place::new();
    let home = place.path("home");
    let folder = place.dir.path();
    let good = Recipe::onnxruntime("1.31.1", 100);
    refused(&home, "openvino", &good.write(folder), &["a wheel of onnxruntime", "openvino needs one of openvino"]);
    refused(&home, "onnxruntime@1.20.1", &good.write(folder), &["has version 1.31.1, not 1.20.1"]);
    let (here, other) = match std::env::consts::ARCH {
        "aarch64" => ("aarch64", "x86_64"),
        here => (here, "aarch64"),
    };
    let foreign = Recipe { tag: format!("cp313-cp313-manylinux_2_28_{other}"), ..good.clone() };
    let said = format!("it is for {other}, this machine is {here}");
    refused(&home, "onnxruntime", &foreign.write(folder), &[&said]);
    let new = Recipe { tag: format!("cp313-cp313-manylinux_2_99_{here}"), ..good.clone() };
    refused(&home, "onnxruntime", &new.write(folder), &["it needs glibc 2.99"]);
    let mut old = Recipe::onnxruntime("1.18.1", 100);
    old.files.remove(1);
    refused(&home, "onnxruntime", &old.write(folder), &["1.18.1 carries no libonnxruntime.so", "lowest", "1.19.0"]);
    refused(&home, "onnxruntime", &folder.join("no.whl"), &["no.whl", "No such file"]);
    fs::write(folder.join("text.whl"), "not a wheel").unwrap();
    refused(&home, "onnxruntime", &folder.join("text.whl"), &["text.whl is refused: not a wheel"]);
}

#[test]
fn a_wheel_that_lies_is_refused_by_name() {
    let place = Place::new();
    let home = place.path("home");
    let good = Recipe::onnxruntime("1.31.1", 100);
    let check = |recipe: Recipe, said: &[&str]| refused(&home, "onnxruntime", &recipe.write(place.dir.path()), said);
    let with_file = |name: &str| {
        let mut recipe = good.clone();
        recipe.files.push((name.to_owned(), b"x".to_vec()));
        recipe
    };
    check(with_file("../escaped.so"), &["../escaped.so", "leads out"]);
    check(with_file("/tmp/escaped.so"), &["/tmp/escaped.so", "leads out"]);
    check(with_file("onnxruntime/capi/../../../x.so"), &["leads out"]);
    let link = ("onnxruntime/capi/libonnxruntime_x.so", Some("/etc/passwd"));
    check(Recipe { stowaway: Some(link), ..good.clone() }, &["libonnxruntime_x.so is a symbolic link"]);
    let extra = ("onnxruntime/capi/libonnxruntime_x.so", None);
    check(Recipe { stowaway: Some(extra), ..good.clone() }, &["libonnxruntime_x.so is not listed in RECORD"]);
    let tamper = |tamper: fn(String) -> String| Recipe { tamper, ..good.clone() };
    check(tamper(|record| record.replace("capi/libonnxruntime.so", "capi/libgone.so")), &["is not listed in RECORD"]);
    let missing = tamper(|record| {
        let row = record.lines().next().unwrap().replace("onnxruntime/__init__.py", "gone.so");
        format!("{row}\r\n{record}")
    });
    check(missing, &["gone.so is listed in RECORD but is not there"]);
    let other_hash = tamper(|record| {
        let hashes: Vec<&str> = record.split(',').filter(|field| field.starts_with("sha256=")).collect();
        record.replacen(hashes[1], hashes[0], 1)
    });
    check(other_hash, &["libonnxruntime.so.1.31.1 does not have the hash that RECORD gives"]);
    check(tamper(|record| record.replace("sha256=", "md5=")), &["RECORD line 1 has no sha256"]);
    check(tamper(|record| record.replace(",100\r\n", ",101\r\n")), &["has 100 bytes, RECORD says 101"]);
}

#[test]
fn a_file_that_claims_to_be_huge_is_refused() {
    let place = Place::new();
    let file = Recipe::onnxruntime("1.31.1", 4321).write(place.dir.path());
    let mut bytes = fs::read(&file).unwrap();
    // Both sizes of the stored library, wherever the archive says them.
    let claimed = 4321_u32.to_le_bytes();
    let places: Vec<usize> = (0..bytes.len() - 4).filter(|&at| bytes[at..at + 4] == claimed).collect();
    assert!(places.len() >= 2, "{places:?}");
    for at in places {
        bytes[at..at + 4].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    }
    fs::write(&file, bytes).unwrap();
    refused(&place.path("home"), "onnxruntime", &file, &["libonnxruntime.so.1.31.1 claims 4294967280 bytes"]);
}

#[test]
fn a_flipped_byte_is_refused_or_changes_nothing() {
    let place = Place::new();
    let recipe = Recipe::onnxruntime("1.31.1", 600);
    let file = recipe.write(place.dir.path());
    let good = fs::read(&file).unwrap();
    let home = place.path("good");
    expect_code(&install_from(&home, "onnxruntime", &file).output().unwrap(), 0);
    let expected = contents(&home.join("runtimes/onnxruntime/1.31.1"));

    // Inside the library itself, nothing may pass.
    let library = &recipe.files[1].1;
    let start = good.windows(library.len()).position(|window| window == library).unwrap();
    let home = place.path("flipped");
    let bad = place.path("bad.whl");
    let (mut refused, mut harmless) = (0, 0);
    for at in (0..good.len()).step_by(7) {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&bad, &bytes).unwrap();
        let output = install_from(&home, "onnxruntime", &bad).output().unwrap();
        let inside = (start..start + library.len()).contains(&at);
        if output.status.success() && !inside {
            let folder = home.join("runtimes/onnxruntime/1.31.1");
            assert_eq!(contents(&folder), expected, "byte {at} changed what was installed");
            fs::remove_dir_all(home.join("runtimes")).unwrap();
            harmless += 1;
        } else {
            expect_code(&output, 2);
            assert_eq!(names(&home), [""; 0], "byte {at}");
            refused += 1;
        }
    }
    assert!(refused > harmless && refused > 200, "{refused} refused, {harmless} harmless");
}

#[test]
fn a_killed_install_is_finished_by_the_next() {
    let place = Place::new();
    let home = place.path("home");
    let bytes = 12_000_000;
    let file = Recipe::onnxruntime("1.31.1", bytes).write(place.dir.path());
    let mut unfinished = 0;
    for attempt in 0..24_u64 {
        let mut child = install_from(&home, "onnxruntime", &file).stdout(Stdio::null()).spawn().unwrap();
        // Spread over the whole install, whatever it takes here; the outcome is the same wherever it strikes.
        std::thread::sleep(Duration::from_millis(attempt * 9));
        signal(child.id(), Signal::KILL);
        child.wait().unwrap();
        if !home.join("runtimes/onnxruntime/1.31.1").exists() {
            unfinished += 1;
            continue;
        }
        // What is visible is whole.
        let list: serde_json::Value = serde_json::from_slice(&run(&home, &["list", "--json"]).stdout).unwrap();
        assert_eq!(list["runtimes"][0]["installed"][0]["whole"], true, "{list}");
        expect_code(&run(&home, &["remove", "onnxruntime"]), 0);
    }
    assert!(unfinished > 0, "no kill struck before the end");
    expect_code(&install_from(&home, "onnxruntime", &file).output().unwrap(), 0);
    assert_eq!(names(&home), ["onnxruntime"], "leftovers");
    let library = stdout(&run(&home, &["path", "onnxruntime"]));
    assert_eq!(fs::read(library.trim_end()).unwrap(), noise(bytes));
}

#[test]
fn a_list_clears_away_what_a_killed_install_left() {
    let place = Place::new();
    let home = place.path("home");
    let left = home.join("runtimes/.tmp-1-abc");
    fs::create_dir_all(left.join("unpacked")).unwrap();
    fs::write(left.join("unpacked/libonnxruntime.so"), "half").unwrap();
    expect_code(&run(&home, &["list"]), 0);
    assert_eq!(names(&home), [""; 0]);
    // While somebody is at work, it is theirs.
    fs::create_dir_all(&left).unwrap();
    let lock = fs::File::create(home.join("runtimes/.lock")).unwrap();
    lock.lock().unwrap();
    expect_code(&run(&home, &["list"]), 0);
    assert_eq!(names(&home), [".tmp-1-abc"]);
}

#[test]
fn the_second_of_two_waits_and_says_so() {
    let place = Place::new();
    let home = place.path("home");
    let file = Recipe::onnxruntime("1.31.1", 1000).write(place.dir.path());
    fs::create_dir_all(home.join("runtimes")).unwrap();
    let lock = fs::File::create(home.join("runtimes/.lock")).unwrap();
    lock.lock().unwrap();
    let log = place.path("log");
    let start = || {
        let mut command = install_from(&home, "onnxruntime", &file);
        command.stderr(fs::File::create(&log).unwrap()).stdout(Stdio::null()).spawn().unwrap()
    };
    let said = || fs::read_to_string(&log).unwrap().contains("waiting for it to end").then_some(());
    let mut stopped = start();
    until("the line that it waits", said);
    signal(stopped.id(), Signal::INT);
    assert_eq!(stopped.wait().unwrap().code(), Some(130));
    assert_eq!(names(&home), [""; 0]);

    let mut waiting = start();
    until("the line that it waits", said);
    assert_eq!(names(&home), [""; 0]);
    drop(lock);
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
    assert_eq!(names(&home), ["onnxruntime"]);

    let both = [start(), start()];
    assert!(both.into_iter().all(|mut child| child.wait().unwrap().success()));
}

#[test]
fn an_interrupted_install_leaves_nothing() {
    let place = Place::new();
    let home = place.path("home");
    let file = Recipe::onnxruntime("1.31.1", 60_000_000).write(place.dir.path());
    // One that ends before the signal reaches it proves nothing; it is tried again.
    until("an install to be interrupted", || {
        let mut child = install_from(&home, "onnxruntime", &file).stdout(Stdio::null()).spawn().unwrap();
        until("unpacking to begin", || (!names(&home).is_empty()).then_some(()));
        signal(child.id(), Signal::INT);
        if child.wait().unwrap().code() == Some(130) {
            return Some(());
        }
        expect_code(&run(&home, &["remove", "onnxruntime"]), 0);
        None
    });
    assert_eq!(names(&home), [""; 0]);
}

#[test]
fn removing_what_is_not_installed_advised_installing_it() {
    let place = Place::new();
    let home = place.path("home");
    let remove = |name: &str| {
        let output = run(&home, &["remove", name]);
        expect_code(&output, 1);
        stderr(&output)
    };
    let said = remove("openvino");
    assert!(said.contains("openvino is not installed in ") && said.trim_end().ends_with("; no runtime is"), "{said}");
    let file = Recipe::onnxruntime("1.31.1", 100).write(place.dir.path());
    expect_code(&install_from(&home, "onnxruntime", &file).output().unwrap(), 0);
    for name in ["openvino", "onnxruntime@1.20.1"] {
        let said = remove(name);
        assert!(said.trim_end().ends_with("; installed: onnxruntime@1.31.1") && !said.contains("install "), "{said}");
    }
    let path = run(&home, &["path", "openvino"]);
    assert!(stderr(&path).contains("run `prony runtime install openvino`"), "who wants its path needs it");
}

#[test]
fn a_disk_without_room_is_named_and_nothing_is_left() {
    let place = Place::new();
    let home = place.path("home");
    let file = Recipe::onnxruntime("1.31.1", 3_000_000).write(place.dir.path());
    // A file-size limit stands in for the full disk: both end a write early.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\""])
        .arg(assert_cmd::cargo::cargo_bin!("prony"))
        .args(["runtime", "install", "onnxruntime", "--from"])
        .arg(&file)
        .arg("--home")
        .arg(&home)
        .output()
        .unwrap();
    expect_code(&output, 1);
    assert!(stderr(&output).contains("libonnxruntime.so.1.31.1: File too large"), "{}", stderr(&output));
    assert!(stderr(&output).contains("free some space or name another folder with --home"), "{}", stderr(&output));
    assert_eq!(names(&home), [""; 0]);
}

#[test]
fn without_pip_the_way_out_is_named() {
    let place = Place::new();
    let home = place.path("home");
    let empty = place.path("bin");
    fs::create_dir(&empty).unwrap();
    let install = || {
        let mut command = runtime(&home, &["install", "onnxruntime"]);
        command.env("PATH", &empty).env_remove("VIRTUAL_ENV");
        command
    };
    let output = install().output().unwrap();
    expect_code(&output, 1);
    assert!(stderr(&output).contains("install python3-pip, or fetch the wheel elsewhere and use --from"));
    let old = empty.join("python3");
    fs::write(&old, "#!/bin/sh\necho 'pip 20.0.2 from /usr/lib (python 3.8)'\n").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
    let output = install().output().unwrap();
    expect_code(&output, 1);
    assert!(stderr(&output).contains("pip 20.0 cannot be told more than one platform"), "{}", stderr(&output));
    assert_eq!(names(&home), [""; 0]);
}

/// The real thing: pip, its index, the official wheel. Only where the environment demands it, for it needs a network.
#[test]
fn the_official_onnxruntime_is_installed_with_pip() {
    if std::env::var_os("PRONY_TEST_REQUIRE").is_none() {
        skip("needs pip and a network; PRONY_TEST_REQUIRE=1 demands it");
        return;
    }
    assert!(has_tool("python3"));
    let place = Place::new();
    let home = place.path("home");
    // Killed while pip is at work: pip ends too, and the next install clears up.
    let mut child = runtime(&home, &["install", "onnxruntime"]).stderr(Stdio::null()).spawn().unwrap();
    let folder = until("pip to be called", || names(&home).into_iter().find(|name| name.starts_with(".tmp-")));
    let at_work = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
        lines.filter(|line| line.contains("pip\0download") && line.contains(&folder)).count()
    };
    until("pip to work", || (at_work() > 0).then_some(()));
    signal(child.id(), Signal::KILL);
    child.wait().unwrap();
    until("pip to end with its parent", || (at_work() == 0).then_some(()));

    let output = run(&home, &["install", "onnxruntime"]);
    expect_code(&output, 0);
    assert_eq!(names(&home), ["onnxruntime"]);
    let library = stdout(&run(&home, &["path", "onnxruntime"]));
    assert!(fs::read(library.trim_end()).unwrap().starts_with(b"\x7fELF"));
    let again = run(&home, &["install", "onnxruntime"]);
    expect_code(&again, 0);
    assert!(stdout(&again).contains("installed already and whole"), "{}", stdout(&again));
    let none = run(&home, &["install", "onnxruntime@0.0.1"]);
    expect_code(&none, 1);
    assert!(stderr(&none).contains("no wheel of onnxruntime==0.0.1") && stderr(&none).contains("there is 1."));
}
