//! Sums over named axes, as far as each letter is one axis: no repeated letters, no dots.

use super::Shape;
use super::node::Node;

/// The letters of an equation: those of each input, and those of the output.
pub(crate) fn letters(equation: &str) -> Option<(Vec<Vec<char>>, Vec<char>)> {
    let plain: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = plain.split_once("->")?;
    let inputs: Vec<Vec<char>> = inputs.split(',').map(|term| term.chars().collect()).collect();
    let output: Vec<char> = output.chars().collect();
    let simple = |term: &Vec<char>| {
        term.iter().all(char::is_ascii_alphabetic) && term.iter().enumerate().all(|(at, c)| !term[..at].contains(c))
    };
    (inputs.iter().all(simple) && simple(&output)).then_some((inputs, output))
}

/// The size of every letter, by the shapes of the inputs.
pub(crate) fn sizes<'a>(inputs: &[Vec<char>], shape: impl Fn(usize) -> Option<&'a [u64]>) -> Option<Vec<(char, u64)>> {
    let mut sizes: Vec<(char, u64)> = Vec::new();
    for (at, term) in inputs.iter().enumerate() {
        let shape = shape(at)?;
        if shape.len() != term.len() {
            return None;
        }
        for (&letter, &size) in term.iter().zip(shape) {
            match sizes.iter().find(|(known, _)| *known == letter) {
                Some((_, known)) if *known != size => return None,
                Some(_) => {}
                None => sizes.push((letter, size)),
            }
        }
    }
    Some(sizes)
}

pub(super) fn einsum(node: &Node<'_>) -> Option<Shape> {
    let (inputs, output) = letters(node.text("equation"))?;
    let sizes = sizes(&inputs, |at| node.shape(at).map(|shape| &shape[..]))?;
    let size = |letter: &char| sizes.iter().find(|(known, _)| known == letter).map(|(_, size)| *size);
    output.iter().map(size).collect()
}
