//! The tables of our objects against `facts.json`, both ways.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::{align_of, offset_of, size_of};
use std::ptr::null_mut;
use std::sync::Arc;

use serde_json::{Value, json};

use super::calls::{FAMILIES, information, slot};
use super::{
    BuildListener, Calibration, Calibrator, DeviceAllocator, EngineReader, ErrorRecorder, GpuAllocator, InterfaceInfo,
    Logger, OutputAllocator, OutputMemory, Profiler, ProgressMonitor, Severity, StreamReader, allocator, calibrator,
    logger, output, profiler, progress, reader, recorder,
};
use crate::Family;

/// What each interface has where, by major and class.
type Tables = BTreeMap<(String, String), Vec<String>>;

fn facts() -> Value {
    serde_json::from_str(include_str!("../../facts.json")).unwrap()
}

/// Ours, by the major that each is for.
fn ours() -> Tables {
    let (none, mut tables): (&[&str], Tables) = (&[], Tables::new());
    let mut add = |class: &str, names: [&[&str]; 3]| {
        for (major, names) in ["8", "10", "11"].iter().zip(names).filter(|(_, names)| !names.is_empty()) {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            tables.insert(((*major).to_owned(), class.to_owned()), names);
        }
    };
    add("ILogger", [logger::OLD.names, logger::OLD.names, logger::NEW.names]);
    add("IProfiler", [profiler::OLD.names, profiler::OLD.names, profiler::NEW.names]);
    add("IErrorRecorder", [recorder::OLD.names, recorder::NEW.names, recorder::NEW.names]);
    add("IGpuAllocator", [allocator::OLD.names, allocator::NEW.names, allocator::NEW.names]);
    add("IOutputAllocator", [output::OLD.names, output::NEW.names, output::NEW.names]);
    add("IInt8EntropyCalibrator2", [calibrator::ENTROPY_OLD.names, calibrator::ENTROPY_NEW.names, none]);
    add("IInt8MinMaxCalibrator", [calibrator::MINMAX_OLD.names, calibrator::MINMAX_NEW.names, none]);
    add("IProgressMonitor", [none, progress::TABLE.names, progress::TABLE.names]);
    add("IStreamReader", [none, reader::TABLE.names, none]);
    tables
}

#[test]
fn our_objects_are_laid_out_as_the_facts_say() {
    let mut found = Tables::new();
    for (major, classes) in facts()["interfaces"].as_object().unwrap() {
        for (class, methods) in classes.as_object().unwrap() {
            let methods = methods.as_object().unwrap();
            let mut names = vec![String::new(); methods.len()];
            for (name, fact) in methods {
                names[usize::try_from(fact["slot"].as_u64().unwrap()).unwrap()].clone_from(name);
            }
            found.insert((major.clone(), class.clone()), names);
        }
    }
    assert_eq!(ours(), found);
}

#[test]
fn interface_information_is_laid_out_as_the_facts_say() {
    let offsets = json!({
        "kind": offset_of!(InterfaceInfo, kind),
        "major": offset_of!(InterfaceInfo, major),
        "minor": offset_of!(InterfaceInfo, minor),
    });
    let (size, align) = (size_of::<InterfaceInfo>(), align_of::<InterfaceInfo>());
    assert_eq!(json!({"size": size, "align": align, "offsets": offsets}), facts()["layouts"]["InterfaceInfo"]);
}

/// Stands behind every object here; none of it is called.
struct Nothing;

impl DeviceAllocator for Nothing {
    fn allocate(&self, _: u64, _: u64) -> *mut c_void {
        null_mut()
    }
    fn free(&self, _: *mut c_void) -> bool {
        false
    }
}

impl BuildListener for Nothing {
    fn phase_start(&self, _: &str, _: Option<&str>, _: i32) {}
    fn step(&self, _: &str, _: i32) -> bool {
        true
    }
    fn phase_finish(&self, _: &str) {}
}

impl OutputMemory for Nothing {
    fn reallocate(&self, _: &str, _: *mut c_void, _: u64, _: u64) -> *mut c_void {
        null_mut()
    }
    fn shape(&self, _: &str, _: &[i64]) {}
}

