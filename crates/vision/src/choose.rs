//! Which head a model has, from shapes and what the exporter wrote.
//!
//! The rules of `auto`, in order: four outputs that look like EfficientNMS are that; a model whose metadata names another
//! task than boxes has no head; then the first float output of rank 3 that fits and whose boxes are not in an output of
//! their own. With class names the channel count must be theirs. Without, the number of anchors must be one that the
//! usual strides give at the input size: a token sequence `[1,197,768]` has the rank of a detector but is none. Three
//! anchors a cell mean objectness.

use prony_types::{DType, HeadChoice, Metadata, TensorSpec};

use crate::head::{Head, HeadError};

/// Bins of all four distances in a raw DFL output.
pub(crate) const DFL_CHANNELS: usize = 64;
/// Channels of a raw DFL output for the 80 classes of COCO: taken for that where no names say otherwise.
const DFL_COCO: usize = 144;
/// Columns of an anchor with objectness for the 80 classes of COCO; on a grid with one anchor a cell that is YOLOX and
/// YOLOv6, and 81 classes without objectness are nobody's.
const OBJECTNESS_COCO: usize = 85;
/// More rows than this are anchors of a grid, not queries or final boxes.
const MOST_QUERIES: usize = 1000;
/// The number of final boxes that exporters write unless told otherwise. Some odd input sizes have a grid of as many.
const USUAL_FINAL: usize = 300;
/// Columns of a final box: corners, score, class.
pub(crate) const FINAL_COLUMNS: usize = 6;
/// The strides of detectors in the field: the usual three, with P2, with P6, and the tiny ones.
const STRIDES: [&[usize]; 4] = [&[8, 16, 32], &[4, 8, 16, 32], &[8, 16, 32, 64], &[16, 32]];

impl Head {
    /// Resolves a choice for a model's outputs. See the module `choose` for the rules of `auto`.
    ///
    /// `imgsz` is height and width of the network's input; where it is `None` the metadata's is used.
    pub fn choose(
        choice: HeadChoice,
        outputs: &[TensorSpec],
        metadata: &Metadata,
        imgsz: Option<[u32; 2]>,
    ) -> Result<Head, HeadError> {
        choose(choice, outputs, metadata, imgsz.or(metadata.imgsz))
    }
}

fn choose(
    choice: HeadChoice,
    outputs: &[TensorSpec],
    metadata: &Metadata,
    imgsz: Option<[u32; 2]>,
) -> Result<Head, HeadError> {
    let facts = Facts { names: metadata.names.len(), metadata, imgsz, masks: masks(outputs, metadata) };
    let found = match choice {
        HeadChoice::Auto => auto(outputs, &facts),
        HeadChoice::Dense => first_fit(outputs, "rank 3 with at least 5 channels", |o, s| facts.dense(o, s)),
        HeadChoice::Objectness => first_fit(outputs, "[N,A,5+nc]", |o, s| facts.objectness(o, s)),
        HeadChoice::Dfl => first_fit(outputs, "[N,64+nc,A] with A of strides 8, 16, 32", |o, s| facts.dfl(o, s, s[1])),
        HeadChoice::EndToEnd => first_fit(outputs, "[N,K,6] or with more columns", |output, shape| {
            facts.may_be_final(shape).then_some(Head::EndToEnd { output, shape })
        }),
        HeadChoice::EfficientNms => {
            efficient_nms(outputs).ok_or("it wants a count [N,1], boxes [N,K,4], scores and classes [N,K]".into())
        }
        HeadChoice::RtDetr => first_fit(outputs, "[N,K,4+nc]", rt_detr),
        HeadChoice::None => Ok(Head::None),
    };
    found.map_err(|why| HeadError::NoFit { choice, why, outputs: outputs.to_vec() })
}

