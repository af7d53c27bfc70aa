//! Protocol buffers: a tree of fields, changed as a tree, so that the lengths around a change still fit.

use prost::encoding::{decode_varint, encode_varint};

use crate::random::Random;

/// How deep bytes are taken for messages.
const DEPTH: usize = 8;

#[derive(Clone, Debug, PartialEq)]
enum Content {
    /// A number, and the bytes of one with a fixed width.
    Number(u64),
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

#[derive(Clone, Debug, PartialEq)]
struct Field {
    number: u64,
    content: Content,
}

/// Changes one field somewhere; what is no message is left as it is.
pub(super) fn mutate(input: &[u8], random: &mut Random) -> Vec<u8> {
    let Some(mut fields) = parse(input, DEPTH) else { return input.to_vec() };
    change(&mut fields, random);
    let mut out = Vec::with_capacity(input.len() + 32);
    encode(&fields, &mut out);
    out
}

fn parse(mut rest: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let key = decode_varint(&mut rest).ok()?;
        let content = match key & 7 {
            0 => Content::Number(decode_varint(&mut rest).ok()?),
            1 => Content::Fixed(rest.split_off(..8)?.to_vec()),
            5 => Content::Fixed(rest.split_off(..4)?.to_vec()),
            2 => {
                let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
                let bytes = rest.split_off(..length)?;
                let inner = (depth > 0 && !bytes.is_empty()).then(|| parse(bytes, depth - 1)).flatten();
                inner.map_or_else(|| Content::Bytes(bytes.to_vec()), Content::Message)
            }
            _ => return None,
        };
        (key >> 3 > 0).then_some(())?;
        fields.push(Field { number: key >> 3, content });
    }
    Some(fields)
}

fn encode(fields: &[Field], out: &mut Vec<u8>) {
    for field in fields {
        let key = |wire: u64| field.number << 3 | wire;
        match &field.content {
            Content::Number(number) => {
                encode_varint(key(0), out);
                encode_varint(*number, out);
            }
            Content::Fixed(bytes) => {
                encode_varint(key(if bytes.len() == 8 { 1 } else { 5 }), out);
                out.extend(bytes);
            }
            Content::Bytes(bytes) => {
                encode_varint(key(2), out);
                encode_varint(bytes.len() as u64, out);
                out.extend(bytes);
            }
            Content::Message(inner) => {
                let mut bytes = Vec::new();
                encode(inner, &mut bytes);
                encode_varint(key(2), out);
                encode_varint(bytes.len() as u64, out);
                out.extend(bytes);
            }
        }
    }
}

fn change(fields: &mut Vec<Field>, random: &mut Random) {
    if fields.is_empty() {
        return;
    }
    let at = random.below(fields.len());
    // Mostly further down: there are more leaves than branches.
    if let Content::Message(inner) = &mut fields[at].content
        && !random.once_in(4)
    {
        return change(inner, random);
    }
    match random.below(8) {
        0 => drop(fields.remove(at)),
        1 => fields.insert(at, fields[at].clone()),
        2 => fields[at].number = random.below(30) as u64 + 1,
        3 => {
            let to = random.below(fields.len());
            fields.swap(at, to);
        }
        // Deeper: a graph in an attribute of a node of itself.
        4 => {
            let number = [1, 5, 6, 7][random.below(4)];
            let inner = fields[at].clone();
            fields[at] = Field { number, content: Content::Message(vec![inner]) };
        }
        _ => change_content(&mut fields[at].content, random),
    }
}

fn change_content(content: &mut Content, random: &mut Random) {
    match content {
        Content::Number(number) => *number = random.edge(),
        Content::Fixed(bytes) => bytes.iter_mut().for_each(|byte| *byte = random.edge() as u8),
        Content::Bytes(bytes) if bytes.is_empty() => bytes.extend(random.edge().to_le_bytes()),
        Content::Bytes(bytes) => {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.number() as u8,
                1 => bytes.truncate(at),
                2 => bytes.extend_from_within(at..),
                _ => super::edge_at(bytes, at, random),
            }
        }
        Content::Message(inner) => inner.extend_from_within(..),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Reader;
    use crate::seeds::seeds;

    #[test]
    fn a_tree_is_written_as_it_was_read() {
        for seed in seeds(Reader::Onnx) {
            let fields = parse(&seed, DEPTH).unwrap();
            let mut out = Vec::new();
            encode(&fields, &mut out);
            // The seeds have no numbers in longer form than they need.
            assert_eq!(out, seed);
        }
    }
}
