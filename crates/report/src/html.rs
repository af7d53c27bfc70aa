//! `report.html`: one file that needs nothing else, complete without its script, and safe with hostile names.

mod view;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, HtmlEscape, Value};
use prony_types::RunRecord;
use prony_types::text::printable_lines;

/// A thumbnail, read from the cell's folder by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Id of the cell it belongs to.
    pub cell: String,
    /// File name inside the cell's folder.
    pub file: String,
    /// The frame, in words.
    pub caption: String,
    /// The file, PNG or JPEG.
    pub bytes: Vec<u8>,
}

/// Why no page could be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The page's template and the record do not fit: a fault of Prony's own.
    #[error("report.html: the template could not be rendered: {0}")]
    Template(String),
}

/// As text: the message holds the cause, and a chain of errors would say it twice.
impl From<minijinja::Error> for ReportError {
    fn from(cause: minijinja::Error) -> ReportError {
        ReportError::Template(cause.to_string())
    }
}

const PAGE: &str = "report.html";
const TEMPLATES: [(&str, &str); 4] = [
    (PAGE, include_str!("../templates/report.html")),
    ("accuracy.html", include_str!("../templates/accuracy.html")),
    ("cell.html", include_str!("../templates/cell.html")),
    ("macros.html", include_str!("../templates/macros.html")),
];

/// The whole record as one self-contained page. Pictures of cells that are not in the record are left out.
pub fn html(record: &RunRecord, pictures: &[Picture]) -> Result<String, ReportError> {
    let mut env = Environment::new();
    // Not by extension: a template added under any other name must not become the one that does not escape.
    env.set_auto_escape_callback(|_| AutoEscape::Html);
    env.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    env.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    env.add_filter("prose", prose);
    for (name, source) in TEMPLATES {
        env.add_template(name, source)?;
    }
    let page = env.get_template(PAGE)?.render(Serde(view::page(record, pictures)))?;
    // Nothing of the templates is unprintable, so whatever is came with a name.
    Ok(printable_lines(&page).into_owned())
}

/// A sentence of Prony's own: what stands in backticks becomes code, everything is escaped.
fn prose(raw: &str) -> Value {
    let pieces: Vec<&str> = raw.split('`').collect();
    // An even number of pieces means that a backtick has no partner; then they are only characters.
    if pieces.len().is_multiple_of(2) {
        return Value::from_safe_string(HtmlEscape(raw).to_string());
    }
    let dressed = pieces.iter().enumerate().map(|(i, piece)| match i % 2 {
        0 => HtmlEscape(piece).to_string(),
        _ => format!("<code>{}</code>", HtmlEscape(piece)),
    });
    Value::from_safe_string(dressed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_told_once() {
        let cause = minijinja::Error::new(minijinja::ErrorKind::UndefinedError, "no such field");
        let words = cause.to_string();
        let error = ReportError::from(cause);
        assert!(error.to_string().ends_with(&words), "{error}");
        assert!(std::error::Error::source(&error).is_none(), "the message already holds it");
    }

    #[test]
    fn prose_makes_code_and_nothing_else() {
        assert_eq!(prose("run `a <b>` & c").to_string(), "run <code>a &lt;b&gt;</code> &amp; c");
        assert_eq!(prose("a ` <i>").to_string(), "a ` &lt;i&gt;");
    }
}