impl EngineReader for Nothing {
    fn read(&mut self, _: &mut [u8]) -> i64 {
        0
    }
}

impl Calibration for Nothing {
    fn batch_size(&self) -> i32 {
        1
    }
    fn next_batch(&mut self, _: &[&str], _: &mut [*mut c_void]) -> bool {
        false
    }
    fn read_cache(&mut self) -> Option<Vec<u8>> {
        None
    }
    fn write_cache(&mut self, _: &[u8]) {}
}

#[test]
fn versioned_objects_say_of_themselves_what_the_facts_say() {
    let (logger, profiler, recorder) = (Logger::new(|_, _| ()), Profiler::new(), ErrorRecorder::new());
    let (allocator, output) = (GpuAllocator::new(Arc::new(Nothing)), OutputAllocator::new(Arc::new(Nothing)));
    let (monitor, reader) = (ProgressMonitor::new(Arc::new(Nothing)), StreamReader::new(Box::new(Nothing)));
    let (entropy, minmax) = (Calibrator::entropy(Box::new(Nothing)), Calibrator::minmax(Box::new(Nothing)));
    let (facts, mut told) = (facts(), BTreeMap::new());
    for family in FAMILIES {
        let major = family.first().major.to_string();
        for (class, object) in [
            ("ILogger", logger.object(family)),
            ("IProfiler", profiler.object(family)),
            ("IErrorRecorder", recorder.object(family)),
            ("IGpuAllocator", allocator.object(family)),
            ("IOutputAllocator", output.object(family)),
            ("IProgressMonitor", monitor.object(family)),
            ("IStreamReader", reader.object(family)),
            ("IInt8EntropyCalibrator2", entropy.object(family)),
            ("IInt8MinMaxCalibrator", minmax.object(family)),
        ] {
            let methods = &facts["interfaces"][&major][class];
            assert_eq!(object.is_null(), methods.is_null(), "{class} in {family:?}");
            if methods["getInterfaceInfo"].is_null() {
                continue;
            }
            let (language, kind, major_of, minor) = information(object);
            assert_eq!(json!(language), facts["enums"][&major]["APILanguage"]["kCPP"]["value"]);
            told.insert(class, json!([kind, major_of, minor]));
        }
    }
    assert_eq!(json!(told), facts["interface_info"]);
}

#[test]
fn numbers_that_our_objects_pass_are_those_of_the_facts() {
    let facts = facts();
    for family in FAMILIES {
        let enums = &facts["enums"][family.first().major.to_string()];
        let severities = enums["ILogger::Severity"].as_object().unwrap();
        assert_eq!(severities.len(), 5);
        for (name, fact) in severities {
            let severity = Severity::from_number(i32::try_from(fact["value"].as_i64().unwrap()).unwrap());
            let ours = format!("k{severity:?}").to_uppercase();
            assert_eq!(ours, name.replace('_', "").to_uppercase());
        }
        assert_eq!(enums["ErrorCode"]["kUNSPECIFIED_ERROR"]["value"], json!(recorder::UNSPECIFIED));
        if family == Family::V11 {
            assert!(enums["CalibrationAlgoType"].is_null());
            continue;
        }
        for (calibrator, class, name) in [
            (Calibrator::entropy(Box::new(Nothing)), "IInt8EntropyCalibrator2", "kENTROPY_CALIBRATION_2"),
            (Calibrator::minmax(Box::new(Nothing)), "IInt8MinMaxCalibrator", "kMINMAX_CALIBRATION"),
        ] {
            let methods = &facts["interfaces"][family.first().major.to_string()][class];
            let index = usize::try_from(methods["getAlgorithm"]["slot"].as_u64().unwrap()).unwrap();
            let object = calibrator.object(family);
            // SAFETY: the slot of `getAlgorithm`, which takes nothing.
            let algorithm = unsafe { slot::<unsafe extern "C" fn(*mut c_void) -> i32>(object, index)(object) };
            assert_eq!(enums["CalibrationAlgoType"][name]["value"], json!(algorithm));
        }
    }
}
