use super::*;
use crate::recipe::tests::recipe;

pub(crate) const ORIGIN: SourceModel<'static> = SourceModel { model: "tiny", onnx_bytes: 100, prony: "0.1.0" };

pub(crate) fn made(bytes: &[u8]) -> FreshEngine {
    FreshEngine { bytes: bytes.to_vec(), build_s: 1.5, ..FreshEngine::default() }
}

/// Asks for an engine; what came, and whether it had to be made.
fn ask(cache: &Cache, recipe: &Recipe, rebuild: bool) -> (Kept, bool) {
    let mut built = false;
    let make = || {
        built = true;
        Ok(made(b"an engine"))
    };
    let kept = cache.get_or_make(recipe, ORIGIN, rebuild, &mut || panic!("nobody holds it"), make).unwrap();
    (kept, built)
}

fn place() -> (tempfile::TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("engines"));
    (folder, cache)
}

#[test]
fn the_second_time_it_is_there() {
    let (_folder, cache) = place();
    let (first, built) = ask(&cache, &recipe(), false);
    assert!(built && !first.from_cache && first.rebuilt_because.is_none());
    let (second, built) = ask(&cache, &recipe(), false);
    assert!(!built && second.from_cache && second.rebuilt_because.is_none());
    assert_eq!(second.sidecar, first.sidecar);
    assert_eq!(fs::read(&second.path).unwrap(), b"an engine");
    let key = recipe().key().unwrap();
    assert_eq!(cache.names(), [format!("{key}.engine"), format!("{key}.engine.json")], "no lock, no temporary file");
}

