//! A checkpoint: which model is in it, and what it says about itself.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;

use prost::bytes::Bytes;

use super::module::tensor;
use super::pickle::{Id, Pickle};
use super::{Archive, Class, Element, Module, PtError, Tensor, plain, read_pickle, verdict};
use crate::error::ModelError;
use crate::map::map_file;

/// Classes that a model may name.
const CLASSES: usize = 100_000;
/// Tensors that a state dict may have.
const WEIGHTS: usize = 100_000;
/// Bytes that all names may have together.
const NAMES: usize = 8 << 20;

/// Where in a checkpoint the model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Under `ema`: the running average of the weights.
    Ema,
    /// Under `model`.
    Model,
    /// Under `state_dict`.
    StateDict,
    /// The whole file is the model.
    Whole,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Holder::Ema => "ema",
            Holder::Model => "model",
            Holder::StateDict => "state_dict",
            Holder::Whole => "the whole file",
        })
    }
}

/// A checkpoint as data. Weights stay in the file until they are asked for.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The container.
    pub archive: Archive,
    /// The pickle, which attributes point into.
    pub pickle: Pickle,
    /// Where the model was found.
    pub holder: Holder,
    /// The model, unless the file holds only its weights.
    pub model: Option<Module>,
    /// Weights by name, where the file holds no more.
    pub weights: Vec<(String, Tensor)>,
    /// Version of Ultralytics that wrote it.
    pub version: Option<String>,
    /// When it was written.
    pub date: Option<String>,
    /// Epochs trained before; -1 where training was done.
    pub epoch: Option<i64>,
    /// Class names by number.
    pub names: BTreeMap<i64, String>,
    /// Pixels a cell of each level has.
    pub strides: Vec<f32>,
    /// What the model is for, as it says.
    pub task: Option<String>,
    /// How many classes the head has.
    pub classes: Option<i64>,
    /// The file that described the model when it was made.
    pub yaml: Option<String>,
    /// Height and width of the images it was trained with, where it tells.
    pub imgsz: Option<[i64; 2]>,
    /// Functions that the pickle has called and that are no part of a usual one. They were not called here.
    pub calls: Vec<String>,
    /// Whether modelopt has changed it.
    pub(super) modelopt: bool,
}

impl Checkpoint {
    /// Reads a file. Its weights are mapped, not read.
    pub fn open(path: &Path) -> Result<Checkpoint, ModelError> {
        let unreadable = |reason| ModelError::Unreadable { path: path.to_owned(), reason };
        let bytes = map_file(path).map_err(unreadable)?;
        let name = || path.display().to_string();
        Checkpoint::read(bytes).map_err(|reason| ModelError::NotCheckpoint { name: name(), reason })
    }

    /// Reads a file's bytes.
    pub fn read(bytes: Bytes) -> Result<Checkpoint, PtError> {
        let archive = Archive::read(bytes)?;
        if let Some(order) = archive.text("byteorder").filter(|order| order != "little") {
            return Err(PtError::Container(format!("its byte order is {}, not little", plain(&order))));
        }
        let pickle = read_pickle(&archive.member("data.pkl")?)?;
        let calls = verdict::calls(&pickle)?;
        let (holder, held) = find(&pickle)?;
        let (mut model, mut weights) = (None, Vec::new());
        match Module::is_module(&pickle, held) {
            true => model = Some(Module::read(&pickle, &archive, held)?),
            false => weights = state_dict(&pickle, &archive, held)?,
        }
        let mut checkpoint = Checkpoint {
            archive,
            pickle,
            holder,
            model,
            weights,
            version: None,
            date: None,
            epoch: None,
            names: BTreeMap::new(),
            strides: Vec::new(),
            task: None,
            classes: None,
            yaml: None,
            imgsz: None,
            calls,
            modelopt: false,
        };
        checkpoint.read_facts()?;
        Ok(checkpoint)
    }

    /// The last layer of a model that is a row of layers.
    pub fn head(&self) -> Option<&Module> {
        self.model.as_ref()?.child("model")?.children.last()?.1.as_ref()
    }

    /// Why the model cannot be used, if so.
    pub fn refusal(&self) -> Option<String> {
        verdict::refusal(self)
    }

