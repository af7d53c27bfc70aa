//! Facts about the model that travel with the file, under Ultralytics' keys and in Python's notation, as its readers expect.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use prony_model::pt::Checkpoint;

use super::{ExportOptions, Exported};

/// Keys and values.
pub(super) fn facts(
    checkpoint: &Checkpoint,
    options: &ExportOptions,
    made: &Exported,
    channels: usize,
) -> Vec<(&'static str, String)> {
    let [height, width] = made.imgsz;
    let stem = checkpoint.yaml.as_deref().and_then(|yaml| yaml.strip_suffix(".yaml")).unwrap_or("YOLO");
    let stride = checkpoint.strides.iter().copied().fold(0.0, f32::max);
    let license = checkpoint.pickle.entry(checkpoint.pickle.root(), "license");
    let license = license.and_then(|id| checkpoint.pickle.text(id)).map(str::to_owned);
    let head = checkpoint.head().map(|head| head.class.name.clone());
    let args = format!(
        "{{'batch': {}, 'half': {}, 'dynamic': {}, 'opset': {}}}",
        options.batch,
        truth(options.half),
        truth(options.dynamic),
        options.opset
    );
    let facts = [
        ("description", Some(format!("{stem} model"))),
        ("date", checkpoint.date.clone()),
        ("version", checkpoint.version.clone()),
        ("license", license),
        ("stride", Some(stride.to_string())),
        ("task", Some("detect".to_owned())),
        ("head", head),
        ("batch", Some(options.batch.to_string())),
        ("imgsz", Some(format!("[{height}, {width}]"))),
        ("names", Some(dict(&made.names))),
        ("args", Some(args)),
        ("channels", Some(channels.to_string())),
        ("end2end", Some(truth(made.end2end).to_owned())),
    ];
    facts.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

fn truth(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// A dict as Python writes it.
fn dict(names: &BTreeMap<i64, String>) -> String {
    let entries: Vec<String> = names.iter().map(|(number, name)| format!("{number}: {}", quoted(name))).collect();
    format!("{{{}}}", entries.join(", "))
}

/// A text as Python writes it: in single quotes, unless it has some and no double ones.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut written = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\n' => written.push_str("\\n"),
            '\t' => written.push_str("\\t"),
            '\r' => written.push_str("\\r"),
            '\\' => written.push_str("\\\\"),
            letter if letter == quote => written.extend(['\\', letter]),
            letter if letter.is_control() => {
                // Control characters end at U+009F.
                let _ = write!(written, "\\x{:02x}", u32::from(letter));
            }
            letter => written.push(letter),
        }
    }
    written.push(quote);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_python_does() {
        let cases = [
            ("person", "'person'"),
            ("driver's", "\"driver's\""),
            ("6\" nail", "'6\" nail'"),
            ("it's 6\"", "'it\\'s 6\"'"),
            ("a\\b\n\t\u{1}", "'a\\\\b\\n\\t\\x01'"),
            ("café", "'café'"),
        ];
        for (text, expected) in cases {
            assert_eq!(quoted(text), expected);
        }
        let names = BTreeMap::from([(1, "b".to_owned()), (0, "it's".to_owned())]);
        assert_eq!(dict(&names), "{0: \"it's\", 1: 'b'}");
    }
}
