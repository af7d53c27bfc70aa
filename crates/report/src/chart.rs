//! Numbers as inline SVG. A chart is complete without a script: every mark carries its figures in a `<title>`.

mod axis;
mod curves;
mod histogram;
mod svg;
mod timeline;
mod waterfall;

pub(crate) use curves::{COLOURS, Curves, curves};
pub(crate) use histogram::histogram;
pub(crate) use timeline::timeline;
pub(crate) use waterfall::{spread, waterfall};
