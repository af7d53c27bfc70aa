//! Plain text in sections and columns.

/// Where lines are broken, if words allow it.
const WIDTH: usize = 110;

/// A text that grows by sections.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
}

impl Page {
    pub(crate) fn new(title: &str) -> Page {
        Page { text: format!("{title}\n") }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    pub(crate) fn heading(&mut self, title: &str) {
        self.text.push_str(&format!("\n{title}\n"));
    }

    /// A line that is not broken: a command, a path.
    pub(crate) fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// A text after a label, broken at words and continued under its own beginning.
    pub(crate) fn after(&mut self, label: &str, text: &str) {
        let indent = label.chars().count();
        let mut line = label.to_owned();
        let mut used = indent;
        for word in text.split_whitespace() {
            let length = word.chars().count();
            if used > indent && used + 1 + length > WIDTH {
                self.line(&line);
                line = " ".repeat(indent);
                used = indent;
            }
            if used > indent {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
        }
        self.line(&line);
    }

    /// Aligned `key: value` rows; what is not known is said to be so.
    pub(crate) fn rows(&mut self, title: &str, rows: &[(&str, Option<String>)]) {
        self.heading(title);
        let width = rows.iter().map(|(key, _)| key.len()).max().unwrap_or(0) + 1;
        for (key, value) in rows {
            let label = format!("  {:<width$} ", format!("{key}:"));
            self.after(&label, value.as_deref().unwrap_or("unknown"));
        }
    }
}

/// The widest of some words.
pub(crate) fn widest<'a>(words: impl Iterator<Item = &'a str>) -> usize {
    words.map(|word| word.chars().count()).max().unwrap_or(0)
}
