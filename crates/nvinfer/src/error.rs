//! What can go wrong, named so that it can be acted upon.

use std::fmt;
use std::path::PathBuf;

use crate::Version;

/// Why something could not be had from TensorRT.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is no library, or one that it needs is missing.
    #[error("{}: cannot be opened: {reason}; name a library whose own dependencies are installed", path.display())]
    Open {
        /// What was opened.
        path: PathBuf,
        /// What the loader said.
        reason: String,
    },
    /// The library is not the one that it was taken for.
    #[error("{}: has no symbol {symbol}, so it is not the library that it was taken for; name another", path.display())]
    Symbol {
        /// The library.
        path: PathBuf,
        /// What it should have.
        symbol: &'static str,
    },
    /// A major whose layouts nobody has written down.
    #[error("{}: TensorRT {version} is of a major whose objects are not known here; use 8.x, 10.x or 11.x", path.display())]
    UnknownMajor {
        /// The library.
        path: PathBuf,
        /// What it says that it is.
        version: Version,
    },
    /// Younger than the library.
    #[error("{what} needs TensorRT {since} and this is {version}; use a newer TensorRT or do without it")]
    TooOld {
        /// A method or a value.
        what: String,
        /// The first version with it.
        since: Version,
        /// The library's.
        version: Version,
    },
    /// There is no driver, or none that can be used.
    #[error("NVIDIA driver: {reason}")]
    Driver {
        /// What is wrong and what helps.
        reason: String,
    },
    /// TensorRT gave nothing.
    #[error("TensorRT made no {what}: {}", said(log))]
    NotCreated {
        /// Kind of object.
        what: String,
        /// What was said meanwhile, oldest first.
        log: Vec<String>,
    },
    /// The parser is for another TensorRT.
    #[error(
        "{}: this ONNX parser is for TensorRT {found} and the library is {version}; name the parser of the same release",
        path.display()
    )]
    ParserMajor {
        /// The parser.
        path: PathBuf,
        /// What it is for, as far as it can be told.
        found: String,
        /// The library's.
        version: Version,
    },
    /// The model was not understood.
    #[error("the ONNX parser refused the model: {}", listed(errors))]
    Parse {
        /// Why, in the parser's order.
        errors: Vec<ParseError>,
    },
    /// TensorRT said no.
    #[error("TensorRT refused {what}: {}", said(log))]
    Refused {
        /// What was asked.
        what: String,
        /// What was said meanwhile, oldest first.
        log: Vec<String>,
    },
    /// This TensorRT never had it, or no longer has it.
    #[error("{what} does not exist in TensorRT {version}; use another TensorRT or do without it")]
    Unsupported {
        /// A method or a value.
        what: String,
        /// The library's.
        version: Version,
    },
    /// A text that cannot be handed over or read.
    #[error("{what}: {reason}")]
    Text {
        /// Which text.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// The engine has no tensor of this name.
    pub(crate) fn unknown_tensor(name: &str) -> Error {
        Error::Text { what: format!("tensor '{name}'"), reason: "the engine has none of this name".to_owned() }
    }
}

/// One complaint of the ONNX parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The parser's number for it.
    pub code: i32,
    /// Why.
    pub reason: String,
    /// Name of the node, from 10.0 on.
    pub node: Option<String>,
    /// Its operator, from 10.0 on.
    pub operator: Option<String>,
    /// Its position in the graph; negative where there is no such node.
    pub node_index: i32,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Some(node) => write!(f, "node '{node}'")?,
            None if self.node_index >= 0 => write!(f, "node {}", self.node_index)?,
            None => f.write_str("the graph")?,
        }
        if let Some(operator) = &self.operator {
            write!(f, " ({operator})")?;
        }
        write!(f, ": {} (code {})", self.reason, self.code)
    }
}

/// One line from a log.
fn said(log: &[String]) -> String {
    if log.is_empty() { "it gave no reason".to_owned() } else { one_line(&log.join("; ")) }
}

fn listed(errors: &[ParseError]) -> String {
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    if all.is_empty() { "it gave no reason".to_owned() } else { one_line(&all.join("; ")) }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parse_error_names_the_node_as_well_as_it_can() {
        let mut error = ParseError {
            code: 8,
            reason: "no importer\nfor it".to_owned(),
            node: Some("/head/nms".to_owned()),
            operator: Some("Foo".to_owned()),
            node_index: 3,
        };
        let whole = Error::Parse { errors: vec![error.clone()] };
        assert_eq!(
            whole.to_string(),
            "the ONNX parser refused the model: node '/head/nms' (Foo): no importer for it (code 8)"
        );
        (error.node, error.operator) = (None, None);
        assert_eq!(error.to_string(), "node 3: no importer\nfor it (code 8)");
        error.node_index = -1;
        assert!(error.to_string().starts_with("the graph: "));
    }

    #[test]
    fn what_the_log_said_is_in_one_line() {
        let error = Error::NotCreated { what: "engine".to_owned(), log: vec!["a\n b".to_owned(), "c".to_owned()] };
        assert_eq!(error.to_string(), "TensorRT made no engine: a b; c");
        let error = Error::Refused { what: "the build".to_owned(), log: Vec::new() };
        assert_eq!(error.to_string(), "TensorRT refused the build: it gave no reason");
    }
}
