//! How right a cell is: the data it was scored on and what came out. Absent means not measured, never 0.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::PostSpec;

/// A data set to score on, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSpec {
    /// Where it is.
    pub source: DataSource,
    /// Part of a `data.yaml`, or of a folder with several `instances*.json`: `val` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// At most so many images, drawn by `seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Decides which images a limit leaves, and which built-in scenes these are.
    pub seed: u64,
    /// A file that names the images to use, one id or file name a line.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::os_text::option")]
    pub ids: Option<PathBuf>,
    /// Where the images of a COCO file are, when they are not beside it in a usual place.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::os_text::option")]
    pub images: Option<PathBuf>,
}

/// Where a data set is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataSource {
    /// Built-in scenes, of the kind that fits the model.
    Scenes,
    /// A COCO `instances*.json`, a `data.yaml`, or a folder that holds one of them.
    Path(#[serde(with = "crate::os_text::path")] PathBuf),
}

/// The data that a cell was scored on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DataRecord {
    /// In words: `coco: instances_val2017.json, 500 of 5000 images, seed 7`.
    pub name: String,
    /// Hash over ids, truths and categories of the images that were chosen.
    pub sha256: String,
    /// Images that were chosen.
    pub chosen: u64,
    /// Images that could be read and were scored.
    pub images: u64,
    /// True objects on them, crowds included.
    pub objects: u64,
    /// Images and annotations that could not be used, each with its reason; a few of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// How many there were of those.
    #[serde(default)]
    pub problem_count: u64,
    /// How the model's classes became the data's, in words.
    #[serde(default)]
    pub classes: String,
    /// The same in numbers; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_match: Option<ClassMatch>,
    /// Ids of the images that did not decode; they are not scored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<i64>,
}

/// How a model's classes became the categories of the data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassMatch {
    /// By their names; otherwise by their order, because the model has no names.
    pub by_name: bool,
    /// Categories that the model knows.
    pub matched: u32,
    /// Categories that the data has.
    pub categories: u32,
    /// Those that the model does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// True objects of the categories that the model knows.
    pub objects: u64,
}

impl ClassMatch {
    /// What must be known to read a score, if anything.
    pub fn caution(&self) -> Option<String> {
        const NAMED: usize = 5;
        let ClassMatch { by_name, matched, categories, missing, .. } = self;
        if !by_name {
            return Some(format!(
                "the model has no class names, so its {matched} classes were matched by position with the data's, in the \
                 order of category ids"
            ));
        }
        let more = missing.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = missing.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        (matched < categories).then(|| {
            format!(
                "{matched} of {categories} classes of the data are known to the model; missing: {named}{more}, whose \
                 objects count as not found"
            )
        })
    }
}

/// What cells are scored on, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluationSpec {
    /// The data.
    pub data: DataSpec,
    /// What becomes of outputs: other thresholds than of the timed part.
    pub post: PostSpec,
}

/// What a worker is told to score, with the session that was timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluateOrder {
    /// The data.
    pub data: EvaluateData,
    /// What becomes of outputs.
    pub post: PostSpec,
    /// Where the boxes go, in COCO's result form.
    #[serde(with = "crate::os_text::path")]
    pub detections: PathBuf,
}

/// What a worker runs through its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvaluateData {
    /// Built-in scenes, of the kind that fits the model.
    Scenes(DataSpec),
    /// Images on disk, as the parent chose them.
    Images(ChosenImages),
}

/// The images that were chosen for a run, and where their list is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChosenImages {
    /// The list: ids, files, sizes and objects.
    #[serde(with = "crate::os_text::path")]
    pub file: PathBuf,
    /// SHA-256 of the list.
    pub sha256: String,
    /// Folder that the files of the list are relative to.
    #[serde(with = "crate::os_text::path")]
    pub root: PathBuf,
    /// The data as it is known before any image is decoded.
    pub record: DataRecord,
}

/// What a worker says when it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluatedData {
    /// The data as it turned out to be.
    pub data: DataRecord,
    /// Boxes that were written.
    pub detections: u64,
    /// Boxes of classes that the data does not have, which were not.
    pub strangers: u64,
    /// How long it took.
    pub seconds: f64,
}

