//! Damage: of bytes whatever they are, and of what a format is made of, so that it goes deep.

mod json;
mod lines;
mod message;
mod pickle;
mod text;
mod zipped;

use crate::random::Random;
use crate::reader::Reader;

/// The largest input that is made. What a reader holds is held against it.
pub const LARGEST: usize = 1 << 16;

/// An input made from another, and at times from a second one.
pub fn mutate(reader: Reader, input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut made = input.to_vec();
    for _ in 0..=random.length(6) {
        made = match random.below(3) {
            0 => bytes(made, other, random),
            _ => of_format(reader, made, random),
        };
        made.truncate(LARGEST);
    }
    made
}

fn of_format(reader: Reader, input: Vec<u8>, random: &mut Random) -> Vec<u8> {
    match reader {
        Reader::Pickle => pickle::mutate(&input, random),
        Reader::Zip => zipped::mutate(input, random),
        // A damaged pickle in a whole container gets further than one in a damaged container.
        Reader::Checkpoint if random.once_in(4) => zipped::mutate(input, random),
        Reader::Checkpoint => zipped::mutate_member(&input, "data.pkl", random, pickle::mutate),
        Reader::Onnx => message::mutate(&input, random),
        Reader::Npy => text::mutate(&input, random),
        Reader::Record | Reader::Coco | Reader::Sidecar => json::mutate(&input, random),
        Reader::Events => json::mutate_lines(&input, random),
        Reader::Samples | Reader::Plan | Reader::DataYaml => lines::mutate(&input, random),
        Reader::Wheel if random.once_in(3) => zipped::mutate(input, random),
        Reader::Wheel => {
            let member = random.pick(&["RECORD", "METADATA", "WHEEL", ".so"]).copied().unwrap_or_default();
            zipped::mutate_member(&input, member, random, lines::mutate)
        }
        Reader::Npz if random.once_in(3) => zipped::mutate(input, random),
        Reader::Npz => zipped::mutate_member(&input, ".npy", random, text::mutate),
    }
}

/// Damage that knows nothing of formats.
fn bytes(mut input: Vec<u8>, other: &[u8], random: &mut Random) -> Vec<u8> {
    if input.is_empty() {
        return other.to_vec();
    }
    let at = random.below(input.len());
    match random.below(8) {
        0 => input[at] ^= 1 << random.below(8),
        1 => input[at] = random.edge() as u8,
        2 => edge_at(&mut input, at, random),
        3 => drop(input.drain(at..at + random.length(input.len() - at))),
        4 => {
            let copied = input[at..at + random.length(input.len() - at)].to_vec();
            let to = random.below(input.len());
            input.splice(to..to, copied);
        }
        5 => input.truncate(at),
        6 => {
            let new: Vec<u8> = (0..random.length(16)).map(|_| random.number() as u8).collect();
            input.splice(at..at, new);
        }
        _ => {
            let from = random.below(other.len());
            let part = &other[from..from + random.length(other.len() - from)];
            input.splice(at..at + random.length(input.len() - at), part.iter().copied());
        }
    }
    input
}

/// A number at the edge, in a width and byte order of the formats.
pub(crate) fn edge_at(input: &mut [u8], at: usize, random: &mut Random) {
    let width = [1, 2, 4, 8][random.below(4)];
    let number = random.edge();
    let number = if random.once_in(4) { number.to_be_bytes() } else { number.to_le_bytes() };
    for (place, byte) in input[at..].iter_mut().zip(number).take(width) {
        *place = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::seeds;

    #[test]
    fn damage_is_the_same_for_the_same_seed_and_has_a_bound() {
        for reader in Reader::ALL {
            let seeds = seeds(reader);
            let series = |seed: u64| {
                let mut random = Random::new(seed);
                let mut inputs = Vec::new();
                for _ in 0..200 {
                    let made = mutate(reader, &seeds[0], &seeds[seeds.len() - 1], &mut random);
                    assert!(made.len() <= LARGEST);
                    inputs.push(made);
                }
                inputs
            };
            let one = series(3);
            let changed = one.iter().filter(|input| **input != seeds[0]).count();
            assert!(changed > 150, "{}: {changed} of 200 inputs differ", reader.name());
            assert_eq!(series(3), one);
            assert_ne!(series(4), one);
        }
    }
}
