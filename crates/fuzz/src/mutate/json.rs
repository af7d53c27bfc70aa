//! JSON: values are replaced, doubled, moved and taken out where they stand, so that what comes out is JSON again.

use serde_json::{Number, Value};

use super::lines;
use crate::random::Random;

/// Words that mean something to a terminal, a spreadsheet, a browser, a path or a parser of numbers.
const WORDS: [&str; 14] = [
    "",
    "\u{1b}[2J",
    "\u{9b}31m\r",
    "\u{202e}gpj",
    "=1+1",
    "<script>alert(1)</script>",
    "a|b`c`\n- x",
    "../../etc/passwd",
    "/dev/zero",
    "a\\xff\\x5cx",
    "NaN",
    "1e999",
    "𝔘ñí",
    "{{ 7 * 7 }}",
];

/// Changes one value; what is no JSON is changed as text.
pub(super) fn mutate(input: &[u8], random: &mut Random) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(input) else { return lines::mutate(input, random) };
    let other = value.clone();
    for _ in 0..=random.length(3) {
        let count = size(&value);
        let mut at = random.below(count);
        if let Some(place) = nth(&mut value, &mut at) {
            change(place, &other, random);
        }
    }
    serde_json::to_vec(&value).unwrap_or_default()
}

/// The same for a file of one object a line.
pub(super) fn mutate_lines(input: &[u8], random: &mut Random) -> Vec<u8> {
    if random.once_in(3) {
        return lines::mutate(input, random);
    }
    let mut rows: Vec<Vec<u8>> = input.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    let at = random.below(rows.len());
    rows[at] = mutate(&rows[at], random);
    rows.join(&b'\n')
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(fields) => fields.values().map(size).sum(),
        _ => 0,
    }
}

/// The value that is `at` places further on.
fn nth<'a>(value: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, at)),
        Value::Object(fields) => fields.values_mut().find_map(|field| nth(field, at)),
        _ => None,
    }
}

fn change(place: &mut Value, whole: &Value, random: &mut Random) {
    match (random.below(7), &mut *place) {
        (0, Value::Array(items)) if !items.is_empty() => {
            let at = random.below(items.len());
            items.remove(at);
        }
        (1, Value::Array(items)) if !items.is_empty() => {
            let item = items[random.below(items.len())].clone();
            let times = random.length(64);
            items.extend(std::iter::repeat_n(item, times));
        }
        (0, Value::Object(fields)) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            random.pick(&names).and_then(|name| fields.remove(name));
        }
        (1, Value::Object(fields)) => {
            let word = random.pick(&WORDS).copied().unwrap_or_default();
            fields.insert(word.to_owned(), Value::Null);
        }
        (2, _) => {
            // Something of the same file in another place: mostly of another type.
            let (mut copy, mut at) = (whole.clone(), random.below(size(whole)));
            if let Some(found) = nth(&mut copy, &mut at) {
                *place = found.take();
            }
        }
        (3, _) => *place = Value::String(random.pick(&WORDS).copied().unwrap_or_default().to_owned()),
        (4, Value::String(text)) => text.push_str(random.pick(&WORDS).copied().unwrap_or_default()),
        (5, Value::Number(number)) => *number = edge(random),
        (6, _) if random.once_in(8) => {
            for _ in 0..random.length(200) {
                *place = Value::Array(vec![place.take()]);
            }
        }
        _ => {
            *place = match random.below(5) {
                0 => Value::Null,
                1 => Value::Bool(random.once_in(2)),
                2 => Value::Array(Vec::new()),
                3 => Value::Object(serde_json::Map::new()),
                _ => Value::Number(edge(random)),
            }
        }
    }
}

fn edge(random: &mut Random) -> Number {
    let whole = random.edge();
    match random.below(3) {
        0 => Number::from(whole),
        1 => Number::from(whole as i64),
        _ => Number::from_f64(f64::from_bits(whole)).unwrap_or_else(|| Number::from(0)),
    }
}
