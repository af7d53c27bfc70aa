//! Outputs become boxes in the frame's pixels.
//!
//! Every dense head goes the same way: a sieve finds the anchors whose best class is sure enough, the head's own
//! arithmetic makes boxes of those few, and suppression or ranking puts them in order.

use prony_types::{Detection, PostSpec, TensorView};

use crate::activation::Activation;
use crate::choose::{DFL_CHANNELS, FINAL_COLUMNS, cells};
use crate::head::{Head, HeadError};
use crate::letterbox::Letterbox;
use crate::nms::{Suppressor, finite};
use crate::outputs::{floats, integers, lines, wrong};
use crate::scores::{Hit, sift_columns, sift_lines};

/// Strides of a raw DFL output, in the order of its anchors.
const DFL_STRIDES: [usize; 3] = [8, 16, 32];
/// Bins of one distance.
const BINS: usize = DFL_CHANNELS / 4;

/// Decodes the outputs of one model, frame after frame.
///
/// It owns its scratch: after the first call it does not allocate, as long as the outputs keep their shape. The rules are
/// those of Ultralytics' predict mode: one class a box, scores strictly above the threshold, suppression within a class; or,
/// with `multi_label`, those of its validation: a box for every class of an anchor that is sure enough.
pub struct Decoder {
    head: Head,
    conf: f32,
    iou: f32,
    max_det: usize,
    multi_label: bool,
    imgsz: [u32; 2],
    activation: Activation,
    hits: Vec<Hit>,
    boxes: Vec<Detection>,
    suppressor: Suppressor,
    /// Centre and stride of every anchor, for DFL.
    grid: Vec<[f32; 3]>,
}

impl Decoder {
    /// For a head, thresholds, and an input of this height and width.
    pub fn new(head: Head, post: &PostSpec, imgsz: [u32; 2]) -> Decoder {
        let grid = if matches!(head, Head::Dfl { .. }) { dfl_grid(imgsz) } else { Vec::new() };
        Decoder {
            head,
            conf: post.conf,
            iou: post.iou,
            max_det: post.max_det as usize,
            multi_label: post.multi_label,
            imgsz,
            activation: Activation::default(),
            hits: Vec::new(),
            boxes: Vec::new(),
            suppressor: Suppressor::default(),
            grid,
        }
    }

    /// The head that is decoded.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The thresholds that hold.
    pub fn post(&self) -> PostSpec {
        let max_det = u32::try_from(self.max_det).unwrap_or(u32::MAX);
        PostSpec { conf: self.conf, iou: self.iou, max_det, multi_label: self.multi_label }
    }

    /// Other thresholds from now on; what was learnt about the scores stays.
    pub fn set_post(&mut self, post: &PostSpec) {
        self.conf = post.conf;
        self.iou = post.iou;
        self.max_det = post.max_det as usize;
        self.multi_label = post.multi_label;
    }

    /// Whether the model's scores are probabilities as they come out, or logits that get a sigmoid here.
    ///
    /// Decided on the first output with a finite score: all within 0 and 1 (give or take 1/64, which an 8-bit output may
    /// be off) are probabilities. `None` until then, and for heads whose scores are final.
    pub fn scores_activated(&self) -> Option<bool> {
        match self.activation {
            Activation::Unknown => None,
            Activation::Probabilities => Some(true),
            Activation::Logits => Some(false),
        }
    }

