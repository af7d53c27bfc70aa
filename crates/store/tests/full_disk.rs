//! A record on a disk that has no room for it. A file-size limit stands in for the full disk: both end a write early.

use std::process::Command;

use prony_store::write_atomic;

const FOLDER: &str = "PRONY_TEST_FULL_DISK";

#[test]
fn a_record_that_does_not_fit_leaves_the_old_one_and_no_rest() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let path = std::path::PathBuf::from(folder).join("report.json");
        let error = write_atomic(&path, &vec![b'x'; 1 << 20]).expect_err("one block is the limit");
        assert!(error.is_full(), "{error}");
        assert!(error.to_string().contains("report.json"), "{error}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.json");
    write_atomic(&path, b"old").expect("it fits");
    // The limit holds for a whole process, so it gets one of its own; the shell also ignores the signal for it.
    let child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact \"$1\""])
        .arg(std::env::current_exe().expect("this test"))
        .arg("a_record_that_does_not_fit_leaves_the_old_one_and_no_rest")
        .env(FOLDER, folder.path())
        .output()
        .expect("sh");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(std::fs::read(&path).expect("still there"), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1);
}
