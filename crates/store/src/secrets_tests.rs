//! Texts with secrets in them.

use super::*;

fn secrets(paths: &[&str]) -> Secrets {
    let mut secrets = Secrets::default();
    paths.iter().for_each(|path| secrets.add_written(path));
    secrets
}

#[test]
fn a_path_with_blanks_was_left_in_the_text() {
    let known = secrets(&["/data/Top Secret/my models/yolo one.onnx", "/srv/Zoë/Bilder für alle/", "/mnt/x"]);
    for (text, expected) in [
        ("cannot load /data/Top Secret/my models/yolo one.onnx: bad", "cannot load yolo one.onnx: bad"),
        ("in /data/Top Secret/my models.", "in my models."),
        ("in '/data/Top Secret/my models'", "in 'my models'"),
        ("/data/Top Secret/my models/other file.data is missing", "other file.data is missing"),
        ("[W] /srv/Zoë/Bilder für alle/a/b c.jpg", "[W] b c.jpg"),
        ("file:///srv/Zoë/Bilder für alle/x", "file://x"),
        ("key=/mnt/x, y", "key=x, y"),
        ("/mnt/xy and /mnt/x.y", "xy and x.y"),
        ("\"/mnt/x\\n\"", "\"x\\n\""),
    ] {
        assert_eq!(known.text(text), expected, "{text}");
    }
}

#[test]
fn a_path_that_nobody_knew_of_is_cut_down_too() {
    let none = Secrets::default();
    for (text, expected) in [
        ("cannot open /opt/Some Vendor/lib dir/x.so: no such file", "cannot open x.so: no such file"),
        ("cannot open \"/opt/Some Vendor/x y.so\" at all", "cannot open \"x y.so\" at all"),
        ("cannot open '/opt/Some Vendor/x y.so'", "cannot open 'x y.so'"),
        ("see ~/my notes/a.txt, please", "see a.txt, please"),
        ("/a/b.onnx at 3/4 of it, 12 frames/s", "b.onnx at 3/4 of it, 12 frames/s"),
        ("copied /a/b to /c/d", "copied b to d"),
        ("and/or 3/4 of frames/s, / alone", "and/or 3/4 of frames/s, / alone"),
        ("dlopen(/a/b/c.so) failed; LD=/x/y:/z/w", "dlopen(c.so) failed; LD=w"),
    ] {
        assert_eq!(none.text(text), expected, "{text}");
    }
}

#[test]
fn names_of_user_and_host_go_where_they_are_words() {
    let mut known = secrets(&["/home/ann/x"]);
    known.add_host("annex.example.org");
    for (text, expected) in [
        ("/home/ann: permission denied", "(user): permission denied"),
        ("owner ann on annex, annex.example.org", "owner (user) on (host), (host)"),
        ("annotations of planning on annex-2", "annotations of planning on annex-2"),
    ] {
        assert_eq!(known.text(text), expected, "{text}");
    }
    // A user whose name is a word of every report cannot be told from it.
    known.add_user("ms");
    known.add_user("root");
    known.add_host("localhost");
    assert_eq!(known.text("12 ms as root on localhost"), "12 ms as root on localhost");
}

#[test]
fn names_of_things_stay_in_json() {
    let mut known = secrets(&["/home/rten-user/my model.onnx", "runs/my out"]);
    known.add_user("fp32");
    let mut value = serde_json::json!({
        "backend": "rten", "precision": "fp32", "n": 3, "node": "/model.0/conv/Conv",
        "path": "/somewhere/else/libx.so", "looked": ["/a/b c/d", "/e/f"],
        "message": "node /model.0/conv/Conv of /home/rten-user/my model.onnx in runs/my out/x",
        "/home/rten-user/my model.onnx": "plain",
    });
    known.json(&mut value);
    let expected = serde_json::json!({
        "backend": "rten", "precision": "fp32", "n": 3, "node": "/model.0/conv/Conv",
        "path": "libx.so", "looked": ["d", "f"], "message": "node Conv of my model.onnx in x",
        "my model.onnx": "plain",
    });
    assert_eq!(value, expected);
}

#[test]
fn links_are_known_by_both_names() {
    let top = tempfile::tempdir().unwrap();
    let real = top.path().join("real place");
    std::fs::create_dir(&real).unwrap();
    let link = top.path().join("my link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mut known = Secrets::default();
    known.add_path(&link.join("model one.onnx"));
    for path in [&real, &link] {
        let text = format!("cannot read {}/model one.onnx or {}/b c", path.display(), path.display());
        assert_eq!(known.text(&text), "cannot read model one.onnx or b c");
    }
}