#[test]
fn a_sidecar_is_plain_fields() {
    let (_folder, cache) = place();
    let (kept, _) = ask(&cache, &recipe(), false);
    let text = fs::read_to_string(format!("{}.json", kept.path.display())).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (field, expected) in [
        ("schema", "prony.engine/1"),
        ("tensorrt", "8.6.0"),
        ("gpu", "NVIDIA H200"),
        ("driver", "580.1"),
        ("model", "tiny"),
        ("prony", "0.1.0"),
    ] {
        assert_eq!(value[field], expected, "{text}");
    }
    assert_eq!(value["sm_count"], 132);
    assert_eq!(value["engine"]["precision"], "fp16");
    assert_eq!(value["engine_sha256"], prony_model::sha256_hex(b"an engine"));
    assert!(value["created"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn another_driver_is_the_reason() {
    let (_folder, cache) = place();
    ask(&cache, &recipe(), false);
    let mut far = recipe();
    far.identity.gpu = "NVIDIA H100".into();
    far.identity.driver = "570.0".into();
    ask(&cache, &far, false);
    let mut new = recipe();
    new.identity.driver = "580.2".into();
    let (kept, built) = ask(&cache, &new, false);
    assert!(built);
    assert_eq!(kept.rebuilt_because.as_deref(), Some("driver 580.1 -> 580.2"), "the nearest of two");
    let mut other = recipe();
    other.engine.refit = true;
    assert_eq!(ask(&cache, &other, false).0.rebuilt_because, None, "another spec is another engine");
}

#[test]
fn what_was_asked_for_again_is_made_again() {
    let (_folder, cache) = place();
    ask(&cache, &recipe(), false);
    let (kept, built) = ask(&cache, &recipe(), true);
    assert!(built);
    assert_eq!(kept.rebuilt_because.as_deref(), Some("it was asked for"));
}

#[test]
fn damage_is_seen_and_said() {
    let (_folder, cache) = place();
    let (kept, _) = ask(&cache, &recipe(), false);
    let sidecar = PathBuf::from(format!("{}.json", kept.path.display()));
    type Damage<'a> = &'a dyn Fn();
    let cases: [(Damage<'_>, &str); 6] = [
        (&|| fs::write(&kept.path, b"an en").unwrap(), "the engine was truncated: 5 bytes instead of 9"),
        (&|| fs::write(&kept.path, b"").unwrap(), "the engine was truncated: 0 bytes instead of 9"),
        (&|| fs::write(&kept.path, b"an engine and more").unwrap(), "the engine was changed: 18 bytes instead of 9"),
        (&|| fs::write(&kept.path, b"an Engine").unwrap(), "the engine was tampered with: its hash is "),
        (&|| fs::remove_file(&kept.path).unwrap(), "the engine's file was gone"),
        (&|| fs::write(&sidecar, b"{").unwrap(), "the engine had no readable sidecar"),
    ];
    for (damage, expected) in cases {
        damage();
        let (again, built) = ask(&cache, &recipe(), false);
        let because = again.rebuilt_because.unwrap();
        assert!(built && because.starts_with(expected), "{because} instead of {expected}");
        assert!(!ask(&cache, &recipe(), false).1, "mended after: {expected}");
    }
}

#[test]
fn a_build_that_fails_leaves_nothing_and_frees_the_lock() {
    let (_folder, cache) = place();
    let make = || Err(ForgeError::Build("no tactic".into()));
    let error = cache.get_or_make(&recipe(), ORIGIN, false, &mut || panic!("nobody holds it"), make).unwrap_err();
    assert_eq!(error.to_string(), "no tactic");
    assert!(ask(&cache, &recipe(), false).1);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("engines");
    fs::write(&taken, b"a file").unwrap();
    let make = || Ok(made(b"x"));
    let error = Cache::at(&taken).get_or_make(&recipe(), ORIGIN, false, &mut || {}, make).unwrap_err();
    assert!(error.to_string().starts_with("cannot make the cache folder "), "{error}");
}

#[test]
fn an_engine_of_another_recipe_was_believed() {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    let (folder, cache) = place();
    let mut other = recipe();
    other.engine.refit = true;
    let (kept, _) = ask(&cache, &recipe(), false);
    let (strange, _) = ask(&cache, &other, false);
    let beside = |path: &Path| PathBuf::from(format!("{}.json", path.display()));
    let outside = folder.path().join("outside");
    fs::write(&outside, b"an engine").unwrap();
    let writable = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
    type Damage<'a> = Box<dyn Fn() + 'a>;
    let mut cases: Vec<(Damage<'_>, &str)> = vec![
        (
            // Both files are whole, and belong together.
            Box::new(|| {
                fs::copy(&strange.path, &kept.path).unwrap();
                fs::copy(beside(&strange.path), beside(&kept.path)).unwrap();
            }),
            "the engine's sidecar was that of another one",
        ),
        (
            Box::new(|| {
                fs::remove_file(&kept.path).unwrap();
                symlink(&outside, &kept.path).unwrap();
            }),
            "the engine's file could not be read: is a symbolic link",
        ),
        (Box::new(|| writable(&kept.path)), "the engine's file may be written by everybody"),
        (Box::new(|| writable(&beside(&kept.path))), "the engine's file may be written by everybody"),
    ];
    if fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0) {
        let give = || chown(&kept.path, Some(65534), None).unwrap();
        cases.push((Box::new(give), "the engine's file belongs to user 65534"));
    }
    for (damage, expected) in &cases {
        damage();
        let (again, built) = ask(&cache, &recipe(), false);
        let because = again.rebuilt_because.unwrap_or_default();
        assert!(built && because.starts_with(expected), "{because} instead of {expected}");
        assert!(!ask(&cache, &recipe(), false).1, "mended after: {expected}");
    }
    assert_eq!(fs::read(&outside).unwrap(), b"an engine");
    // A folder that others may write to holds nothing that is ours.
    fs::set_permissions(cache.folder(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = cache.get_or_make(&recipe(), ORIGIN, false, &mut || {}, || Ok(made(b"x"))).unwrap_err().to_string();
    assert!(error.contains("it may be written by everybody (mode 0777); choose another with --home"), "{error}");
}