/// Float outputs of rank 3 without an empty axis, with their index.
fn candidates(outputs: &[TensorSpec]) -> impl Iterator<Item = (usize, [usize; 3])> {
    outputs.iter().enumerate().filter_map(|(i, spec)| {
        let shape: [usize; 3] = spec.shape.as_slice().try_into().ok()?;
        (is_float(spec) && shape.iter().all(|&d| d > 0)).then_some((i, shape))
    })
}

fn is_float(spec: &TensorSpec) -> bool {
    matches!(spec.dtype, DType::F32 | DType::F16 | DType::Bf16 | DType::F64)
}

/// Whether an output is one half of boxes `[N,K,4]` and scores `[N,K,nc]`, as YOLO-NAS and DETR write them.
fn is_half(outputs: &[TensorSpec], output: usize, [_, rows, columns]: [usize; 3]) -> bool {
    candidates(outputs).any(|(i, [_, others, width])| i != output && others == rows && (width == 4 || columns == 4))
}

/// Mask coefficients at the end of each anchor: as many as the one output `[N,m,h,w]` has prototypes. Several outputs of
/// rank 4 are feature maps.
fn masks(outputs: &[TensorSpec], metadata: &Metadata) -> usize {
    let mut maps = outputs.iter().filter(|spec| is_float(spec) && spec.shape.len() == 4);
    match (metadata.task.as_deref(), maps.next(), maps.next()) {
        (None | Some("segment"), Some(prototypes), None) => prototypes.shape[1],
        _ => 0,
    }
}

fn first_fit(
    outputs: &[TensorSpec],
    wanted: &str,
    fits: impl Fn(usize, [usize; 3]) -> Option<Head>,
) -> Result<Head, String> {
    candidates(outputs).find_map(|(i, shape)| fits(i, shape)).ok_or_else(|| format!("it wants floats of {wanted}"))
}

fn auto(outputs: &[TensorSpec], facts: &Facts<'_>) -> Result<Head, String> {
    if let Some(head) = efficient_nms(outputs) {
        return Ok(head);
    }
    match facts.metadata.task.as_deref() {
        None | Some("detect" | "segment" | "pose") => {}
        Some("classify") => return Ok(Head::None),
        Some(task) => return Err(format!("the task `{task}` gives no upright boxes")),
    }
    let (mut any, mut halves) = (false, false);
    for (output, shape) in candidates(outputs) {
        any = true;
        if is_half(outputs, output, shape) {
            halves = true;
            continue;
        }
        let head = if facts.names > 0 { facts.by_names(output, shape) } else { facts.by_anchors(output, shape) };
        if let Some(head) = head {
            return Ok(head);
        }
    }
    Err(match (any, facts.names) {
        _ if halves => "boxes and scores come in two outputs, which no head here reads".into(),
        (false, _) => "no float output of rank 3".into(),
        (true, 0) => "no class names in the file, and no output has the anchors of a known grid".into(),
        (true, n) => format!("no output has the channels for the file's {n} class names"),
    })
}

/// What is known besides the shapes.
struct Facts<'a> {
    names: usize,
    metadata: &'a Metadata,
    imgsz: Option<[u32; 2]>,
    /// Mask coefficients an anchor.
    masks: usize,
}

