//! What is refused and why: calls that no checkpoint makes, and models of kinds that are not supported.

use super::pickle::{Pickle, Value};
use super::{Checkpoint, Class, Module, PtError, plain};

/// What is supported, for messages.
const SUPPORTED: &str = "supported are detectors of Ultralytics (YOLOv5u, v8, v9, v10, 11, 12 and 26)";

/// Modules whose functions run commands, load code or change files. Nothing is ever called here; that a file asks for
/// one of them means that it should not be loaded elsewhere.
const HOSTILE: [&str; 17] = [
    "os",
    "posix",
    "nt",
    "subprocess",
    "sys",
    "runpy",
    "socket",
    "shutil",
    "importlib",
    "pty",
    "ctypes",
    "webbrowser",
    "code",
    "commands",
    "pickle",
    "marshal",
    "operator",
];
/// The same among Python's own functions.
const HOSTILE_BUILTINS: [&str; 7] = ["eval", "exec", "execfile", "compile", "__import__", "open", "input"];

fn is_builtin(module: &str) -> bool {
    matches!(module, "__builtin__" | "builtins")
}

fn is_hostile(module: &str, name: &str) -> bool {
    let first = module.split('.').next().unwrap_or_default();
    // A name may have dots in it and reach through a harmless module: `torch` and `os.system`.
    let within = name.split('.').rev().skip(1).any(|part| HOSTILE.contains(&part));
    HOSTILE.contains(&first) || within || (is_builtin(module) && HOSTILE_BUILTINS.contains(&name))
}

/// Functions that torch, Ultralytics and numpy have a pickle call.
fn is_usual(module: &str, name: &str) -> bool {
    match module {
        "collections" => matches!(name, "OrderedDict" | "defaultdict"),
        "torch" => matches!(name, "Size" | "device"),
        "torch._utils" => name.starts_with("_rebuild_"),
        "_codecs" => name == "encode",
        "copyreg" | "copy_reg" => name == "_reconstructor",
        "pathlib" => name.ends_with("Path"),
        "datetime" => true,
        _ if is_builtin(module) => {
            matches!(name, "set" | "frozenset" | "getattr" | "slice" | "bytearray" | "complex" | "range" | "xrange")
        }
        _ => module.starts_with("numpy") && matches!(name, "scalar" | "dtype" | "_reconstruct"),
    }
}

/// Refuses a pickle that would do harm where it is loaded, and names the calls that no checkpoint makes.
pub(super) fn calls(pickle: &Pickle) -> Result<Vec<String>, PtError> {
    const LISTED: usize = 20;
    let mut unusual: Vec<String> = Vec::new();
    for value in pickle.values() {
        let made = match value {
            // Also where it is only an argument: another function may be the one that calls it.
            Value::Global(global) if is_hostile(&global.0, &global.1) => {
                return Err(PtError::Content(format!(
                    "it would call {} when it is loaded; nothing was executed here; do not load it with torch",
                    plain(&format!("{}.{}", global.0, global.1))
                )));
            }
            Value::Reduce(made) => made,
            _ => continue,
        };
        let path = match pickle.global(made.callable) {
            Some((module, name)) if is_usual(module, name) => continue,
            Some((module, name)) => plain(&format!("{module}.{name}")),
            None => "a function without a name".to_owned(),
        };
        if unusual.len() < LISTED && !unusual.contains(&path) {
            unusual.push(path);
        }
    }
    Ok(unusual)
}

/// Why a checkpoint cannot be used, if so.
pub(super) fn refusal(checkpoint: &Checkpoint) -> Option<String> {
    let Some(model) = &checkpoint.model else {
        let count = checkpoint.weights.len();
        return Some(format!(
            "it is a state dict, {count} tensors by name without a model to put them in; {SUPPORTED}"
        ));
    };
    if let Some(call) = checkpoint.calls.first() {
        return Some(format!("it calls {call} when it is loaded, which no checkpoint of a supported model does"));
    }
    if checkpoint.modelopt {
        return Some(
            "it was quantised by modelopt, which is not supported; give the checkpoint from before".to_owned(),
        );
    }
    kind(model, checkpoint.head())
}

fn kind(model: &Module, head: Option<&Module>) -> Option<String> {
    let Class { module, name } = &model.class;
    let task = |what: &str| Some(format!("it is a model for {what}; {SUPPORTED}"));
    if module.starts_with("models.") {
        return Some(format!("it is a model of the original YOLOv5 repository; {SUPPORTED}; YOLOv5u is another model"));
    }
    if !module.starts_with("ultralytics.") {
        return Some(format!("its model is {}; {SUPPORTED}", model.class));
    }
    match name.as_str() {
        "DetectionModel" | "YOLOv10DetectionModel" => {}
        "SegmentationModel" => return task("segmentation"),
        "PoseModel" => return task("poses"),
        "ClassificationModel" => return task("classification"),
        "OBBModel" => return task("oriented boxes"),
        "RTDETRDetectionModel" => return task("detection by a transformer (RT-DETR)"),
        "WorldModel" => return task("an open vocabulary (YOLO-World)"),
        _ => return Some(format!("its model is {}; {SUPPORTED}", model.class)),
    }
    match head {
        Some(head) if matches!(head.class.name.as_str(), "Detect" | "v10Detect") => None,
        Some(head) => Some(format!("its head is {}; {SUPPORTED}", head.class)),
        None => Some(format!("it has no layers; {SUPPORTED}")),
    }
}