    /// Replaces `out` by the boxes of item `batch_index`, in pixels of the image that `letterbox` placed, clipped to it.
    ///
    /// The surest box comes first (for final heads: in the model's order). Whatever is not finite yields no box. A box
    /// that clipping leaves without width or height, such as one in the grey bar, stays, as it does in Ultralytics.
    /// Outputs that are not as the head wants them are an error, and `out` is empty then.
    pub fn decode(
        &mut self,
        outputs: &[TensorView<'_>],
        batch_index: usize,
        letterbox: &Letterbox,
        out: &mut Vec<Detection>,
    ) -> Result<(), HeadError> {
        out.clear();
        let place = Placement::new(letterbox);
        let sieve = Sieve { conf: self.conf, every_class: self.multi_label };
        match self.find(outputs, batch_index, sieve)? {
            Then::Suppress => {
                let kept = self.suppressor.run(&self.boxes, self.iou, self.max_det);
                out.reserve(self.boxes.capacity().min(self.max_det));
                out.extend(kept.iter().map(|&i| place.back(&self.boxes[i as usize])));
            }
            Then::Rank => {
                let ranked = self.suppressor.rank(&self.boxes, self.max_det);
                out.reserve(self.boxes.capacity().min(self.max_det));
                out.extend(ranked.iter().map(|&i| place.back(&self.boxes[i as usize])));
            }
            Then::Keep => {
                out.reserve(self.boxes.capacity().min(self.max_det));
                let sure = self.boxes.iter().filter(|b| b.score > self.conf).take(self.max_det);
                out.extend(sure.map(|b| place.back(b)));
            }
        }
        Ok(())
    }

    /// Replaces `out` by all boxes among which a choice is made: those above `floor`, of every class and without suppression;
    /// of a final head every row, however unsure. What rounding may keep or drop is among them.
    pub fn candidates(
        &mut self,
        outputs: &[TensorView<'_>],
        batch_index: usize,
        letterbox: &Letterbox,
        floor: f32,
        out: &mut Vec<Detection>,
    ) -> Result<(), HeadError> {
        out.clear();
        self.find(outputs, batch_index, Sieve { conf: floor, every_class: true })?;
        let place = Placement::new(letterbox);
        out.extend(self.boxes.iter().filter(|b| finite(b)).map(|b| place.back(b)));
        Ok(())
    }

    /// Puts the boxes of an item that pass the sieve into `self.boxes`; says how the choice among them is made.
    fn find(&mut self, outputs: &[TensorView<'_>], batch_index: usize, sieve: Sieve) -> Result<Then, HeadError> {
        match self.head {
            Head::Dense { output, shape, classes, transposed } => {
                let channels = if transposed { shape[2] } else { shape[1] };
                let (data, anchors) =
                    lines(outputs, output, batch_index, [channels, classes.saturating_add(4)], transposed)?;
                self.dense(data, Layout { anchors, width: channels, transposed, first: 4, classes }, None, sieve);
                Ok(Then::Suppress)
            }
            Head::Objectness { output, shape, classes } => {
                let (data, anchors) = lines(outputs, output, batch_index, [shape[2], classes.saturating_add(5)], true)?;
                let layout = Layout { anchors, width: shape[2], transposed: true, first: 5, classes };
                self.dense(data, layout, Some(4), sieve);
                Ok(Then::Suppress)
            }
            Head::Dfl { output, shape, classes } => {
                let (data, anchors) =
                    lines(outputs, output, batch_index, [shape[1], classes.saturating_add(DFL_CHANNELS)], false)?;
                if anchors != self.grid.len() {
                    let [h, w] = self.imgsz;
                    let want = self.grid.len();
                    let why = format!("strides 8, 16 and 32 over an input of {h}x{w} have {want} anchors");
                    return Err(wrong(outputs, output, why));
                }
                self.dfl(data, anchors, classes, sieve);
                Ok(Then::Suppress)
            }
            Head::RtDetr { output, shape, classes } => {
                let (data, anchors) = lines(outputs, output, batch_index, [shape[2], classes.saturating_add(4)], true)?;
                let layout = Layout { anchors, width: shape[2], transposed: true, first: 4, classes };
                // A query is one object and has one class.
                self.dense(data, layout, None, Sieve { every_class: false, ..sieve });
                let [h, w] = self.imgsz.map(|side| side as f32);
                for b in &mut self.boxes {
                    (b.x1, b.y1, b.x2, b.y2) = (b.x1 * w, b.y1 * h, b.x2 * w, b.y2 * h);
                }
                Ok(Then::Rank)
            }
            Head::EndToEnd { output, shape } => {
                let (data, rows) = lines(outputs, output, batch_index, [shape[2], FINAL_COLUMNS], true)?;
                self.make_room(rows);
                let rows = data.chunks_exact(shape[2]).filter_map(|row| row.first_chunk::<FINAL_COLUMNS>());
                let boxes = rows.map(|&[x1, y1, x2, y2, score, class]| final_box([x1, y1, x2, y2], score, class));
                self.boxes.extend(boxes.flatten());
                Ok(Then::Keep)
            }
            Head::EfficientNms { num_dets, boxes, scores, classes, .. } => {
                let (corners, rows) = lines(outputs, boxes, batch_index, [4, 4], true)?;
                let scores = floats(outputs, scores, batch_index, rows)?;
                let labels = integers(outputs, classes, batch_index, rows)?;
                let count = integers(outputs, num_dets, batch_index, 1)?.get(0);
                // A count that is not a number, or none at all, holds no boxes.
                let count = if count >= 0.0 { (count as usize).min(rows) } else { 0 };
                self.make_room(rows);
                let rows = corners.as_chunks::<4>().0.iter().zip(scores).enumerate().take(count);
                let boxes = rows.map(|(i, (&corners, &score))| final_box(corners, score, labels.get(i)));
                self.boxes.extend(boxes.flatten());
                Ok(Then::Keep)
            }
            Head::None => {
                self.boxes.clear();
                Ok(Then::Keep)
            }
        }
    }

    /// Candidates of a head that gives centre and size, into `self.boxes`.
    fn dense(&mut self, data: &[f32], layout: Layout, objectness: Option<usize>, sieve: Sieve) {
        let Layout { anchors, width, transposed, first, classes } = layout;
        self.make_room(anchors);
        let step = if transposed { 1 } else { anchors };
        if transposed {
            let from = objectness.unwrap_or(first);
            self.activation.settle(data.chunks_exact(width).flat_map(|line| &line[from..first + classes]).copied());
            let floor = self.activation.floor(sieve.conf);
            // A class need not be sure by itself where the objectness is to be multiplied in.
            let (gate, floor) = match objectness {
                Some(at) => (Some((at, floor)), f32::NEG_INFINITY),
                None => (None, floor),
            };
            sift_lines(data, width, first, classes, gate, floor, &mut self.hits);
        } else {
            let rows = &data[first * anchors..(first + classes) * anchors];
            self.activation.settle(rows.iter().copied());
            sift_columns(rows, anchors, self.activation.floor(sieve.conf), &mut self.hits);
        }
        for hit in &self.hits {
            let start = hit.anchor as usize * if transposed { width } else { 1 };
            let at = |channel: usize| data[start + channel * step];
            let sure = objectness.map_or(1.0, |channel| self.activation.apply(at(channel)));
            let (cx, cy, half_w, half_h) = (at(0), at(1), at(2) / 2.0, at(3) / 2.0);
            let corners = [cx - half_w, cy - half_h, cx + half_w, cy + half_h];
            let score = |value: f32| self.activation.apply(value) * sure;
            let found = candidates(sieve, classes, *hit, |class| at(first + class as usize), score);
            self.boxes.extend(found.map(|(class, score)| boxed(corners, score, class)));
        }
    }

    /// Candidates of a raw DFL head, into `self.boxes`: each distance is the mean of its distribution, in strides.
    fn dfl(&mut self, data: &[f32], anchors: usize, classes: usize, sieve: Sieve) {
        self.make_room(anchors);
        let rows = &data[DFL_CHANNELS * anchors..(DFL_CHANNELS + classes) * anchors];
        self.activation.settle(rows.iter().copied());
        sift_columns(rows, anchors, self.activation.floor(sieve.conf), &mut self.hits);
        for hit in &self.hits {
            let anchor = hit.anchor as usize;
            let score = |value: f32| self.activation.apply(value);
            let of_class = |class: u32| rows[class as usize * anchors + anchor];
            let mut found = candidates(sieve, classes, *hit, of_class, score).peekable();
            if found.peek().is_none() {
                continue;
            }
            let distance =
                |side: usize| expectation(std::array::from_fn(|bin| data[(side * BINS + bin) * anchors + anchor]));
            let [left, top, right, bottom] = std::array::from_fn(distance);
            let [cx, cy, stride] = self.grid[anchor];
            let corners = [cx - left, cy - top, cx + right, cy + bottom].map(|side| side * stride);
            self.boxes.extend(found.map(|(class, score)| boxed(corners, score, class)));
        }
    }

    /// Empties the scratch and makes it large enough for every anchor to be a candidate.
    fn make_room(&mut self, anchors: usize) {
        self.hits.clear();
        self.boxes.clear();
        self.hits.reserve(anchors);
        self.boxes.reserve(anchors);
        self.suppressor.reserve(anchors, self.max_det);
    }
}

/// What makes a box a candidate.
#[derive(Clone, Copy)]
struct Sieve {
    /// Scores strictly above this.
    conf: f32,
    /// A box for every class of an anchor that is sure enough, not for the surest alone.
    every_class: bool,
}

/// How the boxes that stay are chosen among the candidates.
enum Then {
    /// The surest of those that show the same thing.
    Suppress,
    /// All, the surest first.
    Rank,
    /// All, in the model's order.
    Keep,
}

/// Classes of an anchor that are sure enough, with their scores: all of them, or the surest.
#[inline(always)]
fn candidates(
    Sieve { conf, every_class }: Sieve,
    classes: usize,
    hit: Hit,
    of_class: impl Fn(u32) -> f32,
    score: impl Fn(f32) -> f32,
) -> impl Iterator<Item = (u32, f32)> {
    let asked = if every_class { 0..classes as u32 } else { hit.class..hit.class + 1 };
    let scored = asked.map(move |class| (class, score(if every_class { of_class(class) } else { hit.score })));
    scored.filter(move |(_, score)| *score > conf)
}

fn boxed([x1, y1, x2, y2]: [f32; 4], score: f32, class: u32) -> Detection {
    Detection { x1, y1, x2, y2, score, class }
}

/// Where the parts of a dense output lie.
#[derive(Clone, Copy)]
struct Layout {
    anchors: usize,
    /// Channels an anchor.
    width: usize,
    transposed: bool,
    /// Channel of the first class.
    first: usize,
    classes: usize,
}

/// A final box; `None` when something is not finite or the class is not a number of one.
fn final_box([x1, y1, x2, y2]: [f32; 4], score: f32, class: f32) -> Option<Detection> {
    let class = (0.0..u32::MAX as f32).contains(&class).then_some(class as u32)?;
    Some(Detection { x1, y1, x2, y2, score, class }).filter(finite)
}

/// The way from the network's input to the image, with the divisors made once.
#[derive(Clone, Copy)]
struct Placement {
    left: f32,
    top: f32,
    gain_x: f32,
    gain_y: f32,
    w: f32,
    h: f32,
}

impl Placement {
    fn new(letterbox: &Letterbox) -> Placement {
        let (gain_x, gain_y) = letterbox.gains();
        Placement {
            left: letterbox.pad_left as f32,
            top: letterbox.pad_top as f32,
            gain_x,
            gain_y,
            w: letterbox.src_w as f32,
            h: letterbox.src_h as f32,
        }
    }

    /// The box in the image, clipped to it.
    fn back(self, b: &Detection) -> Detection {
        let x = |v: f32| ((v - self.left) / self.gain_x).clamp(0.0, self.w);
        let y = |v: f32| ((v - self.top) / self.gain_y).clamp(0.0, self.h);
        Detection { x1: x(b.x1), y1: y(b.y1), x2: x(b.x2), y2: y(b.y2), ..*b }
    }
}

/// The mean bin under a softmax.
fn expectation(logits: [f32; BINS]) -> f32 {
    let most = logits.into_iter().fold(f32::NEG_INFINITY, f32::max);
    let weights = logits.map(|v| (v - most).exp());
    let weighted: f32 = weights.iter().zip(0u8..).map(|(w, bin)| w * f32::from(bin)).sum();
    weighted / weights.iter().sum::<f32>()
}

fn dfl_grid(imgsz: [u32; 2]) -> Vec<[f32; 3]> {
    let [h, w] = imgsz.map(|side| side as usize);
    let mut grid = Vec::with_capacity(cells(imgsz, &DFL_STRIDES));
    for stride in DFL_STRIDES {
        for y in 0..h.div_ceil(stride) {
            grid.extend((0..w.div_ceil(stride)).map(|x| [x as f32 + 0.5, y as f32 + 0.5, stride as f32]));
        }
    }
    grid
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
