//! RECORD: the list of a wheel's files with their hashes.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// What RECORD says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its hash.
    pub sha256: [u8; 32],
    /// Its size.
    pub bytes: u64,
}

/// Files by path. RECORD itself and its signatures, which cannot carry a hash, are not among them.
pub type Record = BTreeMap<String, Entry>;

/// Reads RECORD; `own` is its path in the wheel.
pub fn parse(text: &str, own: &str) -> Result<Record, String> {
    let mut record = Record::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("line {} {what}", index + 1);
        let (path, rest) = path_field(line).ok_or_else(|| wrong("is no row of path, hash and size"))?;
        let (hash, size) = rest.split_once(',').ok_or_else(|| wrong("is no row of path, hash and size"))?;
        if is_unhashed(&path, own) {
            if !(hash.is_empty() && size.is_empty()) {
                return Err(wrong("gives RECORD a hash of itself"));
            }
            continue;
        }
        let hash = hash.strip_prefix("sha256=").ok_or_else(|| wrong(&format!("has no sha256 of {path}")))?;
        let decoded = URL_SAFE_NO_PAD.decode(hash).ok().and_then(|bytes| bytes.try_into().ok());
        let sha256 = decoded.ok_or_else(|| wrong(&format!("has a malformed sha256 of {path}")))?;
        let bytes = size.parse().map_err(|_| wrong(&format!("has a malformed size of {path}")))?;
        if record.insert(path.clone(), Entry { sha256, bytes }).is_some() {
            return Err(wrong(&format!("lists {path} again")));
        }
    }
    Ok(record)
}

/// RECORD and its detached signatures stand in the list without a hash.
pub fn is_unhashed(path: &str, own: &str) -> bool {
    path.strip_prefix(own).is_some_and(|rest| matches!(rest, "" | ".jws" | ".p7s"))
}

/// The first field of a CSV row, which is quoted where it holds a comma, and what comes after its comma.
fn path_field(line: &str) -> Option<(String, &str)> {
    let Some(quoted) = line.strip_prefix('"') else {
        let (path, rest) = line.split_once(',')?;
        return Some((path.to_owned(), rest));
    };
    let mut path = String::new();
    let mut rest = quoted;
    loop {
        let (part, after) = rest.split_once('"')?;
        path.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                path.push('"');
                rest = more;
            }
            None => return Some((path, after.strip_prefix(',')?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "a-1.dist-info/RECORD";
    const EMPTY: &str = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";

    #[test]
    fn rows_are_read_in_either_line_ending() {
        let text = format!("a/b.so,sha256={EMPTY},0\r\n\"a/c,\"\"d\"\".so\",sha256={EMPTY},7\n{OWN},,\r\n");
        let record = parse(&text, OWN).unwrap();
        assert_eq!(record.keys().collect::<Vec<_>>(), ["a/b.so", "a/c,\"d\".so"]);
        assert_eq!((record["a/b.so"].sha256[0], record["a/c,\"d\".so"].bytes), (0xe3, 7));
    }

    #[test]
    fn a_malformed_row_is_named() {
        let row = |hash: &str| format!("a.so,{hash}");
        for (text, said) in [
            (row(&format!("sha256={EMPTY}")), "line 1 is no row"),
            (row(&format!("sha256={},0", &EMPTY[1..])), "malformed sha256 of a.so"),
            (row(&format!("sha256={EMPTY}=,0")), "malformed sha256 of a.so"),
            (row(&format!("sha256={EMPTY},-1")), "malformed size of a.so"),
            (row("md5=abc,0"), "no sha256 of a.so"),
            (row(",0"), "no sha256 of a.so"),
            (format!("a,sha256={EMPTY},0\na,sha256={EMPTY},0\n"), "line 2 lists a again"),
            (format!("{OWN},sha256={EMPTY},0"), "a hash of itself"),
            ("\"a,b".to_owned(), "line 1 is no row"),
        ] {
            let error = parse(&text, OWN).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
