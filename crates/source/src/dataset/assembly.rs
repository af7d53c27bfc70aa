//! Puts a data set together image by image, and hashes what was chosen on the way.

use std::path::Path;

use prony_types::SceneKind;
use sha2::{Digest as _, Sha256};

use super::{Category, DataImage, Dataset, LabeledBox, Origin, Problems};
use crate::SourceError;

/// An image before its truths are known.
pub(super) struct Candidate {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) origin: Origin,
    pub(super) size: Option<(u32, u32)>,
}

/// A data set in the making. Images come in the order of their ids.
pub(super) struct Assembly {
    categories: Vec<Category>,
    images: Vec<DataImage>,
    truths: Vec<LabeledBox>,
    chosen: u64,
    hash: Sha256,
    pub(super) problems: Problems,
}

impl Assembly {
    pub(super) fn new(categories: Vec<Category>) -> Assembly {
        let mut hash = Sha256::new();
        hash.update(b"prony.data/1");
        hash.update((categories.len() as u64).to_le_bytes());
        for category in &categories {
            hash.update(category.id.to_le_bytes());
            hash.update((category.name.len() as u64).to_le_bytes());
            hash.update(category.name.as_bytes());
        }
        let (images, truths) = (Vec::new(), Vec::new());
        Assembly { categories, images, truths, chosen: 0, hash, problems: Problems::default() }
    }

    /// An image that was chosen and can be used as far as is known.
    pub(super) fn add(&mut self, image: Candidate, truths: &[LabeledBox]) {
        self.choose(image.id, truths);
        let first = self.truths.len();
        self.truths.extend_from_slice(truths);
        let Candidate { id, name, origin, size } = image;
        self.images.push(DataImage { id, name, origin, size, truths: first..self.truths.len() });
    }

    /// Gives ids to the objects of the next image, where the data set has none: on from those that are there, from 1.
    pub(super) fn number(&self, truths: &mut [LabeledBox]) {
        for (id, truth) in (self.truths.len() as i64 + 1..).zip(truths) {
            truth.id = id;
        }
    }

    /// One that was chosen and cannot be used: the choice is the same on a machine that has its file.
    pub(super) fn miss(&mut self, id: i64, truths: &[LabeledBox], kind: &'static str, why: String) {
        self.choose(id, truths);
        self.problems.add(kind, why);
    }

    fn choose(&mut self, id: i64, truths: &[LabeledBox]) {
        self.chosen += 1;
        self.hash.update(id.to_le_bytes());
        self.hash.update((truths.len() as u64).to_le_bytes());
        // Without the ids of the objects: they say nothing about the picture.
        for truth in truths {
            self.hash.update(truth.category.to_le_bytes());
            for number in [truth.x, truth.y, truth.w, truth.h, truth.area] {
                self.hash.update(number.to_bits().to_le_bytes());
            }
            self.hash.update([u8::from(truth.crowd)]);
        }
    }

    /// The whole, or an error when no image can be used. `place` is what to name then.
    pub(super) fn finish(
        self,
        name: String,
        place: &Path,
        scenes: Option<(SceneKind, u64)>,
    ) -> Result<Dataset, SourceError> {
        let Assembly { categories, images, truths, chosen, hash, problems } = self;
        if images.is_empty() {
            let why: Vec<&str> = problems.named().take(3).collect();
            let why = if why.is_empty() { "it has none".to_owned() } else { why.join("; ") };
            return Err(SourceError::data(place, format!("no image of this data set can be used: {why}")));
        }
        let sha256 = hex(&hash.finalize());
        Ok(Dataset { name, categories, images, chosen, problems, sha256, truths, scenes })
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
