//! Built-in scenes: seeded little worlds with ground truth, as a colour camera and as a heat camera see them.
//!
//! Same seed, same bytes, on every machine: all arithmetic is on integers, and rotation comes from a table. A scene
//! depends on its seed and index alone, so scenes can be made in any order and side by side.

mod angle;
mod noise;
mod rgb;
pub(crate) mod rng;
mod shape;
mod thermal;
mod view;
mod world;

use prony_types::{GroundTruth, Image, ModelSource, PixelFormat, SceneKind};

use self::shape::Shape;
use self::view::View;
use self::world::World;

/// Classes of the colour scenes with their outlines. The first two differ in nothing but hue.
const CLASSES: [(&str, Shape); 9] = [
    ("red-ball", Shape::Ball),
    ("green-ball", Shape::Ball),
    ("crate", Shape::Crate),
    ("cone", Shape::Cone),
    ("ring", Shape::Ring),
    ("cross", Shape::Cross),
    ("star", Shape::Star),
    ("person", Shape::Person),
    ("car", Shape::Car),
];

/// Class names of the colour scenes, by class index. The first two differ in nothing but hue.
pub const CLASS_NAMES: [&str; CLASSES.len()] = {
    let mut names = [""; CLASSES.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = CLASSES[i].0;
        i += 1;
    }
    names
};

/// Class names of the heat scenes: heat has no hue, so the two balls are one class there.
const THERMAL_CLASS_NAMES: [&str; CLASSES.len() - 1] = {
    let mut names = ["ball"; CLASSES.len() - 1];
    let mut i = 1;
    while i < names.len() {
        names[i] = CLASSES[i + 1].0;
        i += 1;
    }
    names
};

/// The scenes that fit a model: those it was made for, or whose classes it has; coloured ones for any other.
pub fn kind_for(model: &ModelSource, names: &[String]) -> SceneKind {
    match model {
        ModelSource::Builtin(kind) => *kind,
        ModelSource::File(_) => {
            let has_classes = |kind: &&SceneKind| class_names(**kind) == names;
            SceneKind::ALL.iter().find(has_classes).copied().unwrap_or(SceneKind::Rgb)
        }
    }
}

/// The class names of a kind, by class index.
pub fn class_names(kind: SceneKind) -> &'static [&'static str] {
    match kind {
        SceneKind::Rgb => &CLASS_NAMES,
        SceneKind::Thermal => &THERMAL_CLASS_NAMES,
    }
}

/// An image and what is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// 640x480 RGB, or 320x256 16-bit grey.
    pub image: Image,
    /// The objects that can be seen, far to near. Boxes enclose the visible pixels.
    pub truth: Vec<GroundTruth>,
}

/// Width and height of the images of a kind.
pub fn scene_size(kind: SceneKind) -> (u32, u32) {
    let view = view(kind);
    (view.width as u32, view.height as u32)
}

fn view(kind: SceneKind) -> View {
    match kind {
        SceneKind::Rgb => View::RGB,
        SceneKind::Thermal => View::THERMAL,
    }
}

/// What scene `index` of a series shows, without painting it.
pub fn scene_truth(kind: SceneKind, seed: u64, index: u32) -> Vec<GroundTruth> {
    let world = World::new(seed, index, &CLASSES);
    let (_, mut truth) = view::look(&view(kind), &world);
    as_seen(kind, &mut truth);
    truth
}

/// Heat has no hue: the two balls are one class there.
fn as_seen(kind: SceneKind, truth: &mut [GroundTruth]) {
    if kind == SceneKind::Thermal {
        truth.iter_mut().for_each(|object| object.class = object.class.saturating_sub(1));
    }
}

/// Scene `index` of the endless series `seed`. Both kinds show the same world for the same numbers.
pub fn scene(kind: SceneKind, seed: u64, index: u32) -> Scene {
    let world = World::new(seed, index, &CLASSES);
    let view = view(kind);
    let (masks, mut truth) = view::look(&view, &world);
    let (width, height) = scene_size(kind);
    let image = match kind {
        SceneKind::Rgb => {
            Image::from_u8(width, height, PixelFormat::Rgb8, rgb::render(&view, &world, &masks, seed, index))
        }
        SceneKind::Thermal => Image::from_u16(width, height, thermal::render(&view, &world, &masks, seed, index)),
    };
    as_seen(kind, &mut truth);
    Scene { image: image.expect("the cameras fill their whole view"), truth }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_are_those_whose_classes_the_model_has() {
        let file = ModelSource::File("x.onnx".into());
        let names = |kind| class_names(kind).iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(kind_for(&ModelSource::Builtin(SceneKind::Thermal), &[]), SceneKind::Thermal);
        assert_eq!(kind_for(&file, &names(SceneKind::Thermal)), SceneKind::Thermal);
        assert_eq!(kind_for(&file, &names(SceneKind::Rgb)), SceneKind::Rgb);
        assert_eq!(kind_for(&file, &["person".to_owned()]), SceneKind::Rgb);
    }
}
