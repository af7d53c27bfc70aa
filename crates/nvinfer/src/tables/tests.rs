//! The tables against `facts.json`, both ways.

use std::collections::BTreeMap;
use std::mem::{align_of, offset_of, size_of};

use serde_json::Value as Json;

use super::*;
use crate::DataType;
use crate::object::{DELETE, IMPLEMENTATION, LOWEST};
use crate::parser::PARSER_VERSION;

/// What is said of one thing in one major: number, version, signature.
type Entry = (i64, String, String);
/// By major, class and name.
type Entries = BTreeMap<(String, String, String), Entry>;

const MAJORS: [&str; 3] = ["8", "10", "11"];
/// Enums whose values the callbacks hand over, not the tables.
const ENUMS_OF_CALLBACKS: [&str; 4] = ["ILogger::Severity", "CalibrationAlgoType", "ErrorCode", "APILanguage"];

fn facts() -> Json {
    serde_json::from_str(include_str!("../../facts.json")).unwrap()
}

fn rows(rows: &[Row]) -> Entries {
    let mut entries = Entries::new();
    for row in rows {
        for (major, at) in MAJORS.iter().zip(row.places) {
            let Some(at) = at else { continue };
            assert_eq!(at.since.major.to_string(), *major, "{}.{}", row.class, row.name);
            let key = ((*major).to_owned(), row.class.to_owned(), row.name.to_owned());
            let entry = (i64::from(at.number), at.since.to_string(), row.signature.to_owned());
            assert_eq!(entries.insert(key.clone(), entry), None, "{key:?} is there twice");
        }
    }
    entries
}

fn found(part: &str, number: &str, counts: impl Fn(&str) -> bool) -> Entries {
    let mut entries = Entries::new();
    for (major, classes) in facts()[part].as_object().unwrap() {
        for (class, members) in classes.as_object().unwrap().iter().filter(|(class, _)| counts(class)) {
            for (name, fact) in members.as_object().unwrap() {
                let text = |key: &str| fact[key].as_str().unwrap_or_default().to_owned();
                let entry = (fact[number].as_i64().unwrap(), text("since"), text("signature"));
                entries.insert((major.clone(), class.clone(), name.clone()), entry);
            }
        }
    }
    entries
}

fn same(tables: &Entries, facts: &Entries) {
    assert!(!facts.is_empty());
    for (key, entry) in tables {
        assert_eq!(facts.get(key), Some(entry), "{key:?} is in the tables");
    }
    for (key, entry) in facts {
        assert_eq!(tables.get(key), Some(entry), "{key:?} is in the facts");
    }
}

#[test]
fn methods_are_where_the_facts_say_and_take_what_they_say() {
    same(&rows(METHODS), &found("methods", "slot", |_| true));
}

#[test]
fn values_are_what_the_facts_say() {
    same(&rows(VALUES), &found("enums", "value", |class| !ENUMS_OF_CALLBACKS.contains(&class)));
}

#[test]
fn structs_are_laid_out_as_the_facts_say() {
    let facts = facts();
    let layout = |name: &str| facts["layouts"][name].clone();
    let of = |size: usize, align: usize, count: usize, d: usize| serde_json::json!({"size": size, "align": align, "offsets": {"nbDims": count, "d": d}});
    let narrow = (offset_of!(Dims32, count), offset_of!(Dims32, d));
    assert_eq!(of(size_of::<Dims32>(), align_of::<Dims32>(), narrow.0, narrow.1), layout("Dims32"));
    let wide = (offset_of!(Dims64, count), offset_of!(Dims64, d));
    assert_eq!(of(size_of::<Dims64>(), align_of::<Dims64>(), wide.0, wide.1), layout("Dims64"));
}

#[test]
fn public_objects_are_taken_apart_as_the_facts_say() {
    let facts = facts();
    let object = &facts["layouts"]["public object"];
    assert_eq!(object["offsets"]["vptr"], 0);
    assert_eq!(object["offsets"]["mImpl"], IMPLEMENTATION * size_of::<Ptr>());
    assert_eq!(object["deleting destructor"], DELETE);
    assert_eq!(facts["pointers_below_are_null"], LOWEST);
    assert_eq!(facts["parser_version"], PARSER_VERSION);
}

#[test]
fn slots_that_moved_within_a_major_are_not_used() {
    for row in METHODS {
        let slot = |family: Family| row.places[family as usize].map_or(0, |at| at.number);
        // 10.8.0 put a method in at 63 and 10.9.0 took it out again.
        assert!(row.class != "VNetworkDefinition" || slot(Family::V10) < 63, "{}", row.name);
        // 8.6.0 has a parser without what 8.6.1 put at 12 and later.
        assert!(row.class != "IParser" || slot(Family::V8) < 12, "{}", row.name);
        // 8.6.0 has its plugin registry in an order of its own.
        assert_ne!(row.class, "IPluginRegistry");
    }
}

#[test]
fn a_method_that_is_younger_than_the_library_is_refused_with_both_versions() {
    let version = Version::new(8, 4, 1);
    let error = context::ENQUEUE_V3.slot(version).unwrap_err();
    assert!(matches!(&error, Error::TooOld { what, since, version: of }
        if what == "VExecutionContext.enqueueV3" && *since == Version::new(8, 5, 1) && *of == version));
    assert_eq!(context::ENQUEUE_V3.slot(Version::new(8, 5, 1)).unwrap(), 44);
    assert_eq!(context::ENQUEUE_V3.slot(Version::new(10, 99, 0)).unwrap(), 37);
    assert_eq!(context::ENQUEUE_V3.slot(Version::new(11, 0, 0)).unwrap(), 36);
}

#[test]
fn a_method_that_the_major_has_not_is_refused_by_name() {
    for (error, name) in [
        (config::SET_INT8_CALIBRATOR.slot(Version::new(11, 4, 0)), "VBuilderConfig.setInt8Calibrator"),
        (config::SET_PROGRESS_MONITOR.slot(Version::new(8, 6, 1)), "VBuilderConfig.setProgressMonitor"),
        (context::ENQUEUE_V2.slot(Version::new(10, 0, 0)), "VExecutionContext.enqueueV2"),
        (context::ENQUEUE_V3.slot(Version::new(12, 0, 0)), "VExecutionContext.enqueueV3"),
    ] {
        let error = error.unwrap_err();
        assert!(matches!(&error, Error::Unsupported { what, .. } if what == name), "{error}");
    }
    let error = builder_flag::FP16.number(Version::new(11, 0, 0)).unwrap_err().to_string();
    assert!(error.starts_with("BuilderFlag::kFP16 does not exist in TensorRT 11.0.0"), "{error}");
}

#[test]
fn every_version_tells_what_device_memory_a_context_needs() {
    for version in ["8.0.1", "8.6.1", "10.0.0", "10.0.1", "10.1.0", "11.0.0", "11.4.0"] {
        let version: Version = version.parse().unwrap();
        let (old, new) =
            (engine::GET_DEVICE_MEMORY_SIZE.slot(version), engine::GET_DEVICE_MEMORY_SIZE_V2.slot(version));
        assert!(old.is_ok() || new.is_ok(), "{version}");
    }
}

#[test]
fn data_types_have_one_number_in_every_major() {
    for row in VALUES.iter().filter(|row| row.class == "DataType") {
        let numbers: Vec<i32> = row.places.iter().flatten().map(|at| at.number).collect();
        assert!(numbers.iter().all(|number| *number == numbers[0]), "{}", row.name);
        assert!(!matches!(DataType::from_number(numbers[0]), DataType::Other(_)), "{}", row.name);
    }
}
