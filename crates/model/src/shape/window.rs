//! Operators that slide a window: convolutions and pools.

use super::Shape;
use super::node::Node;

/// How a window moves along one axis.
struct Window {
    kernel: i128,
    stride: i128,
    dilation: i128,
    /// Both sides.
    before: i128,
    after: i128,
}

impl Window {
    fn reach(&self) -> i128 {
        self.dilation * (self.kernel - 1) + 1
    }

    /// Positions of the window on an axis, rounded up where the operator says so.
    fn positions(&self, input: u64, ceil: bool) -> Option<u64> {
        let room = i128::from(input) + self.before + self.after - self.reach();
        if room < 0 {
            return None;
        }
        let steps = if ceil { (room + self.stride - 1) / self.stride } else { room / self.stride };
        // A last window that would begin in the padding is left out.
        let beyond = ceil && steps * self.stride >= i128::from(input) + self.before;
        u64::try_from(steps + 1 - i128::from(beyond)).ok()
    }
}

/// The windows of a node over so many axes, from its attributes.
fn windows(node: &Node<'_>, kernel: &[u64]) -> Option<Vec<Window>> {
    let rank = kernel.len();
    let list = |name: &str, default: i64, length: usize| match node.ints(name) {
        None | Some([]) => Some(vec![default; length]),
        Some(values) => (values.len() == length).then(|| values.to_vec()),
    };
    let (strides, dilations, pads) =
        (list("strides", 1, rank)?, list("dilations", 1, rank)?, list("pads", 0, 2 * rank)?);
    let window = |at: usize| {
        let (stride, dilation) = (strides[at], dilations[at]);
        (stride > 0 && dilation > 0 && kernel[at] > 0).then(|| Window {
            kernel: kernel[at].into(),
            stride: stride.into(),
            dilation: dilation.into(),
            before: pads[at].into(),
            after: pads[at + rank].into(),
        })
    };
    (0..rank).map(window).collect()
}

/// The spatial axes after a window has slid over them.
fn slide(node: &Node<'_>, spatial: &[u64], kernel: &[u64], ceil: bool) -> Option<Shape> {
    if spatial.len() != kernel.len() {
        return None;
    }
    let mut windows = windows(node, kernel)?;
    let same = match node.text("auto_pad") {
        "" | "NOTSET" => false,
        "VALID" => {
            windows.iter_mut().for_each(|window| (window.before, window.after) = (0, 0));
            false
        }
        "SAME_UPPER" | "SAME_LOWER" => true,
        _ => return None,
    };
    let axis = |(window, &input): (&Window, &u64)| match same {
        true => Some(input.div_ceil(u64::try_from(window.stride).ok()?)),
        false => window.positions(input, ceil),
    };
    windows.iter().zip(spatial).map(axis).collect()
}

/// The kernel that a node declares, or that its weights have.
fn kernel(node: &Node<'_>, weights: Option<&[u64]>) -> Option<Shape> {
    match node.ints("kernel_shape") {
        Some(kernel) => kernel.iter().map(|&n| u64::try_from(n).ok()).collect(),
        None => weights.map(<[u64]>::to_vec),
    }
}

/// A convolution of an input with weights `[M,C/group,k…]`.
pub(super) fn convolution(node: &Node<'_>, weights: usize) -> Option<Shape> {
    let ([batch, _, spatial @ ..], [channels, _, size @ ..]) = (&node.shape(0)?[..], &node.shape(weights)?[..]) else {
        return None;
    };
    let spatial = slide(node, spatial, &kernel(node, Some(size))?, false)?;
    Some([&[*batch, *channels], &spatial[..]].concat())
}

/// A convolution the other way round, with weights `[C,M/group,k…]`.
pub(super) fn transposed(node: &Node<'_>) -> Option<Shape> {
    let ([batch, _, spatial @ ..], [_, channels, size @ ..]) = (&node.shape(0)?[..], &node.shape(1)?[..]) else {
        return None;
    };
    let group = u64::try_from(node.int("group").unwrap_or(1)).ok()?;
    let channels = channels.checked_mul(group)?;
    let kernel = kernel(node, Some(size))?;
    if spatial.len() != kernel.len() {
        return None;
    }
    if let Some(asked) = node.ints("output_shape") {
        let asked = asked.iter().map(|&n| u64::try_from(n).ok()).collect::<Option<Shape>>()?;
        let spatial = asked.get(asked.len().checked_sub(spatial.len())?..)?;
        return Some([&[*batch, channels], spatial].concat());
    }
    let extra = node.ints("output_padding").unwrap_or_default();
    let same = node.text("auto_pad").starts_with("SAME");
    let axis = |(at, (window, &input)): (usize, (Window, &u64))| {
        if same {
            return input.checked_mul(u64::try_from(window.stride).ok()?);
        }
        let extra = i128::from(extra.get(at).copied().unwrap_or(0));
        let padding = if node.text("auto_pad") == "VALID" { 0 } else { window.before + window.after };
        let steps = window.stride.checked_mul(i128::from(input) - 1)?;
        u64::try_from(steps.checked_add(extra + window.reach() - padding)?).ok()
    };
    let spatial = windows(node, &kernel)?.into_iter().zip(spatial).enumerate().map(axis).collect::<Option<Shape>>()?;
    Some([&[*batch, channels], &spatial[..]].concat())
}

/// A pool.
pub(super) fn pool(node: &Node<'_>) -> Option<Shape> {
    let [batch, channels, spatial @ ..] = &node.shape(0)?[..] else { return None };
    let spatial = slide(node, spatial, &kernel(node, None)?, node.int("ceil_mode") == Some(1))?;
    Some([&[*batch, *channels], &spatial[..]].concat())
}

/// A pool over everything.
pub(super) fn global_pool(node: &Node<'_>) -> Option<Shape> {
    let [batch, channels, spatial @ ..] = &node.shape(0)?[..] else { return None };
    Some([&[*batch, *channels], &vec![1; spatial.len()][..]].concat())
}
