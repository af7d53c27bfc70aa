//! Texts of progress bars. Names of models and files and the words of libraries are in them, and indicatif draws whatever it
//! is given, so nothing else in the binary sets them; clippy refuses it (`clippy.toml`).
#![expect(clippy::disallowed_methods, reason = "this is the place")]

use indicatif::ProgressBar;
use prony_types::text::printable;

/// What stands behind a bar or a spinner.
pub(crate) fn message(bar: &ProgressBar, text: &str) {
    bar.set_message(printable(text).into_owned());
}

/// What stands before a bar.
pub(crate) fn prefix(bar: &ProgressBar, text: &str) {
    bar.set_prefix(printable(text).into_owned());
}

/// The last text of a bar, which stays on the screen.
pub(crate) fn last_message(bar: &ProgressBar, text: &str) {
    bar.abandon_with_message(printable(text).into_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_steers_the_terminal_from_a_bar() {
        let bar = ProgressBar::hidden();
        message(&bar, "a\u{1b}[2J\nb");
        prefix(&bar, "\u{202e}gpj.exe\r");
        assert_eq!((bar.message(), bar.prefix()), ("a\\u001b[2J\\nb".into(), "\\u202egpj.exe\\r".into()));
        last_message(&bar, "\u{9b}31m");
        assert_eq!(bar.message(), "\\u009b31m");
    }
}
