//! The C++ classes of one version, in the order of the facts that the crate `nvinfer` keeps.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value};

const FACTS: &str = include_str!("../../nvinfer/facts.json");

/// Places behind the last known method, so that a call past the end has a name too.
const SPARE: u64 = 8;

/// `layout.h` for a version such as `8.6.1`.
pub(crate) fn header(version: &str) -> String {
    let facts: Value = serde_json::from_str(FACTS).expect("facts.json is JSON");
    let numbers = parts(version);
    let major = numbers[0].to_string();
    let thousands = if numbers[0] < 10 { 1_000 } else { 10_000 };
    let number = numbers[0] * thousands + numbers[1] * 100 + numbers[2];
    let mut out = format!(
        "// Generated from facts.json.\n#pragma once\n#define FAMILY {major}\n#define VERSION_NUMBER {number}\n\
         #define VERSION_TEXT \"{version}\"\n\n"
    );
    constants(&mut out, object(&facts["enums"]), &major);
    for (class, methods) in object(&facts["methods"][&major]) {
        // Behind the two words of a public object there are destructors in front of the methods.
        let behind = class.starts_with('V');
        write_class(&mut out, class, object(methods), &|since| parts(since) <= numbers, behind);
    }
    for (class, methods) in object(&facts["interfaces"][&major]) {
        // The user's objects, which have every method from the start.
        write_class(&mut out, class, object(methods), &|_| true, false);
    }
    out
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object in facts.json")
}

fn parts(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().expect("a version")).collect()
}

/// Every value that any major has; -1 where this one does not.
fn constants(out: &mut String, enums: &Map<String, Value>, major: &str) {
    let mut all = BTreeMap::new();
    for (of, lists) in enums {
        for (name, values) in object(lists) {
            for (value, fact) in object(values) {
                let entry = all.entry(format!("{}_{value}", name.replace("::", "_"))).or_insert(-1);
                if of == major {
                    *entry = fact["value"].as_i64().expect("a value");
                }
            }
        }
    }
    for (name, value) in all {
        writeln!(out, "constexpr int32_t {name} = {value};").expect("a string takes everything");
    }
}

fn write_class(out: &mut String, class: &str, methods: &Map<String, Value>, has: &dyn Fn(&str) -> bool, behind: bool) {
    let by_slot: BTreeMap<u64, (&String, &Value)> =
        methods.iter().map(|(name, fact)| (fact["slot"].as_u64().expect("a slot"), (name, fact))).collect();
    let destructors =
        if behind { Some(0) } else { methods.get("~deleting").map(|fact| fact["slot"].as_u64().expect("a slot") - 1) };
    let end = by_slot.keys().last().map_or(0, |last| last + 1) + SPARE;
    let mut lines = String::new();
    let mut slot = 0;
    while slot < end {
        if destructors == Some(slot) {
            writeln!(lines, "    virtual ~{class}() {{}}").expect("a string takes everything");
            slot += 2;
            continue;
        }
        let known = by_slot.get(&slot).filter(|(_, fact)| has(text(fact, "since")));
        let declared = match known {
            Some((name, fact)) => declaration(name, text(fact, "signature")),
            None => format!("void place{slot}()"),
        };
        let name = by_slot.get(&slot).map_or("a place that is not used", |(name, _)| name.as_str());
        writeln!(lines, "    virtual {declared} {{ stray(\"{class} {slot} ({name})\"); }}")
            .expect("a string takes everything");
        slot += 1;
    }
    write!(out, "\nclass {class} {{\npublic:\n{lines}}};\n").expect("a string takes everything");
}

fn text<'a>(fact: &'a Value, key: &str) -> &'a str {
    fact[key].as_str().expect("a text in facts.json")
}

/// `fn(Ptr, u64) -> bool` as C++ writes it.
fn declaration(name: &str, signature: &str) -> String {
    let (arguments, result) = signature
        .strip_prefix("fn(")
        .and_then(|rest| rest.split_once(')'))
        .unwrap_or_else(|| panic!("{name}: cannot read {signature}"));
    let arguments: Vec<&str> = arguments.split(", ").filter(|one| !one.is_empty()).map(kind).collect();
    let result = result.strip_prefix(" -> ").map_or("void", kind);
    // An overload has its argument behind its name.
    let name = name.split('(').next().unwrap_or(name);
    format!("{result} {name}({})", arguments.join(", "))
}

fn kind(name: &str) -> &'static str {
    match name {
        "Ptr" => "void*",
        "Str" => "const char*",
        "bool" => "bool",
        "i32" => "int32_t",
        "u32" => "uint32_t",
        "i64" => "int64_t",
        "u64" => "uint64_t",
        "f32" => "float",
        "Dims32" => "Dims32",
        "Dims64" => "Dims64",
        "InterfaceInfo" => "InterfaceInfo",
        other => panic!("facts.json has a type that C++ was not taught: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of a class that declares a slot.
    fn line(header: &str, class: &str, index: usize) -> String {
        let body = header.split(&format!("\nclass {class} {{\npublic:\n")).nth(1).unwrap();
        body.lines().nth(index).unwrap().trim().to_owned()
    }

    #[test]
    fn a_method_is_where_its_slot_says() {
        let header = header("8.6.1");
        assert!(header.contains("#define VERSION_NUMBER 8601\n"));
        assert!(line(&header, "VRuntime", 0).starts_with("virtual ~VRuntime()"));
        // Both destructors are one line, so slot 2 is line 1.
        assert!(
            line(&header, "VRuntime", 1).starts_with("virtual void* deserializeCudaEngine(void*, uint64_t, void*)")
        );
        assert!(line(&header, "ILogger", 0).starts_with("virtual void log(int32_t, const char*)"));
        assert!(line(&header, "ILogger", 1).starts_with("virtual ~ILogger()"));
    }

    #[test]
    fn what_is_younger_than_the_version_is_a_place_that_names_itself() {
        let young = r#"stray("VExecutionContext 44 (enqueueV3)")"#;
        assert!(header("8.2.1").contains(&format!("virtual void place44() {{ {young}; }}")));
        assert!(header("8.5.1").contains(&format!("virtual bool enqueueV3(void*) {{ {young}; }}")));
    }

    #[test]
    fn a_value_that_a_major_does_not_have_is_minus_one() {
        assert!(header("10.3.0").contains("constexpr int32_t BuilderFlag_kINT8 = 1;"));
        assert!(header("11.1.0").contains("constexpr int32_t BuilderFlag_kINT8 = -1;"));
        assert!(header("11.1.0").contains("#define VERSION_NUMBER 110100\n"));
    }
}
