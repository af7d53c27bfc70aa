//! Leaves host name and paths out of what a run writes, so that it can be shown to others. The host name is only in
//! the environment, which `prony_store::redact` clears; paths may be in any text.

use std::fs;
use std::path::{Path, PathBuf};

use prony_store::write_atomic;
use prony_types::{DataSource, DataSpec, ModelSource, Plan, RunRecord, SourceSpec};
use serde::Serialize;
use serde_json::Value;

/// Knows what must not be seen.
#[derive(Clone, Debug)]
pub(crate) struct Redactor {
    /// Needle and what stands for it, longest first.
    needles: Vec<(String, String)>,
}

impl Redactor {
    /// Everything private about a plan on this machine.
    pub(crate) fn new(plan: &Plan, out: &Path, home: Option<&Path>) -> Redactor {
        let mut folders: Vec<PathBuf> = Vec::new();
        let mut add = |path: &Path| folders.extend(std::path::absolute(path).ok());
        add(out);
        add(Path::new("."));
        std::env::var_os("HOME").iter().for_each(|home| add(Path::new(home)));
        match &plan.input.source {
            SourceSpec::Dir(path) | SourceSpec::Tensor(path) => add(path),
            SourceSpec::Scenes => {}
        }
        if let Some(DataSpec { source, ids, images, .. }) = plan.evaluation.as_ref().map(|spec| &spec.data) {
            if let DataSource::Path(path) = source {
                add(path);
                path.parent().into_iter().for_each(&mut add);
            }
            images.iter().for_each(|path| add(path));
            ids.iter().filter_map(|path| path.parent()).for_each(&mut add);
        }
        plan.gates.baseline.iter().filter_map(|path| path.parent()).for_each(&mut add);
        crate::runtime::home::folder(home).iter().for_each(|home| add(home));
        let models = plan.cells.iter().map(|cell| &cell.model).chain(&plan.reference.model);
        for model in models {
            if let ModelSource::File(path) = &model.source {
                path.parent().iter().for_each(|parent| add(parent));
            }
            model.origin.iter().filter_map(|origin| origin.path.parent()).for_each(&mut add);
        }
        let own = plan.cells.iter().flat_map(|cell| cell.runtime.iter().chain(&cell.builder));
        for runtime in own.chain(&plan.reference.runtime) {
            let libraries = std::iter::once(&runtime.library).chain(runtime.companions.values());
            libraries.filter_map(|library| library.parent()).for_each(&mut add);
            runtime.search.iter().for_each(|folder| add(folder));
        }
        let of_engines = plan.cells.iter().filter_map(|cell| cell.engine.as_ref()?.calibration.as_ref());
        let of_rewrites = plan.cells.iter().filter_map(|cell| cell.rewrite.as_ref()?.calibration());
        for calibration in of_engines.chain(of_rewrites) {
            if let SourceSpec::Dir(path) | SourceSpec::Tensor(path) = &calibration.source {
                add(path);
            }
        }
        for provider in plan.cells.iter().map(|cell| &cell.provider) {
            let caches = provider.trt_engine_cache.iter().chain(&provider.trt_timing_cache);
            caches.chain(&provider.trt_int8_table).for_each(|path| add(path));
            provider.trt_plugins.iter().filter_map(|plugin| plugin.parent()).for_each(&mut add);
        }
        let mut needles: Vec<(String, String)> = Vec::new();
        for folder in folders.iter().filter(|folder| folder.components().count() > 1) {
            let name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let folder = folder.display().to_string();
            needles.push((format!("{folder}/"), String::new()));
            needles.push((folder, name));
        }
        needles.sort_by_key(|(needle, _)| std::cmp::Reverse(needle.len()));
        Redactor { needles }
    }

    /// A text without them.
    pub(crate) fn text(&self, text: &str) -> String {
        self.needles.iter().fold(text.to_owned(), |text, (needle, stand_in)| replace(&text, needle, stand_in))
    }

    /// A value as JSON without what must not be seen.
    pub(crate) fn json(&self, value: &impl Serialize) -> Value {
        let mut value = serde_json::to_value(value).unwrap_or_default();
        self.scrub(&mut value);
        value
    }

    fn scrub(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.scrub(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.scrub(field)),
            _ => {}
        }
    }

    /// A record: by its fields first, then whatever its free texts still hold.
    pub(crate) fn record(&self, record: &mut RunRecord) {
        prony_store::redact(record);
        if let Ok(scrubbed) = serde_json::from_value(self.json(record)) {
            *record = scrubbed;
        }
    }

    /// Rewrites a log file; one that is not there is no problem.
    pub(crate) fn text_file(&self, path: &Path) -> anyhow::Result<()> {
        if let Ok(text) = fs::read(path) {
            write_atomic(path, self.text(&String::from_utf8_lossy(&text)).as_bytes())?;
        }
        Ok(())
    }
}

/// Replaces a path where it stands as a whole, not where it is the beginning of a longer name.
fn replace(text: &str, needle: &str, stand_in: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(needle) {
        let (before, found) = rest.split_at(at);
        let after = &found[needle.len()..];
        let inside_name = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        let begins = !before.chars().next_back().is_some_and(inside_name);
        let ends = needle.ends_with('/') || !after.chars().next().is_some_and(inside_name);
        out.push_str(before);
        out.push_str(if begins && ends { stand_in } else { needle });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::replace;

    #[test]
    fn a_path_is_replaced_whole_or_not_at_all() {
        assert_eq!(replace("in /a/b, /a/b/c and /a/bc", "/a/b", "b"), "in b, b/c and /a/bc");
        assert_eq!(replace("/a/b/c.png: bad; x/a/b/d", "/a/b/", ""), "c.png: bad; x/a/b/d");
    }
}
