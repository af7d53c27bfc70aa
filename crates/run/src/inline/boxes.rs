//! Outputs read as boxes.

use prony_backend::Session;
use prony_types::{Detection, HeadChoice, Metadata, PostSpec, TensorSpec, TensorView};
use prony_vision::{Decoder, Fit, Head, HeadError};
use serde::Serialize;

use super::input::ModelInputs;

/// Boxes, and what made them.
pub struct Boxes {
    decoder: Decoder,
    /// In pixels of the image.
    pub found: Vec<Detection>,
}

/// A box for a reader.
#[derive(Debug, Serialize)]
pub struct NamedBox {
    /// Its number.
    pub class: u32,
    /// Its name, where the model knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// From 0 to 1.
    pub score: f32,
    /// Left, top, right, bottom, in pixels of the image.
    pub xyxy: [f32; 4],
}

impl Boxes {
    /// For outputs as they really are; `None` for a model that has no boxes.
    pub fn new(
        choice: HeadChoice,
        outputs: &[TensorSpec],
        metadata: &Metadata,
        size: [u32; 2],
        post: &PostSpec,
    ) -> Result<Option<Boxes>, HeadError> {
        Ok(match Head::choose(choice, outputs, metadata, Some(size))? {
            Head::None => None,
            head => Some(Boxes { decoder: Decoder::new(head, post, size), found: Vec::new() }),
        })
    }

    /// How the model wants its image.
    pub fn fit(&self) -> Fit {
        self.decoder.head().fit()
    }

    /// The head, in words.
    pub fn head(&self) -> String {
        self.decoder.head().to_string()
    }

    /// Reads the outputs of the last call.
    pub fn decode(&mut self, session: &dyn Session, inputs: &ModelInputs) -> Result<(), HeadError> {
        let Some(picture) = inputs.picture() else { return Ok(()) };
        let views: Vec<TensorView<'_>> = (0..session.output_count()).map(|i| session.output(0, i)).collect();
        self.decoder.decode(&views, 0, &picture.letterbox, &mut self.found)
    }

    /// The boxes for a reader.
    pub fn named(&self, names: &[String]) -> Vec<NamedBox> {
        let named = |found: &Detection| NamedBox {
            class: found.class,
            name: names.get(found.class as usize).cloned(),
            score: found.score,
            xyxy: [found.x1, found.y1, found.x2, found.y2],
        };
        self.found.iter().map(named).collect()
    }
}
