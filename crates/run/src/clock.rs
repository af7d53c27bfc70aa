//! The time of day, for people.

/// RFC 3339, UTC, to the second.
pub fn utc_now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The first part of a run folder's name.
pub fn utc_stamp() -> String {
    jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}
