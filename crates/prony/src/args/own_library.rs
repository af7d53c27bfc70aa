//! A library on the command line: `libonnxruntime.so`, or `nvonnxparser=libnvonnxparser.so.10`.

use std::path::PathBuf;
use std::str::FromStr;

use prony_types::RuntimeName;
use prony_types::os_text::path_from_text;

use prony_plan::options::NamedLibrary;

/// Where a runtime is; without a name, the one that the backend opens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OwnLibrary {
    pub(crate) name: Option<RuntimeName>,
    pub(crate) path: PathBuf,
}

impl FromStr for OwnLibrary {
    type Err = String;

    fn from_str(text: &str) -> Result<OwnLibrary, String> {
        match text.split_once('=') {
            // A path may hold the sign too, but then usually not before its first slash.
            Some((name, _)) if !name.contains('/') => {
                text.parse().map(|NamedLibrary { name, path }| OwnLibrary { name: Some(name), path })
            }
            _ => Ok(OwnLibrary { name: None, path: path_from_text(text) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_may_have_a_name_and_a_path_an_equals_sign() {
        let library = |text: &str| text.parse::<OwnLibrary>();
        let of = |name, path: &str| OwnLibrary { name, path: path.into() };
        assert_eq!(library("libonnxruntime.so"), Ok(of(None, "libonnxruntime.so")));
        assert_eq!(library("./a=b/lib.so"), Ok(of(None, "./a=b/lib.so")));
        assert_eq!(library("cuda=/lib/libcuda.so.1"), Ok(of(Some(RuntimeName::Cuda), "/lib/libcuda.so.1")));
        assert!(library("nosuch=/lib/x.so").unwrap_err().contains("nosuch"));
        assert!(library("cuda=").unwrap_err().contains("names no path"));
    }
}
