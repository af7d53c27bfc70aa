//! A data set as COCO's `instances.json`.

use serde::Serialize;

use crate::SourceError;
use crate::dataset::Dataset;

#[derive(Serialize)]
struct Instances<'a> {
    info: Info<'a>,
    images: Vec<ImageEntry<'a>>,
    annotations: Vec<Annotation>,
    categories: Vec<Category<'a>>,
}

#[derive(Serialize)]
struct Info<'a> {
    description: String,
    sha256: &'a str,
}

#[derive(Serialize)]
struct ImageEntry<'a> {
    id: i64,
    file_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
}

#[derive(Serialize)]
struct Annotation {
    id: i64,
    image_id: i64,
    category_id: i64,
    bbox: [f64; 4],
    area: f64,
    iscrowd: u8,
}

#[derive(Serialize)]
struct Category<'a> {
    id: i64,
    name: &'a str,
}

/// The file's bytes.
pub(super) fn bytes(data: &Dataset) -> Result<Vec<u8>, SourceError> {
    let truths = (0..data.images.len()).flat_map(|index| data.truths(index).iter().map(move |truth| (index, truth)));
    let annotations = truths.map(|(index, truth)| Annotation {
        id: truth.id,
        image_id: data.images[index].id,
        category_id: data.categories[truth.category as usize].id,
        bbox: [truth.x, truth.y, truth.w, truth.h],
        area: truth.area,
        iscrowd: u8::from(truth.crowd),
    });
    let images = data.images.iter().map(|image| ImageEntry {
        id: image.id,
        file_name: &image.name,
        width: image.size.map(|size| size.0),
        height: image.size.map(|size| size.1),
    });
    let file = Instances {
        info: Info { description: format!("a slice of {}", data.name), sha256: &data.sha256 },
        images: images.collect(),
        annotations: annotations.collect(),
        categories: data.categories.iter().map(|c| Category { id: c.id, name: &c.name }).collect(),
    };
    serde_json::to_vec(&file).map_err(|e| SourceError::Encode { reason: e.to_string() })
}
