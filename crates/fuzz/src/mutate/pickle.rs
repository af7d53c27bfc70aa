//! Pickles: a row of opcodes with their arguments, changed as a row.

use crate::random::Random;

/// Opcodes that the machine knows, and some that it does not.
const OPCODES: &[u8] = b"(012N)KMJGXUTCB}]tldaesucRoibQqrhj.\x80\x81\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97I";

/// Changes one opcode or its argument.
pub(super) fn mutate(input: &[u8], random: &mut Random) -> Vec<u8> {
    let mut steps = split(input);
    let at = random.below(steps.len());
    match random.below(8) {
        _ if steps.is_empty() => {}
        0 => drop(steps.remove(at)),
        1 => steps.insert(at, steps[at].clone()),
        2 => {
            let to = random.below(steps.len());
            steps.swap(at, to);
        }
        3 => steps.insert(at, random_step(random)),
        4 => steps[at][0] = *random.pick(OPCODES).unwrap_or(&b'.'),
        // The same stretch again, and again: what is counted must add up.
        5 => {
            let end = at + random.length((steps.len() - at).min(24));
            for _ in 0..random.length(64) {
                let copied = steps[at..end].to_vec();
                steps.splice(end..end, copied);
            }
        }
        _ => {
            let argument = 1.min(steps[at].len() - 1);
            super::edge_at(&mut steps[at], argument, random);
        }
    }
    steps.concat()
}

fn random_step(random: &mut Random) -> Vec<u8> {
    let opcode = *random.pick(OPCODES).unwrap_or(&b'N');
    let mut step = vec![opcode];
    match argument(opcode) {
        Argument::Fixed(width) => step.extend(&random.edge().to_le_bytes()[..width]),
        Argument::Counted(width) => {
            let text = b"_modules";
            step.extend(&(text.len() as u64).to_le_bytes()[..width]);
            step.extend(text);
        }
        Argument::Lines => step.extend(b"torch._utils\n_rebuild_tensor_v2\n"),
    }
    step
}

enum Argument {
    Fixed(usize),
    /// A length of so many bytes, and so much behind it.
    Counted(usize),
    /// Two lines.
    Lines,
}

fn argument(opcode: u8) -> Argument {
    match opcode {
        0x80 | b'K' | b'q' | b'h' => Argument::Fixed(1),
        b'M' => Argument::Fixed(2),
        b'J' | b'r' | b'j' => Argument::Fixed(4),
        b'G' | 0x95 => Argument::Fixed(8),
        0x8a | 0x8c | b'U' | b'C' => Argument::Counted(1),
        b'X' | b'T' | b'B' | 0x8b => Argument::Counted(4),
        0x8d | 0x8e | 0x96 => Argument::Counted(8),
        b'c' | b'i' => Argument::Lines,
        _ => Argument::Fixed(0),
    }
}

/// The opcodes of a pickle, each with its argument; what does not fit is the last one.
fn split(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut steps = Vec::new();
    while let Some(&opcode) = rest.first() {
        let length = match argument(opcode) {
            Argument::Fixed(width) => 1 + width,
            Argument::Counted(width) => {
                let mut counted = [0; 8];
                let given = rest.get(1..1 + width).unwrap_or_default();
                counted[..given.len()].copy_from_slice(given);
                usize::try_from(u64::from_le_bytes(counted)).unwrap_or(usize::MAX).saturating_add(1 + width)
            }
            Argument::Lines => {
                let mut ends = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
                ends.nth(1).unwrap_or(rest.len())
            }
        };
        let (step, after) = rest.split_at(length.min(rest.len()));
        steps.push(step.to_vec());
        rest = after;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Reader;
    use crate::seeds::seeds;

    #[test]
    fn a_pickle_is_cut_between_its_opcodes() {
        for seed in seeds(Reader::Pickle) {
            let steps = split(&seed);
            assert_eq!(steps.concat(), seed);
            assert_eq!((steps.last().unwrap(), steps[0][0]), (&vec![b'.'], 0x80));
        }
    }
}
