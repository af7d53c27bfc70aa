//! Leaves host name and paths out of what a run writes, so that it can be shown to others. The host name is only in
//! the environment, which `prony_store::redact` clears; paths may be in any text.

use std::fs;
use std::path::{Path, PathBuf};

use prony_store::write_atomic;
use prony_types::{ModelSource, Plan, RunRecord, SourceSpec};
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
    pub(crate) fn new(plan: &Plan, out: &Path) -> Redactor {
        let mut folders: Vec<PathBuf> = Vec::new();
        let mut add = |path: &Path| folders.extend(std::path::absolute(path).ok());
        add(out);
        add(Path::new("."));
        std::env::var_os("HOME").iter().for_each(|home| add(Path::new(home)));
        match &plan.input.source {
            SourceSpec::Dir(path) | SourceSpec::Tensor(path) => add(path),
            SourceSpec::Scenes => {}
        }
        for cell in &plan.cells {
            if let ModelSource::File(path) = &cell.model.source {
                path.parent().iter().for_each(|parent| add(parent));
            }
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

    fn text(&self, text: &str) -> String {
        self.needles.iter().fold(text.to_owned(), |text, (needle, stand_in)| text.replace(needle, stand_in))
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

    /// Rewrites log files; one that is not there is no problem.
    pub(crate) fn text_files(&self, paths: impl Iterator<Item = PathBuf>) -> anyhow::Result<()> {
        for path in paths {
            if let Ok(text) = fs::read(&path) {
                write_atomic(&path, self.text(&String::from_utf8_lossy(&text)).as_bytes())?;
            }
        }
        Ok(())
    }
}
