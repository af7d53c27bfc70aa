//! What came out for a frame, and two of these against each other: what `bench` and `compare-outputs` share.

use prony_backend::Session;
use prony_judge::agreement::{self, Found, Near, Tally};
use prony_types::{Detection, TensorAgreement, TensorView};
use prony_vision::{Decoder, HeadError, Letterbox};

use crate::parts::{Parts, is_final};

/// So far below the threshold boxes are still looked at: rounding carries none of them further.
const BELOW_THRESHOLD: f32 = 0.05;
/// With more boxes than this to choose from, those that are kept say nothing: the scores are saturated.
const MOST_CANDIDATES: usize = 50_000;

/// What came out for one frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    /// Values by what they are.
    pub values: Parts,
    /// Boxes after NMS.
    pub kept: Vec<Detection>,
    /// Boxes among which these were chosen; absent where they are too many.
    pub candidates: Option<Vec<Detection>>,
    /// Whether the model itself made the choice.
    pub is_final: bool,
}

impl Outputs {
    /// An item of a batch in slot 0, with its boxes where it is known how outputs become boxes and how the image lies.
    pub fn of(
        session: &dyn Session,
        decoding: Option<(&mut Decoder, &Letterbox)>,
        [item, batch]: [usize; 2],
    ) -> Result<Outputs, HeadError> {
        let Some((decoder, letterbox)) = decoding else {
            let values = Parts::of(session, None, item, batch);
            return Ok(Outputs { values, candidates: Some(Vec::new()), ..Outputs::default() });
        };
        let views: Vec<TensorView<'_>> = (0..session.output_count()).map(|i| session.output(0, i)).collect();
        let values = Parts::of(session, Some(decoder.head()), item, batch);
        let [mut kept, mut candidates] = [Vec::new(), Vec::new()];
        decoder.decode(&views, item, letterbox, &mut kept)?;
        let floor = (decoder.post().conf - BELOW_THRESHOLD).max(0.0);
        decoder.candidates(&views, item, letterbox, floor, &mut candidates)?;
        let candidates = Some(candidates).filter(|candidates| candidates.len() <= MOST_CANDIDATES);
        Ok(Outputs { values, kept, candidates, is_final: is_final(Some(decoder.head())) })
    }

    /// Whether every value is a number.
    pub fn is_finite(&self) -> bool {
        let Parts { boxes, scores, rest } = &self.values;
        boxes.iter().chain(scores).chain(rest).all(|x| x.is_finite())
    }

    fn found(&self) -> Found<'_> {
        let candidates = self.candidates.as_deref().unwrap_or_default();
        Found { kept: &self.kept, candidates, ranked: self.is_final }
    }

    /// Which boxes stay where they are when the input is perturbed; `None` where there are too many to choose from.
    pub fn stands(&self, perturbed: &Outputs) -> Option<Vec<bool>> {
        let both = self.candidates.is_some() && perturbed.candidates.is_some();
        both.then(|| agreement::stands(self.found(), perturbed.found()))
    }
}

/// Outputs against others; of each figure the worst that was seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Box coordinates; all values for a model without a head.
    pub boxes: Option<TensorAgreement>,
    /// Scores.
    pub scores: Option<TensorAgreement>,
    /// What is neither.
    pub rest: Option<TensorAgreement>,
    /// Boxes that found their like.
    pub tally: Tally,
}

impl Seen {
    /// Takes note of one more frame; `stands` says which boxes of the reference are evidence.
    pub fn add(&mut self, reference: &Outputs, got: &Outputs, stands: &[bool]) {
        let compare = |a: &[f32], b: &[f32]| (!a.is_empty() || !b.is_empty()).then(|| agreement::tensors(a, b));
        let (a, b) = (&reference.values, &got.values);
        let (boxes, scores) = match (reference.is_final, got.is_final) {
            (false, false) => (compare(&a.boxes, &b.boxes), compare(&a.scores, &b.scores)),
            (true, true) => {
                let rows = reference.candidates.as_deref().zip(got.candidates.as_deref());
                let rows = rows.and_then(|(a, b)| agreement::rows(a, b));
                (rows.and_then(|rows| rows.boxes), rows.map(|rows| rows.scores))
            }
            // Anchors against final boxes: only what becomes of them can be compared.
            _ => (None, None),
        };
        let rest = if reference.is_final || got.is_final { None } else { compare(&a.rest, &b.rest) };
        self.boxes = agreement::worse(self.boxes, boxes);
        self.scores = agreement::worse(self.scores, scores);
        self.rest = agreement::worse(self.rest, rest);
        if reference.candidates.is_some() && got.candidates.is_some() {
            self.tally += agreement::matched(reference.found(), got.found(), stands, Near::SAME);
        }
    }
}
