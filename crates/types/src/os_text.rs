//! File names as text. A name on Linux is bytes; nearly all of them are UTF-8 and are written as they are. Of the others each
//! byte that is no text becomes `\xff`, and what was written so can be read back to the very bytes.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Length of `\xff`.
const ESCAPE: usize = 4;

/// A name as text, which [`from_text`] reads back.
pub fn to_text(name: &OsStr) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.as_bytes().utf8_chunks() {
        let mut rest = chunk.valid();
        // What looks like an escape already would be read back as one.
        while let Some(at) =
            rest.match_indices('\\').map(|(at, _)| at).find(|&at| byte(&rest.as_bytes()[at..]).is_some())
        {
            out.push_str(&rest[..at]);
            out.push_str("\\x5c");
            rest = &rest[at + 1..];
        }
        out.push_str(rest);
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// The name that a text stands for.
pub fn from_text(text: &str) -> OsString {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        match byte(rest) {
            Some(byte) => {
                out.push(byte);
                rest = &rest[ESCAPE..];
            }
            None => {
                out.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(out)
}

/// The byte of an escape that a text begins with.
fn byte(text: &[u8]) -> Option<u8> {
    let digits = text.get(..ESCAPE)?.strip_prefix(b"\\x")?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|c| c.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

/// A path as text, for records.
pub fn path_to_text(path: &Path) -> String {
    to_text(path.as_os_str())
}

/// The path that a text stands for.
pub fn path_from_text(text: &str) -> PathBuf {
    from_text(text).into()
}

/// For `#[serde(with = "os_text::path")]`: one path. The others are for paths in an `Option`, a list or a map.
pub(crate) mod path {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{Path, PathBuf, path_from_text, path_to_text};

    pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&path_to_text(path))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        String::deserialize(from).map(|text| path_from_text(&text))
    }
}

pub(crate) mod option {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::{PathBuf, path_from_text, path_to_text};

    pub(crate) fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(path_to_text).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        Option::<String>::deserialize(from).map(|text| text.as_deref().map(path_from_text))
    }
}

pub(crate) mod list {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{PathBuf, path_from_text, path_to_text};

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| path_to_text(path)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        Vec::<String>::deserialize(from).map(|list| list.iter().map(|text| path_from_text(text)).collect())
    }
}

pub(crate) mod map {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{PathBuf, path_from_text, path_to_text};

    pub(crate) fn serialize<K: Serialize, S: Serializer>(
        paths: &BTreeMap<K, PathBuf>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(paths.iter().map(|(key, path)| (key, path_to_text(path))))
    }

    pub(crate) fn deserialize<'de, K: Deserialize<'de> + Ord, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<K, PathBuf>, D::Error> {
        let texts = BTreeMap::<K, String>::deserialize(from)?;
        Ok(texts.into_iter().map(|(key, text)| (key, path_from_text(&text))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back_to_the_byte() {
        let names: [&[u8]; 9] = [
            b"",
            b"plain/yolo.onnx",
            "größe/日本.onnx".as_bytes(),
            b"a\xff.onnx",
            b"\xc3",
            b"a\\xff",
            b"a\\x5cxff\xfe",
            b"\\x\\xf\\xfg\\",
            b"new\nline\x1b[31m\x80",
        ];
        for name in names {
            let name = OsStr::from_bytes(name);
            let text = to_text(name);
            assert_eq!(from_text(&text), name, "{text}");
            // Ordinary names are written as they are.
            if let Some(plain) = name.to_str().filter(|plain| !plain.contains("\\x")) {
                assert_eq!(text, plain);
            }
        }
        assert_eq!(to_text(OsStr::from_bytes(b"a\xff\xfe.onnx")), "a\\xff\\xfe.onnx");
    }
}
