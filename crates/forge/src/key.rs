//! Keys of the cache: the hash of all that decides an artifact.

use prony_model::sha256_hex;
use serde::Serialize;

use crate::error::ForgeError;

/// Length of a key: as many hex digits of the hash as can never meet by chance.
pub(crate) const KEY_DIGITS: usize = 32;

/// The key of what is decided by all of this. Keys of a JSON object are sorted, so what is equal has an equal key.
pub(crate) fn key_of(all: &impl Serialize) -> Result<String, ForgeError> {
    let text = serde_json::to_value(all).map_err(ForgeError::json("a cache key"))?.to_string();
    Ok(key_of_bytes(text.as_bytes()))
}

/// The key of what is decided by these bytes.
pub(crate) fn key_of_bytes(bytes: &[u8]) -> String {
    sha256_hex(bytes)[..KEY_DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use prony_types::FailureKind;

    use super::*;

    #[test]
    fn the_order_of_fields_is_no_part_of_a_key() {
        let forth = BTreeMap::from([("a", 1), ("b", 2)]);
        let back: HashMap<&str, i32> = [("b", 2), ("a", 1)].into();
        assert_eq!(key_of(&forth).unwrap(), key_of(&back).unwrap());
        assert_eq!(key_of(&forth).unwrap(), key_of_bytes(br#"{"a":1,"b":2}"#));
    }

    #[test]
    fn what_cannot_be_written_had_the_key_of_nothing() {
        let not_json = BTreeMap::from([((1, 2), 3)]);
        let error = key_of(&not_json).unwrap_err();
        assert_eq!(error.kind(), FailureKind::Internal);
        assert!(error.to_string().starts_with("internal error: a cache key cannot be written as JSON: "), "{error}");
    }
}