impl Facts<'_> {
    /// The class count is known, so channels decide.
    fn by_names(&self, output: usize, shape: [usize; 3]) -> Option<Head> {
        let [_, rows, columns] = shape;
        let n = self.names;
        // Masks and key points follow the class scores.
        let extra = matches!(self.metadata.task.as_deref(), Some("segment" | "pose"));
        let dense =
            |channels: usize, anchors: usize| channels == 4 + n || (extra && (4 + n..anchors).contains(&channels));
        let few = rows <= MOST_QUERIES;
        let (one_a_cell, three_a_cell) = (self.is_grid(rows, 1), self.is_grid(rows, 3));
        // Six columns are also two classes without objectness and one with: then rows that are a grid are no final boxes.
        let anchors = rows != USUAL_FINAL && (n <= 2 && one_a_cell || n == 1 && three_a_cell);
        let two_queried = n == 2 && self.metadata.end2end == Some(false);
        if self.says_final(shape) || columns == FINAL_COLUMNS && few && !two_queried && !anchors {
            return Some(Head::EndToEnd { output, shape });
        }
        if rows == DFL_CHANNELS + n && !extra {
            return Some(Head::Dfl { output, shape, classes: n });
        }
        if dense(rows, columns) {
            return Some(Head::Dense { output, shape, classes: n, transposed: false });
        }
        if columns == 5 + n && (!few || one_a_cell || three_a_cell) || extra && columns > 5 + n && three_a_cell {
            return Some(Head::Objectness { output, shape, classes: n });
        }
        if self.has_final_extras(shape) {
            return Some(Head::EndToEnd { output, shape });
        }
        if columns == 4 + n && few && !one_a_cell {
            return rt_detr(output, shape);
        }
        dense(columns, rows).then_some(Head::Dense { output, shape, classes: n, transposed: true })
    }

    /// No names: the anchors must be those of a grid, or the shape one that nothing else has.
    fn by_anchors(&self, output: usize, shape: [usize; 3]) -> Option<Head> {
        let [_, rows, columns] = shape;
        if self.says_final(shape) {
            return Some(Head::EndToEnd { output, shape });
        }
        if rows >= 5 && rows < columns && self.is_grid(columns, 1) {
            return match rows - self.masks_of(rows, 4) {
                DFL_COCO => self.dfl(output, shape, DFL_COCO),
                channels => Some(Head::Dense { output, shape, classes: channels - 4, transposed: false }),
            };
        }
        let one_a_cell = self.is_grid(rows, 1);
        let with_objectness = one_a_cell && columns - self.masks_of(columns, 5) == OBJECTNESS_COCO;
        if columns >= 6 && (with_objectness || self.is_grid(rows, 3)) {
            return self.objectness(output, shape);
        }
        if columns >= 5 && one_a_cell {
            let classes = columns - self.masks_of(columns, 4) - 4;
            return Some(Head::Dense { output, shape, classes, transposed: true });
        }
        match (rows, columns - self.masks_of(columns, 4)) {
            _ if self.has_final_extras(shape) => Some(Head::EndToEnd { output, shape }),
            (1..=MOST_QUERIES, FINAL_COLUMNS) => Some(Head::EndToEnd { output, shape }),
            (USUAL_FINAL, 7..) => rt_detr(output, shape),
            _ => None,
        }
    }

    /// Mask coefficients among so many channels, of which the first `fixed` and at least one class are something else.
    fn masks_of(&self, channels: usize, fixed: usize) -> usize {
        if channels > fixed.saturating_add(self.masks) { self.masks } else { 0 }
    }

    /// Whether rows may be final boxes: not where the other axis is a grid's anchors.
    fn may_be_final(&self, [_, rows, columns]: [usize; 3]) -> bool {
        columns >= FINAL_COLUMNS && !(columns > rows && self.is_grid(columns, 1))
    }

    /// Whether the exporter says that the boxes are final, and the shape does not say otherwise.
    fn says_final(&self, shape: [usize; 3]) -> bool {
        let anchors = shape[1] > MOST_QUERIES && self.is_grid(shape[1], 1);
        self.metadata.end2end == Some(true) && self.may_be_final(shape) && !anchors
    }

    /// Whether rows are final boxes with the mask coefficients or key points behind them.
    fn has_final_extras(&self, shape: [usize; 3]) -> bool {
        let [_, rows, columns] = shape;
        matches!(self.metadata.task.as_deref(), Some("segment" | "pose"))
            && (columns > FINAL_COLUMNS && rows <= MOST_QUERIES)
            && !(self.is_grid(rows, 1) || self.is_grid(rows, 3))
            && self.may_be_final(shape)
    }

    /// `--head dense`: the longer axis are the anchors, unless the names say otherwise.
    fn dense(&self, output: usize, shape: [usize; 3]) -> Option<Head> {
        let [_, rows, columns] = shape;
        let named = |channels: usize| self.names > 0 && channels == 4 + self.names;
        let transposed = if named(rows) != named(columns) { named(columns) } else { rows > columns };
        let channels = if transposed { columns } else { rows };
        let classes = match self.names {
            n if n > 0 && channels >= 4 + n => n,
            _ => (channels - self.masks_of(channels, 4)).checked_sub(4)?,
        };
        (classes > 0).then_some(Head::Dense { output, shape, classes, transposed })
    }

    fn objectness(&self, output: usize, shape: [usize; 3]) -> Option<Head> {
        let columns = shape[2] - self.masks_of(shape[2], 5);
        let classes = columns.checked_sub(5).filter(|&n| n > 0)?;
        Some(Head::Objectness { output, shape, classes })
    }

    /// Raw DFL with so many channels that are distances or classes.
    fn dfl(&self, output: usize, shape: [usize; 3], channels: usize) -> Option<Head> {
        let classes = channels.checked_sub(DFL_CHANNELS).filter(|&n| n > 0)?;
        let fits = self.imgsz.is_none_or(|size| cells(size, STRIDES[0]) == shape[2]);
        fits.then_some(Head::Dfl { output, shape, classes })
    }

    /// Whether this many rows are a detector's grid with so many anchors a cell.
    fn is_grid(&self, anchors: usize, a_cell: usize) -> bool {
        let fits = |size: [u32; 2]| STRIDES.iter().any(|strides| cells(size, strides) * a_cell == anchors);
        match self.imgsz {
            Some(size) => fits(size),
            // A model of free size: any square that detectors are run at.
            None => (2..=128).any(|k| fits([32 * k; 2])),
        }
    }
}