    /// How many tensors the model has, buffers among them.
    pub fn tensors(&self) -> usize {
        let mut count = self.weights.len();
        if let Some(model) = &self.model {
            model.visit(&mut |module| {
                let tensors = module.parameters.iter().chain(&module.buffers);
                count += tensors.filter(|(_, tensor)| tensor.is_some()).count();
            });
        }
        count
    }

    /// The stored weights' elements by type: batch norms and branches that only training needs included, and weights that
    /// are used twice counted once. The parameters of a network are those of its graph.
    pub fn stored_elements(&self) -> BTreeMap<Element, usize> {
        let mut seen = HashSet::new();
        let mut counts = BTreeMap::new();
        let mut add = |tensor: &Tensor| {
            if seen.insert((tensor.storage.clone(), tensor.offset)) {
                *counts.entry(tensor.element).or_default() += tensor.elements();
            }
        };
        self.weights.iter().for_each(|(_, tensor)| add(tensor));
        if let Some(model) = &self.model {
            model.visit(&mut |module| module.parameters.iter().filter_map(|(_, t)| t.as_ref()).for_each(&mut add));
        }
        counts
    }

    /// How many modules of each class there are.
    pub fn modules(&self) -> BTreeMap<&Class, usize> {
        let mut counts = BTreeMap::new();
        if let Some(model) = &self.model {
            model.visit(&mut |module| *counts.entry(&module.class).or_default() += 1);
        }
        counts
    }

    fn read_facts(&mut self) -> Result<(), PtError> {
        let (pickle, root) = (&self.pickle, self.pickle.root());
        let text = |id: Option<Id>| id.and_then(|id| pickle.text(id)).map(plain);
        self.version = text(pickle.entry(root, "version"));
        self.date = text(pickle.entry(root, "date"));
        self.epoch = pickle.entry(root, "epoch").and_then(|id| pickle.int(id));
        self.modelopt = pickle.entry(root, "modelopt").is_some_and(|id| !pickle.is_none(id));
        if let Some(model) = &self.model {
            let facts = Facts::read(pickle, &self.archive, model, self.head())?;
            let Facts { names, strides, task, classes, yaml, imgsz } = facts;
            (self.names, self.strides, self.task) = (names, strides, task);
            (self.classes, self.yaml, self.imgsz) = (classes, yaml, imgsz);
        }
        Ok(())
    }
}

/// What a model says about itself.
struct Facts {
    names: BTreeMap<i64, String>,
    strides: Vec<f32>,
    task: Option<String>,
    classes: Option<i64>,
    yaml: Option<String>,
    imgsz: Option<[i64; 2]>,
}

impl Facts {
    fn read(pickle: &Pickle, archive: &Archive, model: &Module, head: Option<&Module>) -> Result<Facts, PtError> {
        let text = |id: Option<Id>| id.and_then(|id| pickle.text(id)).map(plain);
        let yaml = model.attribute("yaml");
        let trained = [pickle.entry(pickle.root(), "train_args"), model.attribute("args")];
        let classes = [head.and_then(|head| head.attribute("nc")), yaml.and_then(|yaml| pickle.entry(yaml, "nc"))];
        let stride = [Some(model), head].into_iter().flatten().find_map(|module| module.attribute("stride"));
        Ok(Facts {
            names: model.attribute("names").map_or_else(|| Ok(BTreeMap::new()), |id| names(pickle, id))?,
            strides: stride.map_or_else(|| Ok(Vec::new()), |id| strides(pickle, archive, id))?,
            task: text(model.attribute("task")).or_else(|| task_of(&model.class).map(str::to_owned)),
            classes: classes.into_iter().flatten().find_map(|id| pickle.int(id)),
            yaml: text(yaml.and_then(|yaml| pickle.entry(yaml, "yaml_file"))),
            imgsz: trained.into_iter().flatten().find_map(|args| image_size(pickle, pickle.entry(args, "imgsz")?)),
        })
    }
}

/// What a model is for, by its class.
fn task_of(class: &Class) -> Option<&'static str> {
    Some(match class.name.as_str() {
        "DetectionModel" | "YOLOv10DetectionModel" | "RTDETRDetectionModel" | "WorldModel" => "detect",
        "SegmentationModel" => "segment",
        "PoseModel" => "pose",
        "ClassificationModel" => "classify",
        "OBBModel" => "obb",
        _ => return None,
    })
}

