//! Outputs as they really came, held against what the head expects before a number of them is read.

use prony_types::{TensorData, TensorView};

use crate::head::HeadError;

/// One item of a batch of `[N,A,channels]` (or `[N,channels,A]` when not `transposed`), and A. The head reads the first
/// `used` of its channels.
pub(crate) fn lines<'a>(
    outputs: &[TensorView<'a>],
    index: usize,
    batch_index: usize,
    [channels, used]: [usize; 2],
    transposed: bool,
) -> Result<(&'a [f32], usize), HeadError> {
    let view = whole(outputs, index)?;
    let (anchors, found) = match (view.shape, transposed) {
        (&[_, anchors, found], true) | (&[_, found, anchors], false) => (anchors, found),
        _ => return Err(wrong(outputs, index, "rank 3 was expected".into())),
    };
    if found != channels || used > channels {
        let most = channels.max(used);
        return Err(wrong(outputs, index, format!("{most} channels were expected")));
    }
    if anchors == 0 || channels == 0 {
        return Err(wrong(outputs, index, "it is empty".into()));
    }
    // Whole, so the product does not overflow.
    Ok((floats(outputs, index, batch_index, anchors * channels)?, anchors))
}

/// The floats of one item, of which there must be `len`.
pub(crate) fn floats<'a>(
    outputs: &[TensorView<'a>],
    index: usize,
    batch_index: usize,
    len: usize,
) -> Result<&'a [f32], HeadError> {
    let view = whole(outputs, index)?;
    let TensorData::F32(data) = view.data else {
        return Err(wrong(outputs, index, "floats were expected".into()));
    };
    let range = item(outputs, index, batch_index, len)?;
    Ok(&data[range])
}

/// Numbers that count or name something; some exporters write them as floats.
pub(crate) struct Integers<'a>(TensorData<'a>, usize);

impl Integers<'_> {
    /// The number at a place, as a float.
    pub(crate) fn get(&self, i: usize) -> f32 {
        let i = self.1 + i;
        match self.0 {
            TensorData::F32(data) => data[i],
            TensorData::I32(data) => data[i] as f32,
            TensorData::I64(data) => data[i] as f32,
        }
    }
}

/// The integers of one item, of which there must be `len`.
pub(crate) fn integers<'a>(
    outputs: &[TensorView<'a>],
    index: usize,
    batch_index: usize,
    len: usize,
) -> Result<Integers<'a>, HeadError> {
    let range = item(outputs, index, batch_index, len)?;
    Ok(Integers(whole(outputs, index)?.data, range.start))
}

/// An error about an output.
pub(crate) fn wrong(outputs: &[TensorView<'_>], index: usize, why: String) -> HeadError {
    match outputs.get(index) {
        Some(view) => HeadError::Output { name: view.name.to_owned(), shape: view.shape.to_vec(), why },
        None => HeadError::Output { name: format!("#{index}"), shape: Vec::new(), why },
    }
}

/// An output that exists and has as many elements as its shape says.
fn whole<'o, 'a>(outputs: &'o [TensorView<'a>], index: usize) -> Result<&'o TensorView<'a>, HeadError> {
    let Some(view) = outputs.get(index) else {
        return Err(wrong(outputs, index, format!("it is missing; the model gave {} outputs", outputs.len())));
    };
    let len = view.shape.iter().try_fold(1usize, |product, &axis| product.checked_mul(axis));
    if len != Some(view.data.len()) {
        return Err(wrong(outputs, index, format!("it has {} elements", view.data.len())));
    }
    Ok(view)
}

/// Where an item of the batch lies.
fn item(
    outputs: &[TensorView<'_>],
    index: usize,
    batch_index: usize,
    len: usize,
) -> Result<std::ops::Range<usize>, HeadError> {
    let view = whole(outputs, index)?;
    let batch = view.shape.first().copied().unwrap_or(1);
    if batch_index >= batch {
        let asked = batch_index + 1;
        let why = match batch {
            0 => "it is empty".to_owned(),
            1 => format!(
                "it holds 1 item, item {asked} of the batch was asked for; the model's batch is fixed inside, use --batch 1"
            ),
            _ => format!(
                "it holds {batch} items, item {asked} of the batch was asked for; the model's batch is fixed inside, \
                 use --batch {batch}"
            ),
        };
        return Err(wrong(outputs, index, why));
    }
    let start = batch_index * len;
    if batch.checked_mul(len) != Some(view.data.len()) {
        return Err(wrong(outputs, index, format!("{len} elements an item were expected")));
    }
    Ok(start..start + len)
}
