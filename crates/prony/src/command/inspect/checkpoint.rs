//! What a PyTorch checkpoint is. Its pickle is read as data; nothing in it is executed.

use std::path::Path;

use prony_model::pt::{Checkpoint, plain};
use prony_model::sha256_file;
use prony_types::os_text::path_to_text;
use serde_json::{Map, Value, json};

use super::text::{Lines, NAMES, OPERATORS, size, some};
use crate::command::with_sign_of_life;

/// What is known of a checkpoint.
pub(super) struct Findings<'a> {
    name: &'a str,
    path: &'a Path,
    bytes: u64,
    sha256: String,
    checkpoint: Checkpoint,
}

/// Reads a checkpoint.
pub(super) fn read<'a>(name: &'a str, path: &'a Path) -> anyhow::Result<Findings<'a>> {
    let checkpoint = with_sign_of_life("reading the checkpoint", || Checkpoint::open(path))?;
    let sha256 = with_sign_of_life("hashing the checkpoint", || sha256_file(path))?;
    Ok(Findings { name, path, bytes: path.metadata()?.len(), sha256, checkpoint })
}

impl Findings<'_> {
    /// Whether it can be made into a graph, as far as that is known without trying.
    pub(super) fn is_supported(&self) -> bool {
        self.checkpoint.refusal().is_none()
    }

    pub(super) fn json(&self) -> Value {
        let checkpoint = &self.checkpoint;
        let archive = &checkpoint.archive;
        let stored =
            checkpoint.stored_elements().into_iter().map(|(element, count)| (element.to_string(), count.into()));
        let modules = checkpoint.modules().into_iter().map(|(class, count)| (class.to_string(), count.into()));
        json!({
            "model": self.name,
            "format": "pt",
            "path": path_to_text(self.path),
            "bytes": self.bytes,
            "sha256": self.sha256,
            "container": {
                "version": archive.text("version"),
                "byteorder": archive.text("byteorder"),
                "root": archive.root(),
                "members": archive.members(),
            },
            "ultralytics": checkpoint.version,
            "date": checkpoint.date,
            "epoch": checkpoint.epoch,
            "holder": checkpoint.holder.to_string(),
            "class": checkpoint.model.as_ref().map(|model| model.class.to_string()),
            "head": checkpoint.head().map(|head| head.class.to_string()),
            "yaml": checkpoint.yaml,
            "task": checkpoint.task,
            "classes": checkpoint.classes,
            "names": checkpoint.names,
            "strides": checkpoint.strides,
            "imgsz": checkpoint.imgsz,
            "tensors": checkpoint.tensors(),
            "stored_elements": stored.collect::<Map<_, _>>(),
            "modules": modules.collect::<Map<_, _>>(),
            "calls": checkpoint.calls,
            "refusal": checkpoint.refusal(),
        })
    }

    pub(super) fn text(&self) -> String {
        let checkpoint = &self.checkpoint;
        let archive = &checkpoint.archive;
        let mut lines = Lines(format!("{}: PyTorch checkpoint\n", self.name));
        lines.add("file", format!("{}, {}", self.path.display(), size(self.bytes)));
        lines.add("sha256", &self.sha256);
        let version = archive.text("version").map_or_else(|| "unknown".to_owned(), |version| plain(&version));
        let (root, members) = (plain(archive.root()), archive.members());
        lines.add("container", format!("torch zip, version {version}, {members} members, saved as {root}"));
        let facts = [("Ultralytics", &checkpoint.version), ("on", &checkpoint.date)];
        let facts = facts.into_iter().filter_map(|(word, fact)| Some(format!("{word} {}", fact.as_ref()?)));
        let facts = facts.collect::<Vec<_>>().join(" ");
        lines.maybe("written by", (!facts.is_empty()).then_some(facts));
        match &checkpoint.model {
            Some(model) => lines.add("model", format!("{}, under {}", model.class, checkpoint.holder)),
            None => lines.add("model", format!("none; {} tensors under {}", checkpoint.tensors(), checkpoint.holder)),
        }
        lines.maybe("head", checkpoint.head().map(|head| &head.class));
        lines.maybe("described by", checkpoint.yaml.as_deref());
        lines.maybe("task", checkpoint.task.as_deref());
        lines.maybe("image size", checkpoint.imgsz.map(|[height, width]| format!("{height}x{width} (height x width)")));
        let strides: Vec<String> = checkpoint.strides.iter().map(ToString::to_string).collect();
        lines.maybe("strides", (!strides.is_empty()).then(|| strides.join(", ")));
        let names: Vec<String> = checkpoint.names.values().map(|name| plain(name)).collect();
        match names.is_empty() {
            true => lines.maybe("classes", checkpoint.classes),
            false => lines.add("classes", some(&names, NAMES)),
        }
        self.count(&mut lines);
        lines.maybe("not supported", checkpoint.refusal());
        lines.0
    }

    fn count(&self, lines: &mut Lines) {
        let stored = self.checkpoint.stored_elements();
        let by_type: Vec<String> = stored.iter().map(|(element, count)| format!("{count} {element}")).collect();
        lines.add("stored", if by_type.is_empty() { "none".to_owned() } else { by_type.join(", ") });
        let mut modules: Vec<_> = self.checkpoint.modules().into_iter().collect();
        modules.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let kinds: Vec<String> =
            modules.iter().map(|(class, count)| format!("{} {count}", plain(&class.name))).collect();
        let total: usize = modules.iter().map(|(_, count)| count).sum();
        if total > 0 {
            lines.add("modules", format!("{total} of {}", some(&kinds, OPERATORS).replacen(':', " classes:", 1)));
        }
    }
}
