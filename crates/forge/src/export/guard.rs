//! Guards against a graph that is wrong and does not look it. A class may have been changed and kept its name: so every
//! module must have the children and attributes of the class that is known here, and no others, and every weight of the
//! model must have been used once.

use std::collections::HashMap;

use prony_model::pt::{Element, Module, Value, plain};

use super::place::{Attributes, Place};
use crate::ForgeError;

/// What a class of Ultralytics may have: its name, its children, its attributes.
type Kind = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Attributes that any module may have: how it stands among the layers, and whether it is being trained.
const EVERYWHERE: [&str; 6] = ["training", "f", "i", "np", "type", "inplace"];

/// Seen in files of 8.0.6, 8.2.80 and 8.4.190; what another release adds is refused by its name.
const KINDS: &[Kind] = &[
    ("Conv", &["conv", "bn", "act"], &["forward"]),
    ("DWConv", &["conv", "bn", "act"], &["forward"]),
    ("Bottleneck", &["cv1", "cv2"], &["add"]),
    ("RepBottleneck", &["cv1", "cv2"], &["add"]),
    ("C2", &["cv1", "cv2", "m"], &["c"]),
    ("C2f", &["cv1", "cv2", "m"], &["c"]),
    ("C3k2", &["cv1", "cv2", "m"], &["c"]),
    ("C2fCIB", &["cv1", "cv2", "m"], &["c"]),
    ("C3", &["cv1", "cv2", "cv3", "m"], &[]),
    ("C3k", &["cv1", "cv2", "cv3", "m"], &[]),
    ("RepCSP", &["cv1", "cv2", "cv3", "m"], &[]),
    ("CIB", &["cv1"], &["add"]),
    ("SCDown", &["cv1", "cv2"], &[]),
    ("SPPF", &["cv1", "cv2", "m"], &["n", "add"]),
    ("SPPELAN", &["cv1", "cv2", "cv3", "cv4", "cv5"], &["c"]),
    ("RepNCSPELAN4", &["cv1", "cv2", "cv3", "cv4"], &["c"]),
    ("ELAN1", &["cv1", "cv2", "cv3", "cv4"], &["c"]),
    ("AConv", &["cv1"], &[]),
    ("ADown", &["cv1", "cv2"], &["c"]),
    ("RepConv", &["conv", "conv1", "conv2", "bn", "act"], &["bn", "c1", "c2", "g", "forward"]),
    ("RepVGGDW", &["conv", "conv1", "act"], &["dim", "forward"]),
    ("Attention", &["qkv", "proj", "pe"], &["num_heads", "key_dim", "head_dim", "scale"]),
    ("AAttn", &["qkv", "proj", "pe"], &["area", "num_heads", "head_dim", "all_head_dim"]),
    ("PSABlock", &["attn", "ffn"], &["add"]),
    ("ABlock", &["attn", "mlp"], &[]),
    ("C2PSA", &["cv1", "cv2", "m"], &["c"]),
    ("PSA", &["cv1", "cv2", "attn", "ffn"], &["c"]),
    ("A2C2f", &["cv1", "cv2", "m"], &["gamma"]),
    ("CBLinear", &["conv"], &["c2s"]),
    ("CBFuse", &[], &["idx"]),
    ("Concat", &[], &["d"]),
    ("Silence", &[], &[]),
    ("DFL", &["conv"], &["c1"]),
    ("Detect", HEAD, HEAD_ATTRIBUTES),
    ("v10Detect", HEAD, HEAD_ATTRIBUTES),
];

const HEAD: &[&str] = &["cv2", "cv3", "dfl", "one2one_cv2", "one2one_cv3"];
/// Numbers of the head, and what is left there by a forward pass.
const HEAD_ATTRIBUTES: &[&str] = &[
    "nc",
    "nl",
    "no",
    "reg_max",
    "stride",
    "end2end",
    "_end2end",
    "max_det",
    "legacy",
    "xyxy",
    "agnostic_nms",
    "export",
    "format",
    "dynamic",
    "separate_outputs",
    "shape",
    "anchors",
    "strides",
    "fps",
];