/// Cells of a feature pyramid over an input of this height and width.
pub(crate) fn cells([h, w]: [u32; 2], strides: &[usize]) -> usize {
    strides.iter().map(|&s| (h as usize).div_ceil(s) * (w as usize).div_ceil(s)).sum()
}

fn rt_detr(output: usize, shape: [usize; 3]) -> Option<Head> {
    let classes = shape[2].checked_sub(4).filter(|&n| n > 0)?;
    Some(Head::RtDetr { output, shape, classes })
}

/// Four outputs, told apart by shape, then by type, then by name, and at last by the plugin's order.
fn efficient_nms(outputs: &[TensorSpec]) -> Option<Head> {
    if outputs.len() != 4 {
        return None;
    }
    let (boxes, capacity) = outputs.iter().enumerate().find_map(|(i, spec)| match spec.shape[..] {
        [_, k, 4] if k > 0 => Some((i, k)),
        _ => None,
    })?;
    let says = |i: usize, word: &str| outputs[i].name.to_lowercase().contains(word);
    let single = |&i: &usize| matches!(outputs[i].shape[..], [_] | [_, 1]);
    let others = || (0..4).filter(move |&i| i != boxes);
    // With K = 1 every shape is [N,1], and only a name tells the count from the rest.
    let num_dets = others().filter(single).find(|&i| says(i, "num")).or_else(|| others().find(single))?;
    let mut rest = others().filter(|&i| i != num_dets);
    let (a, b) = (rest.next()?, rest.next()?);
    if [a, b].iter().any(|&i| !matches!(outputs[i].shape[..], [_, k] if k == capacity)) {
        return None;
    }
    let integer = |i: usize| matches!(outputs[i].dtype, DType::I32 | DType::I64);
    let swapped = if integer(a) != integer(b) { integer(a) } else { says(a, "class") && !says(b, "class") };
    let (scores, classes) = if swapped { (b, a) } else { (a, b) };
    Some(Head::EfficientNms { num_dets, boxes, scores, classes, capacity })
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
