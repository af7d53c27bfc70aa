//! Outputs read as boxes.

use prony_backend::Session;
use prony_types::{Detection, HeadChoice, Metadata, PostSpec, TensorSpec, TensorView};
use prony_vision::{Decoder, Fit, Head, HeadError};
use serde::Serialize;

use super::feed::Feed;

/// Boxes, and what made them.
pub(crate) struct Boxes {
    decoder: Decoder,
    pub(crate) found: Vec<Detection>,
}

/// A box for a reader.
#[derive(Debug, Serialize)]
pub(crate) struct NamedBox {
    pub(crate) class: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) score: f32,
    /// Left, top, right, bottom, in pixels of the image.
    pub(crate) xyxy: [f32; 4],
}

impl Boxes {
    /// For outputs as they really are; `None` for a model that has no boxes.
    pub(crate) fn new(
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
    pub(crate) fn fit(&self) -> Fit {
        self.decoder.head().fit()
    }

    pub(crate) fn head(&self) -> String {
        self.decoder.head().to_string()
    }

    /// Reads the outputs of the last call.
    pub(crate) fn decode(&mut self, session: &dyn Session, feed: &Feed) -> Result<(), HeadError> {
        let Some(picture) = feed.picture() else { return Ok(()) };
        let views: Vec<TensorView<'_>> = (0..session.output_count()).map(|i| session.output(0, i)).collect();
        self.decoder.decode(&views, 0, &picture.letterbox, &mut self.found)
    }

    pub(crate) fn named(&self, names: &[String]) -> Vec<NamedBox> {
        let named = |found: &Detection| NamedBox {
            class: found.class,
            name: names.get(found.class as usize).cloned(),
            score: found.score,
            xyxy: [found.x1, found.y1, found.x2, found.y2],
        };
        self.found.iter().map(named).collect()
    }
}