/// Classes of torch that are read. Their attributes differ between versions of torch; those that decide what they compute
/// are looked at where they are read.
const OF_TORCH: [&str; 8] =
    ["Conv2d", "BatchNorm2d", "Identity", "Sequential", "ModuleList", "MaxPool2d", "Upsample", "SiLU"];

/// That a class is none that is known.
pub(super) fn unknown(place: &Place<'_>) -> ForgeError {
    place.fault(format!("{} is not a module that can be exported", place.module.class))
}

/// Refuses a module whose class is not known, or has more to it than the class that is.
pub(super) fn known(attributes: Attributes<'_>, place: &Place<'_>) -> Result<(), ForgeError> {
    let class = &place.module.class;
    if class.module.starts_with("torch.nn.") && OF_TORCH.contains(&class.name.as_str()) {
        return Ok(());
    }
    let kind = KINDS.iter().find(|(name, ..)| class.module.starts_with("ultralytics.") && *name == class.name);
    let (_, children, named) = kind.ok_or_else(|| unknown(place))?;
    let odd_child = |(name, child): &&(String, Option<Module>)| child.is_some() && !children.contains(&name.as_str());
    if let Some((name, _)) = place.module.children.iter().find(odd_child) {
        return Err(changed(place, name));
    }
    let odd = |name: &&str| !EVERYWHERE.contains(name) && !named.contains(name);
    match place.module.attributes.iter().map(|(name, _)| name.as_str()).find(odd) {
        Some(name) => Err(changed(place, name)),
        None => fused(attributes, place),
    }
}

fn changed(place: &Place<'_>, name: &str) -> ForgeError {
    place.fault(format!(
        "it has a `{}`, which this class is not known to have: it may compute something else",
        plain(name)
    ))
}

/// `forward` is replaced where a model was fused, by the one that skips the norm; by anything else it is another module.
fn fused(attributes: Attributes<'_>, place: &Place<'_>) -> Result<(), ForgeError> {
    let Some(forward) = place.module.attribute("forward") else { return Ok(()) };
    let pickle = &attributes.0.pickle;
    let name = match pickle.get(forward) {
        Value::Reduce(made) => pickle.elements(made.args).and_then(|args| pickle.text(*args.get(1)?)),
        _ => None,
    };
    let norms = ["bn", "conv1", "conv2"].iter().any(|norm| place.module.child(norm).is_some());
    match name {
        Some("forward_fuse" | "fuse_forward") if !norms => Ok(()),
        _ => Err(changed(place, "forward")),
    }
}

/// Which weights were used.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    used: HashMap<String, usize>,
    left: Vec<String>,
}

impl Ledger {
    /// Notes one.
    pub(super) fn used(&mut self, path: &str, name: &str) {
        *self.used.entry(format!("{path}.{name}")).or_default() += 1;
    }

    /// Notes that everything below is left out on purpose.
    pub(super) fn leave(&mut self, place: &Place<'_>) {
        self.left.push(place.path.clone());
    }

    /// Refuses a model of which a weight was not used, or twice.
    pub(super) fn balance(&self, place: &Place<'_>) -> Result<(), ForgeError> {
        if self.left.contains(&place.path) {
            return Ok(());
        }
        let tensors = place.module.parameters.iter().chain(&place.module.buffers);
        for (name, tensor) in tensors {
            let Some(tensor) = tensor else { continue };
            let counts = matches!(tensor.element, Element::F64 | Element::F32 | Element::F16 | Element::Bf16);
            let times = self.used.get(&format!("{}.{name}", place.path)).copied().unwrap_or_default();
            if counts && times != 1 {
                let name = plain(name);
                return Err(
                    place.fault(format!("its `{name}` was used {times} times: the class may have been changed"))
                );
            }
        }
        let mut children = place.module.children.iter().filter(|(_, child)| child.is_some());
        children.try_for_each(|(name, _)| self.balance(&place.child(name)?))
    }
}
