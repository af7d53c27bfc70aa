//! Class names, as exporters write them: a Python dict or list, a JSON object or list, names by index or indices by name.

use std::collections::BTreeMap;

use crate::literal::{self, Literal};

/// So much of a text that cannot be read is shown.
const SHOWN: usize = 80;

/// Class names by index, or why the text of a metadata entry is not that. Indices that are not exactly 0 to n-1 are not
/// guessed at.
pub(crate) fn read(key: &str, text: &str) -> Result<Vec<String>, String> {
    literal::parse(text).and_then(by_index).ok_or_else(|| {
        let more = if text.chars().count() > SHOWN { "…" } else { "" };
        let shown: String = text.chars().take(SHOWN).collect();
        format!("its metadata `{key}` is not a list of class names or a name for each index from 0: {shown}{more}")
    })
}

fn by_index(literal: Literal) -> Option<Vec<String>> {
    match literal {
        Literal::List(items) => items.into_iter().map(name).collect(),
        Literal::Dict(items) => {
            let count = items.len();
            let named: Option<Vec<(i64, String)>> =
                items.iter().map(|(key, value)| Some((index(key)?, name(value.clone())?))).collect();
            // The other way round: `{"person": 0}`.
            let turned = || items.iter().map(|(key, value)| Some((index(value)?, name(key.clone())?))).collect();
            let names: BTreeMap<i64, String> = named.or_else(turned)?.into_iter().collect();
            (names.len() == count && names.keys().copied().eq(0..count as i64)).then(|| names.into_values().collect())
        }
        Literal::Int(_) | Literal::Str(_) => None,
    }
}

/// JSON has no keys but texts.
fn index(literal: &Literal) -> Option<i64> {
    match literal {
        Literal::Int(index) => Some(*index),
        Literal::Str(text) => text.trim().parse().ok(),
        Literal::List(_) | Literal::Dict(_) => None,
    }
}

/// Digits are names too, in data sets of them.
fn name(literal: Literal) -> Option<String> {
    match literal {
        Literal::Str(name) => Some(name),
        Literal::Int(number) => Some(number.to_string()),
        Literal::List(_) | Literal::Dict(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_json_or_with_escapes_were_no_names() {
        for (text, names) in [
            (r#"{0: 'person', 1: "it's"}"#, ["person", "it's"]),
            (r#"{"0": "person", "1": "it's"}"#, ["person", "it's"]),
            (r#"["person", "it's"]"#, ["person", "it's"]),
            (r#"{"it's": 1, "person": 0}"#, ["person", "it's"]),
            (r"{0: 'traffic\xa0light', 1: 'caf\u00e9'}", ["traffic\u{a0}light", "café"]),
            (r#"{"1": "\ud83d\udc36", "0": "a\/b"}"#, ["a/b", "🐶"]),
            (r"{0: '\U0001f436', 1: 'a\\b'}", ["🐶", r"a\b"]),
            ("('0', 1)", ["0", "1"]),
        ] {
            assert_eq!(read("names", text).as_deref(), Ok(&names.map(str::to_owned)[..]), "{text}");
        }
        assert_eq!(read("names", "{}"), Ok(vec![]), "no class is no mistake");
    }

    #[test]
    fn names_that_cannot_be_read_are_shown_and_not_guessed_at() {
        for text in
            ["{0: 'a', 2: 'c'}", "{0: 'a', 0: 'b'}", "person, car", r"['\q']", "{0: None}", "['a', [1]]", "7", ""]
        {
            let problem = read("names", text).unwrap_err();
            assert!(problem.contains("metadata `names`") && problem.ends_with(text), "{problem}");
        }
        let long = read("names", &"x".repeat(500)).unwrap_err();
        assert!(long.ends_with("x…") && long.len() < 200, "{long}");
    }
}