/// The twelve figures of COCO's evaluation, from 0 to 1. Absent where there is no object of that size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CocoFigures {
    /// Mean over overlaps from 0.50 to 0.95.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_50_95: Option<f64>,
    /// At an overlap of 0.50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_50: Option<f64>,
    /// At an overlap of 0.75.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_75: Option<f64>,
    /// Objects below 32x32 pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_small: Option<f64>,
    /// Objects from 32x32 to 96x96 pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_medium: Option<f64>,
    /// Objects above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_large: Option<f64>,
    /// Average recall with one box an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ar_1: Option<f64>,
    /// With ten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ar_10: Option<f64>,
    /// With a hundred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ar_100: Option<f64>,
    /// With a hundred, small objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ar_small: Option<f64>,
    /// With a hundred, medium objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ar_medium: Option<f64>,
    /// With a hundred, large objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ar_large: Option<f64>,
}

impl CocoFigures {
    /// Names as they stand in `metrics.json`, in the order of pycocotools' `stats`.
    pub const NAMES: [&str; 12] = [
        "map_50_95",
        "map_50",
        "map_75",
        "map_small",
        "map_medium",
        "map_large",
        "ar_1",
        "ar_10",
        "ar_100",
        "ar_small",
        "ar_medium",
        "ar_large",
    ];

    /// From the order of pycocotools' `stats`.
    pub const fn from_stats(s: [Option<f64>; 12]) -> CocoFigures {
        CocoFigures {
            map_50_95: s[0],
            map_50: s[1],
            map_75: s[2],
            map_small: s[3],
            map_medium: s[4],
            map_large: s[5],
            ar_1: s[6],
            ar_10: s[7],
            ar_100: s[8],
            ar_small: s[9],
            ar_medium: s[10],
            ar_large: s[11],
        }
    }

    /// In the order of pycocotools' `stats`.
    pub const fn stats(&self) -> [Option<f64>; 12] {
        [
            self.map_50_95,
            self.map_50,
            self.map_75,
            self.map_small,
            self.map_medium,
            self.map_large,
            self.ar_1,
            self.ar_10,
            self.ar_100,
            self.ar_small,
            self.ar_medium,
            self.ar_large,
        ]
    }
}

/// How right a cell is, scored on what it wrote to `detections.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccuracyRecord {
    /// The twelve figures.
    #[serde(flatten)]
    pub figures: CocoFigures,
    /// 95 % interval of `map_50_95`: a bootstrap over images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Images that were scored.
    pub images: u64,
    /// Boxes that were scored: at most a hundred an image and class count.
    pub detections: u64,
    /// What it was scored on.
    pub data: DataRecord,
    /// What became of outputs.
    pub post: PostSpec,
    /// Each class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassAccuracy>,
    /// Precision over recall, mean over classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<PrecisionRecall>,
    /// What the boxes show to be wrong, where the score is zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub likely_causes: Vec<String>,
    /// How long the evaluation took.
    pub seconds: f64,
}

/// One class of a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassAccuracy {
    /// Its name.
    pub name: String,
    /// True objects of it.
    pub objects: u64,
    /// Boxes of it.
    pub detections: u64,
    /// Mean over overlaps from 0.50 to 0.95; absent where there is no object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_50_95: Option<f64>,
    /// At an overlap of 0.50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_50: Option<f64>,
}

/// Precision at 101 recalls from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrecisionRecall {
    /// Overlap from which a box counts as found.
    pub iou: f64,
    /// Precision at recall 0.00, 0.01, … 1.00.
    pub precision: Vec<f64>,
}

/// Whether one cell is more right than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccuracyDifference {
    /// Higher mAP, beyond what the choice of images explains.
    Better,
    /// Lower mAP, beyond that.
    Worse,
    /// The interval covers zero.
    Same,
    /// Scored on other images or in another way.
    NotComparable,
}

impl AccuracyDifference {
    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            AccuracyDifference::Better => "better",
            AccuracyDifference::Worse => "worse",
            AccuracyDifference::Same => "same",
            AccuracyDifference::NotComparable => "not-comparable",
        }
    }
}

impl fmt::Display for AccuracyDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// mAP50-95 of two cells of one model on the same images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccuracyComparison {
    /// Id of the cell.
    pub cell: String,
    /// Id of the cell it is held against.
    pub against: String,
    /// mAP50-95 of `cell` minus that of `against`, from -1 to 1; absent when not comparable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// 95 % interval of it: the same images drawn for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// The word for it.
    pub difference: AccuracyDifference,
    /// What makes it so, in words.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_fields_in_their_order() {
        let stats = std::array::from_fn(|i| Some(i as f64));
        let figures = CocoFigures::from_stats(stats);
        assert_eq!(figures.stats(), stats);
        let json = serde_json::to_value(figures).unwrap();
        for (i, name) in CocoFigures::NAMES.into_iter().enumerate() {
            assert_eq!(json[name], i as f64, "{name}");
        }
    }
}
