//! What a resumed run would execute: libraries, programs, plugins and engines. A record may come from anybody, so none of it
//! is opened because the record names it: it must have been found on this machine, or be named again.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use prony_files::Folder;
use prony_types::{BackendName, CellSpec, ModelSource, Plan, RuntimeName, RuntimeRecord, RuntimeSpec, RuntimeState};

use prony_plan::options::BenchOptions;
use prony_runtimes::Found;

/// Something that must be what it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Then {
    pub(super) what: String,
    pub(super) then: String,
    pub(super) now: String,
}

/// Every library and program of a plan with its version then and now. One that was not found here is an error: it was not
/// opened, and will not be.
pub(super) fn runtimes(plan: &Plan, then: &[RuntimeRecord], found: &Found) -> anyhow::Result<BTreeSet<Then>> {
    let missing = |path: &Path| {
        let path = path.display();
        format!("{path} was not found on this machine; if it was given by --library, give it again")
    };
    let mut all = BTreeSet::new();
    for (name, spec) in specs(plan) {
        let name = name.context("it names a library for a backend that has none")?;
        let now = version(&found.runtimes, name, &spec.library).with_context(|| missing(&spec.library))?;
        all.insert(Then { what: spec.library.display().to_string(), then: spec.version.clone(), now });
        for (name, path) in &spec.companions {
            let then = version(then, *name, path).unwrap_or_else(|| "unknown".to_owned());
            let now = version(&found.runtimes, *name, path).with_context(|| missing(path))?;
            all.insert(Then { what: format!("{name} {}", path.display()), then, now });
        }
        let stray = spec.search.iter().find(|folder| !found.search.contains(folder));
        if let Some(folder) = stray {
            bail!("libraries are not searched for in {} on this machine", folder.display());
        }
    }
    Ok(all)
}

/// The version of a copy that can be used, where there is one at this path.
fn version(copies: &[RuntimeRecord], name: RuntimeName, path: &Path) -> Option<String> {
    let path = path.display().to_string();
    // A lean TensorRT stands in for a whole one.
    let is_it = |of: RuntimeName| of == name || (name, of) == (RuntimeName::Nvinfer, RuntimeName::NvinferLean);
    let ready = |copy: &&RuntimeRecord| copy.state == RuntimeState::Ready && is_it(copy.name);
    let copy = copies.iter().filter(ready).find(|copy| copy.path.as_ref() == Some(&path))?;
    Some(copy.version.clone().unwrap_or_else(|| "unknown".to_owned()))
}

/// Everything of a plan that is opened as a library or run as a program; without a name where nothing of it should be.
fn specs(plan: &Plan) -> impl Iterator<Item = (Option<RuntimeName>, &RuntimeSpec)> {
    let named = |backend: BackendName| backend.needs().map(|(name, _)| name);
    let cells = || plan.cells.iter().chain(&plan.standby);
    let executing = cells().filter_map(move |cell: &CellSpec| Some((named(cell.backend), cell.runtime.as_ref()?)));
    let building = cells().filter_map(|cell| Some((Some(RuntimeName::Nvinfer), cell.builder.as_ref()?)));
    let reference = &plan.reference;
    let reference = reference.runtime.as_ref().map(move |spec| (named(reference.backend), spec));
    executing.chain(building).chain(reference)
}

/// Refuses plugins and caches of engines that only the record names.
pub(super) fn named_again(plan: &Plan, options: &BenchOptions, cache: Option<&Path>) -> anyhow::Result<()> {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let inside = |path: &Path, folder: &PathBuf| {
        path.starts_with(folder) && !path.components().any(|part| part == Component::ParentDir)
    };
    let own = cache.map(|cache| cache.join("tensorrt"));
    let given = |flag: &Option<PathBuf>| flag.iter().map(absolute).chain(own.clone()).collect::<Vec<_>>();
    let plugins: Vec<PathBuf> = options.engine.plugin.iter().map(absolute).collect();
    let (engines, timings) = (given(&options.trt_engine_cache), given(&options.trt_timing_cache));
    for provider in plan.cells.iter().chain(&plan.standby).map(|cell| &cell.provider) {
        let used = |flag, paths, known| (flag, paths, known);
        for (flag, paths, known) in [
            used("--plugin", provider.trt_plugins.iter().collect::<Vec<_>>(), &plugins),
            used("--trt-engine-cache", provider.trt_engine_cache.iter().collect(), &engines),
            used("--trt-timing-cache", provider.trt_timing_cache.iter().collect(), &timings),
        ] {
            let strange = paths.into_iter().find(|path| !known.iter().any(|known| inside(&absolute(path), known)));
            if let Some(path) = strange {
                bail!("the run used {}; to resume it, give it again: {flag} {}", path.display(), path.display());
            }
        }
        ensure!(
            provider.trt_plugins.len() == provider.trt_plugin_sha256.len(),
            "the record does not have the hash of every plugin; run the plan again"
        );
    }
    Ok(())
}

