//! What a data set holds, counted; and whether its images can be decoded.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;
use serde::Serialize;

use super::Dataset;
use crate::folder::Loader;

/// Figures of a data set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// What it is, in words.
    pub name: String,
    /// Hash of the chosen images' ids, truths and the categories.
    pub sha256: String,
    /// Images that were chosen.
    pub chosen: u64,
    /// Those whose file is there.
    pub images: u64,
    /// Those of them with no object.
    pub empty_images: u64,
    /// Objects on them, crowds included.
    pub objects: u64,
    /// Objects below 32x32 pixels, by COCO's measure.
    pub small: u64,
    /// From 32x32 to 96x96.
    pub medium: u64,
    /// Above.
    pub large: u64,
    /// Groups that are not to be told apart.
    pub crowds: u64,
    /// Each category, in the order of ids.
    pub categories: Vec<CategorySummary>,
    /// What is wrong, by kind.
    pub problems: Vec<ProblemSummary>,
}

/// Objects of one category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CategorySummary {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Objects of it, crowds included.
    pub objects: u64,
    /// Images with one at least.
    pub images: u64,
}

/// One kind of problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProblemSummary {
    /// `missing images`.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// The first few, each with its reason.
    pub first: Vec<String>,
}

/// Counts.
pub fn summary(data: &Dataset) -> Summary {
    let category = |c: &super::Category| CategorySummary { id: c.id, name: c.name.clone(), objects: 0, images: 0 };
    let mut summary = Summary {
        name: data.name.clone(),
        sha256: data.sha256.clone(),
        chosen: data.chosen,
        images: data.images.len() as u64,
        empty_images: 0,
        objects: data.objects(),
        small: 0,
        medium: 0,
        large: 0,
        crowds: 0,
        categories: data.categories.iter().map(category).collect(),
        problems: Vec::new(),
    };
    let mut last_image = vec![usize::MAX; data.categories.len()];
    for index in 0..data.images.len() {
        let truths = data.truths(index);
        summary.empty_images += u64::from(truths.is_empty());
        for truth in truths {
            let size = match truth.area {
                area if area < 32.0 * 32.0 => &mut summary.small,
                area if area < 96.0 * 96.0 => &mut summary.medium,
                _ => &mut summary.large,
            };
            *size += 1;
            summary.crowds += u64::from(truth.crowd);
            let category = truth.category as usize;
            summary.categories[category].objects += 1;
            if last_image[category] != index {
                last_image[category] = index;
                summary.categories[category].images += 1;
            }
        }
    }
    let problem = |(kind, count, first): (&str, u64, &[String])| ProblemSummary {
        kind: kind.to_owned(),
        count,
        first: first.to_vec(),
    };
    summary.problems = data.problems.kinds().map(problem).collect();
    summary
}

/// Decodes every image, side by side; those that cannot be, each with its reason, in the order of the data set.
/// `progress` hears how many are done, from any thread, and ends the work by answering false.
pub fn check(data: &Dataset, progress: &(dyn Fn(u64) -> bool + Sync)) -> Vec<String> {
    let done = AtomicU64::new(0);
    let stopped = AtomicBool::new(false);
    let look = |loader: &mut Loader, index: usize| {
        if stopped.load(Ordering::Relaxed) {
            return None;
        }
        let broken = data.load(index, loader).err().map(|error| error.to_string());
        if !progress(done.fetch_add(1, Ordering::Relaxed) + 1) {
            stopped.store(true, Ordering::Relaxed);
        }
        broken
    };
    let indices = (0..data.images.len()).into_par_iter();
    indices.map_init(Loader::default, look).flatten_iter().collect()
}
