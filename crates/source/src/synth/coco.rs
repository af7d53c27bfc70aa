//! COCO's `instances.json`. Category ids are class indices plus one, as COCO itself counts from one.

use prony_types::{GroundTruth, SceneKind};
use serde::Serialize;

use crate::scenes::{class_names, scene_size};

#[derive(Serialize)]
struct Instances {
    info: Info,
    images: Vec<ImageEntry>,
    annotations: Vec<Annotation>,
    categories: Vec<Category>,
}

#[derive(Serialize)]
struct Info {
    description: String,
    version: &'static str,
    seed: u64,
}

#[derive(Serialize)]
struct ImageEntry {
    id: u32,
    file_name: String,
    width: u32,
    height: u32,
}

#[derive(Serialize)]
struct Annotation {
    id: u64,
    image_id: u32,
    category_id: u32,
    bbox: [f32; 4],
    area: f32,
    iscrowd: u8,
}

#[derive(Serialize)]
struct Category {
    id: u32,
    name: &'static str,
    supercategory: &'static str,
}

/// The file's bytes for scenes 0, 1, 2, … of a series.
pub(super) fn instances(kind: SceneKind, seed: u64, truths: &[&[GroundTruth]]) -> Vec<u8> {
    let (width, height) = scene_size(kind);
    let images =
        (0..truths.len() as u32).map(|id| ImageEntry { id, file_name: super::image_name(id), width, height }).collect();
    let boxes = (0_u32..).zip(truths).flat_map(|(image_id, truth)| truth.iter().map(move |object| (image_id, object)));
    let annotations = (1_u64..)
        .zip(boxes)
        .map(|(id, (image_id, object))| Annotation {
            id,
            image_id,
            category_id: object.class + 1,
            bbox: [object.x, object.y, object.w, object.h],
            area: object.area,
            iscrowd: u8::from(object.crowd),
        })
        .collect();
    let categories =
        (1_u32..).zip(class_names(kind)).map(|(id, name)| Category { id, name, supercategory: "scene" }).collect();
    let info = Info { description: format!("Prony's built-in {kind} scenes"), version: "1", seed };
    serde_json::to_vec(&Instances { info, images, annotations, categories }).expect("plain numbers and names")
}
