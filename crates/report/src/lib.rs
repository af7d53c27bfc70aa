//! A [`RunRecord`](prony_types::RunRecord) as text: Markdown, CSV, HTML, and the table on the terminal.
//!
//! Pure functions. Every statistic, comparison and recommendation is in the record already; this room gives them units,
//! digits and places. Names and reasons come from outside and are escaped for whatever they are written into.

mod accuracy;
mod across;
mod chart;
mod csv;
mod fact;
mod facts;
mod figure;
mod html;
mod markdown;
mod row;
mod terminal;
mod tone;

pub use across::comparison;
pub use csv::{csv, csv_of_all, imgsz_groups};
pub use html::{Picture, ReportError, html};
pub use markdown::markdown;
pub use terminal::{rooflines, terminal};
