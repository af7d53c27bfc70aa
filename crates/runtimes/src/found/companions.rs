//! Libraries that belong to a TensorRT: its ONNX parser and its plugins, of the same release.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::discovery::is_explicit;
use prony_types::os_text::path_from_text;
use prony_types::{RuntimeName, RuntimeRecord, RuntimeSpec, RuntimeState};

use super::Found;

const BELONG: [RuntimeName; 2] = [RuntimeName::Nvonnxparser, RuntimeName::NvinferPlugin];

/// What was found for it. A companion that someone pointed at is taken whatever it is; else one beside the library, else one
/// of its version.
pub(super) fn companions(found: &Found, of: &RuntimeSpec) -> BTreeMap<RuntimeName, PathBuf> {
    let nearest = |name: RuntimeName| {
        let copies = found.runtimes.iter().filter(|copy| copy.name == name && copy.state == RuntimeState::Ready);
        let rank = |copy: &&RuntimeRecord| rank(copy, of);
        let (copy, _) = copies.filter_map(|copy| Some((copy, rank(&copy)?))).min_by_key(|(_, rank)| *rank)?;
        Some((name, path_from_text(copy.path.as_ref()?)))
    };
    BELONG.into_iter().filter_map(nearest).collect()
}

/// How well a copy fits, 0 best; `None` where it is of another release.
fn rank(copy: &RuntimeRecord, of: &RuntimeSpec) -> Option<u32> {
    let path = path_from_text(copy.path.as_deref()?);
    if copy.found_by.as_deref().is_some_and(is_explicit) {
        return Some(0);
    }
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    let same_major = copy.version.as_deref().is_none_or(|version| major(version) == major(&of.version));
    let beside = path.parent() == of.library.parent();
    match (same_major, beside, copy.version.as_deref() == Some(&of.version)) {
        (false, ..) => None,
        (true, true, _) => Some(1),
        (true, false, true) => Some(2),
        (true, false, false) => Some(3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(path: &str, version: &str, found_by: &str) -> RuntimeRecord {
        RuntimeRecord {
            name: RuntimeName::Nvonnxparser,
            state: RuntimeState::Ready,
            path: Some(path.into()),
            found_by: Some(found_by.into()),
            version: Some(version.into()),
            provides: Vec::new(),
            reason: None,
            trusted: None,
            looked: Vec::new(),
            remedy: None,
        }
    }

    fn parser(copies: Vec<RuntimeRecord>) -> Option<PathBuf> {
        let found = Found { runtimes: copies, ..Found::default() };
        let of = RuntimeSpec::new("/opt/trt/libnvinfer.so.10", "10.3.0");
        companions(&found, &of).remove(&RuntimeName::Nvonnxparser)
    }

    #[test]
    fn the_one_beside_it_belongs_to_it() {
        let far = copy("/usr/lib/libnvonnxparser.so.10", "10.3.0", "ldconfig");
        let beside = copy("/opt/trt/libnvonnxparser.so.10", "10.3.0", "TENSORRT_HOME");
        let old = copy("/usr/lib/libnvonnxparser.so.8", "8.6.0", "ldconfig");
        assert_eq!(parser(vec![old.clone(), far.clone(), beside]), Some("/opt/trt/libnvonnxparser.so.10".into()));
        assert_eq!(parser(vec![old.clone(), far]), Some("/usr/lib/libnvonnxparser.so.10".into()));
        assert_eq!(parser(vec![old]), None);
        let pointed = copy("/mine/libnvonnxparser.so", "10.1.0", "explicit");
        let beside = copy("/opt/trt/libnvonnxparser.so.10", "10.3.0", "TENSORRT_HOME");
        assert_eq!(parser(vec![beside, pointed]), Some("/mine/libnvonnxparser.so".into()));
    }
}