/// The model, or else the weights.
fn find(pickle: &Pickle) -> Result<(Holder, Id), PtError> {
    let root = pickle.root();
    if Module::is_module(pickle, root) {
        return Ok((Holder::Whole, root));
    }
    let Some(entries) = pickle.entries(root) else {
        return Err(PtError::Content("it holds neither a model nor a dict with one".to_owned()));
    };
    let held = [("ema", Holder::Ema), ("model", Holder::Model), ("state_dict", Holder::StateDict)];
    for (key, holder) in held {
        let held = pickle.entry(root, key);
        let holds = |id: &Id| Module::is_module(pickle, *id) || is_state_dict(pickle, *id);
        if let Some(held) = held.filter(holds) {
            return Ok((holder, held));
        }
    }
    if is_state_dict(pickle, root) {
        return Ok((Holder::Whole, root));
    }
    const KEYS: usize = 8;
    let keys: Vec<String> = entries.iter().take(KEYS).filter_map(|(key, _)| pickle.text(*key).map(plain)).collect();
    let keys = if keys.is_empty() { "without names".to_owned() } else { format!("of {}", keys.join(", ")) };
    Err(PtError::Content(format!("it holds a dict {keys}, and no model under `ema` or `model`")))
}

/// A dict of tensors by name.
fn is_state_dict(pickle: &Pickle, id: Id) -> bool {
    let is_tensor = |id: Id| {
        let built = ["_rebuild_tensor_v2", "_rebuild_parameter"];
        built.iter().any(|name| pickle.call(id, "torch._utils", name).is_some())
    };
    let entries = pickle.entries(id).unwrap_or_default();
    !entries.is_empty() && entries.iter().all(|(key, value)| pickle.text(*key).is_some() && is_tensor(*value))
}

fn state_dict(pickle: &Pickle, archive: &Archive, id: Id) -> Result<Vec<(String, Tensor)>, PtError> {
    let entries = pickle.entries(id).unwrap_or_default();
    let named = entries.iter().filter_map(|(key, value)| Some((pickle.text(*key)?, *value)));
    let bytes: usize = named.clone().map(|(name, _)| name.len()).sum();
    if entries.len() > WEIGHTS || bytes > NAMES {
        return Err(PtError::Content(format!("its state dict has more than {WEIGHTS} tensors")));
    }
    named.map(|(name, value)| Ok((name.to_owned(), tensor(pickle, archive, value, name)?))).collect()
}

/// Class names: a dict by number, or in old files a list.
fn names(pickle: &Pickle, id: Id) -> Result<BTreeMap<i64, String>, PtError> {
    let pairs: Option<Vec<(i64, &str)>> = match (pickle.entries(id), pickle.elements(id)) {
        (Some(entries), _) => {
            entries.iter().map(|(key, name)| Some((pickle.int(*key)?, pickle.text(*name)?))).collect()
        }
        (None, Some(names)) => (0..).zip(names).map(|(number, name)| Some((number, pickle.text(*name)?))).collect(),
        (None, None) => None,
    };
    let pairs = pairs.ok_or_else(|| PtError::Content("its class names are no texts by number".to_owned()))?;
    if pairs.len() > CLASSES || pairs.iter().map(|(_, name)| name.len()).sum::<usize>() > NAMES {
        return Err(PtError::Content(format!("it names more than {CLASSES} classes")));
    }
    Ok(pairs.into_iter().map(|(number, name)| (number, name.to_owned())).collect())
}

fn strides(pickle: &Pickle, archive: &Archive, id: Id) -> Result<Vec<f32>, PtError> {
    const LEVELS: usize = 16;
    let tensor = match Tensor::read(pickle, archive, id) {
        Ok(Some(tensor)) if tensor.elements() <= LEVELS => tensor,
        Ok(Some(_)) => return Err(PtError::Content(format!("it has more than {LEVELS} strides"))),
        // A module of another kind may call anything its stride.
        Ok(None) => return Ok(Vec::new()),
        Err(reason) => return Err(PtError::Tensor { name: "stride".to_owned(), reason }),
    };
    tensor.to_f32(archive)
}

fn image_size(pickle: &Pickle, id: Id) -> Option<[i64; 2]> {
    match (pickle.int(id), pickle.ints(id)) {
        (Some(side), _) => Some([side, side]),
        (None, Some(sides)) => sides.try_into().ok(),
        (None, None) => None,
    }
}
