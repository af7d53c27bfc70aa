//! What a detector's outputs mean: the layouts that exist in the field, and the errors when none fits.

use std::fmt;

use prony_types::{HeadChoice, TensorSpec};

use crate::letterbox::Fit;

/// How the outputs of one model become boxes: the layout, found once, so that decoding asks no questions.
///
/// `output` is the index of the tensor among the model's outputs, `shape` what it was declared as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// `[N,4+nc,A]`: centre, size and a score a class; channels beyond the classes (masks, key points) are passed over.
    Dense {
        /// Which output.
        output: usize,
        /// Its shape.
        shape: [usize; 3],
        /// Number of classes.
        classes: usize,
        /// `[N,A,4+nc]` instead.
        transposed: bool,
    },
    /// `[N,A,5+nc]`: as dense and transposed, with an objectness that multiplies every class score.
    Objectness {
        /// Which output.
        output: usize,
        /// Its shape.
        shape: [usize; 3],
        /// Number of classes.
        classes: usize,
    },
    /// `[N,64+nc,A]`: the four distances as distributions over 16 bins, at strides 8, 16 and 32.
    Dfl {
        /// Which output.
        output: usize,
        /// Its shape.
        shape: [usize; 3],
        /// Number of classes.
        classes: usize,
    },
    /// `[N,K,6]`: corners, score, class; final. Columns beyond (masks, key points) are passed over.
    EndToEnd {
        /// Which output.
        output: usize,
        /// Its shape.
        shape: [usize; 3],
    },
    /// The four outputs of TensorRT's EfficientNMS; final.
    EfficientNms {
        /// Which output is the count `[N,1]`.
        num_dets: usize,
        /// Which are the corners `[N,K,4]`.
        boxes: usize,
        /// Which are the scores `[N,K]`.
        scores: usize,
        /// Which are the classes `[N,K]`.
        classes: usize,
        /// K.
        capacity: usize,
    },
    /// `[N,K,4+nc]` with centre and size from 0 to 1; needs no suppression.
    RtDetr {
        /// Which output.
        output: usize,
        /// Its shape.
        shape: [usize; 3],
        /// Number of classes.
        classes: usize,
    },
    /// Not a detector.
    None,
}

impl Head {
    /// The word for it, as `--head` takes it.
    pub fn choice(&self) -> HeadChoice {
        match self {
            Head::Dense { .. } => HeadChoice::Dense,
            Head::Objectness { .. } => HeadChoice::Objectness,
            Head::Dfl { .. } => HeadChoice::Dfl,
            Head::EndToEnd { .. } => HeadChoice::EndToEnd,
            Head::EfficientNms { .. } => HeadChoice::EfficientNms,
            Head::RtDetr { .. } => HeadChoice::RtDetr,
            Head::None => HeadChoice::None,
        }
    }

    /// How an image is brought to the input's size for such a model: as it was in training.
    pub fn fit(&self) -> Fit {
        match self {
            Head::RtDetr { .. } => Fit::Stretch,
            _ => Fit::Letterbox,
        }
    }

    /// Number of classes, where the layout tells.
    pub fn classes(&self) -> Option<usize> {
        match *self {
            Head::Dense { classes, .. }
            | Head::Objectness { classes, .. }
            | Head::Dfl { classes, .. }
            | Head::RtDetr { classes, .. } => Some(classes),
            Head::EndToEnd { .. } | Head::EfficientNms { .. } | Head::None => None,
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.choice().name();
        match self {
            Head::Dense { shape: [n, a, b], classes, transposed, .. } => {
                let way = if *transposed { ", transposed" } else { "" };
                write!(f, "{name} [{n},{a},{b}]{way}, {}", counted(*classes))
            }
            Head::Objectness { shape: [n, a, b], classes, .. }
            | Head::Dfl { shape: [n, a, b], classes, .. }
            | Head::RtDetr { shape: [n, a, b], classes, .. } => {
                write!(f, "{name} [{n},{a},{b}], {}", counted(*classes))
            }
            Head::EndToEnd { shape: [n, a, b], .. } => write!(f, "{name} [{n},{a},{b}]"),
            Head::EfficientNms { capacity, .. } => write!(f, "{name}, at most {capacity} boxes"),
            Head::None => f.write_str("none"),
        }
    }
}

fn counted(classes: usize) -> String {
    format!("{classes} {}", if classes == 1 { "class" } else { "classes" })
}

/// Why outputs cannot be read as boxes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Nothing fits what the model declares.
    #[error("{}", no_fit(*.choice, .why, .outputs))]
    NoFit {
        /// What was asked for.
        choice: HeadChoice,
        /// What is wrong, as far as it is known.
        why: String,
        /// All outputs of the model.
        outputs: Vec<TensorSpec>,
    },
    /// What came out at run time is not what was declared.
    #[error("output `{name}` {shape:?}: {why}")]
    Output {
        /// Name of the output, or its number where it is missing.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
        /// What is wrong.
        why: String,
    },
}

fn no_fit(choice: HeadChoice, why: &str, outputs: &[TensorSpec]) -> String {
    let shapes: Vec<String> = outputs.iter().map(ToString::to_string).collect();
    let shapes = if shapes.is_empty() { "none".to_owned() } else { shapes.join(", ") };
    let words: Vec<&str> = HeadChoice::ALL.iter().filter(|&&c| c != choice).map(|c| c.name()).collect();
    let what = match choice {
        HeadChoice::Auto => "no head fits the outputs".to_owned(),
        named => format!("head `{named}` does not fit the outputs"),
    };
    format!("{what}: {shapes} ({why}); name one with `--head {}`", words.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prony_types::DType;

    #[test]
    fn a_head_says_what_it_is() {
        let dense = Head::Dense { output: 0, shape: [1, 84, 8400], classes: 80, transposed: false };
        assert_eq!(dense.to_string(), "dense [1,84,8400], 80 classes");
        let one = Head::Dense { output: 0, shape: [1, 8400, 5], classes: 1, transposed: true };
        assert_eq!(one.to_string(), "dense [1,8400,5], transposed, 1 class");
        assert_eq!(Head::EndToEnd { output: 0, shape: [1, 300, 6] }.to_string(), "end2end [1,300,6]");
    }

    #[test]
    fn only_rt_detr_is_stretched() {
        assert_eq!(Head::RtDetr { output: 0, shape: [1, 300, 84], classes: 80 }.fit(), Fit::Stretch);
        assert_eq!(Head::EndToEnd { output: 0, shape: [1, 300, 6] }.fit(), Fit::Letterbox);
        assert_eq!(Head::None.fit(), Fit::Letterbox);
    }

    #[test]
    fn an_error_prints_every_output_and_the_way_out() {
        let spec =
            |name: &str, shape: &[usize]| TensorSpec { name: name.into(), dtype: DType::F32, shape: shape.into() };
        let outputs = vec![spec("logits", &[1, 1000]), spec("features", &[1, 512, 7, 7])];
        let error = HeadError::NoFit { choice: HeadChoice::Auto, why: "no tensor of rank 3".into(), outputs };
        let text = error.to_string();
        assert!(text.contains("logits f32[1, 1000], features f32[1, 512, 7, 7]"), "{text}");
        assert!(text.contains("`--head dense|objectness|") && text.contains("|none`"), "{text}");
    }
}