/// Every plugin with its hash then and now.
pub(super) fn plugins(plan: &Plan) -> BTreeSet<Then> {
    let cells = plan.cells.iter().chain(&plan.standby);
    let given = cells.flat_map(|cell| cell.provider.trt_plugins.iter().zip(&cell.provider.trt_plugin_sha256));
    let now = |path: &Path| prony_model::sha256_file(path).unwrap_or_else(|_| "gone".to_owned());
    let one = |(path, then): (&PathBuf, &String)| Then {
        what: format!("plugin {}", path.display()),
        then: then.clone(),
        now: now(path),
    };
    given.map(one).collect()
}

/// An engine holds code. One that others own or may write to is not executed because a record names it.
pub(super) fn refuse_foreign_engine(source: &ModelSource) -> anyhow::Result<()> {
    let ModelSource::File(path) = source else { return Ok(()) };
    if !source.is_engine() {
        return Ok(());
    }
    let named = || path.display().to_string();
    let folder = Folder::open(path.parent().unwrap_or(Path::new(""))).with_context(named)?;
    let foreign = match folder.foreign().with_context(named)? {
        Some(foreign) => Some(format!("its folder {foreign}")),
        None => folder.foreign_file(path.file_name().unwrap_or_default()).with_context(named)?.map(|it| it.to_string()),
    };
    match foreign {
        Some(foreign) => bail!("the engine {} is not loaded: {foreign}", path.display()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use prony_types::{ModelSpec, Precision, SceneKind};

    use super::*;
    use prony_plan::{Machine, Request};
    use prony_work::Silent;

    fn found() -> Found {
        let ready = |name, path: &str| RuntimeRecord {
            name,
            state: RuntimeState::Ready,
            path: Some(path.to_owned()),
            found_by: None,
            version: Some("1.0".to_owned()),
            provides: Vec::new(),
            reason: None,
            trusted: None,
            looked: Vec::new(),
            remedy: None,
        };
        let mut found = Found::default();
        found.runtimes =
            vec![ready(RuntimeName::Onnxruntime, "/lib/ort.so"), ready(RuntimeName::Ffmpeg, "/bin/ffmpeg")];
        found.search = vec!["/lib/cuda".into()];
        found
    }

    fn cell(backend: BackendName, runtime: RuntimeSpec) -> CellSpec {
        let model = ModelSpec::new("m", ModelSource::Builtin(SceneKind::Rgb), "ab");
        CellSpec { runtime: Some(runtime), ..CellSpec::new(model, backend, Precision::Fp32) }
    }

    fn plan(cells: Vec<CellSpec>) -> Plan {
        let options = BenchOptions { models: vec!["builtin-rgb".into()], ..BenchOptions::default() };
        let machine =
            Machine { runtime: &|_| Ok(None), absent: &|_| String::new(), gpus: 0, cpus: 2, mem_available_bytes: None };
        let inputs = Request::new(options).unwrap().open(None, &Silent).unwrap();
        Plan { cells, ..inputs.plan(&machine).unwrap().plan }
    }

    #[test]
    fn a_library_that_only_the_record_names_was_opened() {
        use BackendName::{OrtCpu, OrtCuda, Rten, Tensorrt, Trtexec};
        let spec = |path: &str, version: &str| RuntimeSpec::new(path, version);
        let good = spec("/lib/ort.so", "1.0");
        let with = |change: &dyn Fn(&mut RuntimeSpec)| {
            let mut spec = good.clone();
            change(&mut spec);
            spec
        };
        let same = runtimes(&plan(vec![cell(OrtCpu, good.clone())]), &[], &found()).unwrap();
        assert!(same.iter().all(|it| it.then == it.now) && same.len() == 1, "{same:?}");
        let hostile = [
            (cell(OrtCpu, spec("/tmp/evil.so", "1.0")), "/tmp/evil.so was not found on this machine"),
            // The word that once stood for what is not there.
            (cell(OrtCpu, spec("/tmp/evil.so", "gone")), "/tmp/evil.so was not found on this machine"),
            // Found, and something else.
            (cell(Trtexec, spec("/bin/ffmpeg", "1.0")), "/bin/ffmpeg was not found on this machine"),
            (cell(Tensorrt, good.clone()), "/lib/ort.so was not found on this machine"),
            (cell(Rten, good.clone()), "a backend that has none"),
            (cell(OrtCuda, with(&|it| it.search = vec!["/lib/cuda".into(), "/tmp/evil".into()])), "in /tmp/evil on"),
            (
                cell(OrtCpu, with(&|it| drop(it.companions.insert(RuntimeName::Nvonnxparser, "/tmp/p.so".into())))),
                "/tmp/p.so was not found",
            ),
        ];
        for (cell, words) in hostile {
            let builder = CellSpec { runtime: None, builder: cell.runtime.clone(), ..cell.clone() };
            let standby = Plan { standby: vec![cell.clone()], ..plan(Vec::new()) };
            for plan in [plan(vec![cell]), standby] {
                let error = runtimes(&plan, &[], &found()).unwrap_err().to_string();
                assert!(error.contains(words), "{words}: {error}");
            }
            assert!(runtimes(&plan(vec![builder]), &[], &found()).is_err(), "{words}");
        }
        let mut plan = plan(Vec::new());
        plan.reference.backend = OrtCpu;
        plan.reference.runtime = Some(spec("/tmp/evil.so", "gone"));
        assert!(runtimes(&plan, &[], &found()).is_err());
    }

    #[test]
    fn a_plugin_that_only_the_record_names_was_opened() {
        let mut cell = cell(BackendName::Rten, RuntimeSpec::new("", ""));
        cell.provider.trt_plugins = vec!["/tmp/evil.so".into()];
        cell.provider.trt_plugin_sha256 = vec!["ab".into()];
        let plan = |cell: &CellSpec| plan(vec![cell.clone()]);
        let mut options = BenchOptions::default();
        let error = named_again(&plan(&cell), &options, None).unwrap_err().to_string();
        assert_eq!(error, "the run used /tmp/evil.so; to resume it, give it again: --plugin /tmp/evil.so");
        options.engine.plugin = vec!["/tmp/evil.so".into()];
        named_again(&plan(&cell), &options, None).unwrap();
        cell.provider.trt_plugin_sha256.clear();
        assert!(named_again(&plan(&cell), &options, None).is_err(), "an unhashed plugin");
        cell.provider = prony_types::ProviderSpec::default();
        // Engines of a cache are code as well.
        cell.provider.trt_engine_cache = Some("/tmp/engines".into());
        let error = named_again(&plan(&cell), &options, Some(Path::new("/home/x/cache"))).unwrap_err().to_string();
        assert!(error.ends_with("--trt-engine-cache /tmp/engines"), "{error}");
        cell.provider.trt_engine_cache = Some("/home/x/cache/tensorrt/ab".into());
        named_again(&plan(&cell), &options, Some(Path::new("/home/x/cache"))).unwrap();
        cell.provider.trt_timing_cache = Some("/home/x/cache/tensorrt/../../evil".into());
        assert!(named_again(&plan(&cell), &options, Some(Path::new("/home/x/cache"))).is_err());
    }

    #[test]
    fn an_engine_of_somebody_else_was_loaded() {
        use std::os::unix::fs::PermissionsExt as _;
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("m.engine");
        std::fs::write(&path, b"ftrt").unwrap();
        let source = ModelSource::File(path.clone());
        refuse_foreign_engine(&source).unwrap();
        for place in [path.as_path(), top.path()] {
            let before = std::fs::metadata(place).unwrap().permissions();
            std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o777)).unwrap();
            let error = refuse_foreign_engine(&source).unwrap_err().to_string();
            assert!(error.contains("may be written by everybody"), "{error}");
            std::fs::set_permissions(place, before).unwrap();
        }
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            let error = refuse_foreign_engine(&source).unwrap_err().to_string();
            assert!(error.contains("belongs to user 65534"), "{error}");
        }
    }
}
