//! What a detector said: a list of boxes with scores.
//!
//! A large file is cut at places that look like the start of a row, and the pieces are read in parallel. A text could hold
//! such a place, so each piece must end exactly where the next one begins: the first begins rightly, hence all do. Where
//! one does not, the file is read from the start to the end.

use std::path::Path;

use rayon::prelude::*;

use super::scan::{Fault, Scanner};
use super::{RowProblems, flaw, malformed, read};
use crate::SourceError;

/// Smaller pieces are not worth a thread.
const PIECE: usize = 1 << 20;

/// One box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResultRow {
    /// The image that it is on.
    pub image_id: i64,
    /// Its class, by the data set's number.
    pub category_id: i64,
    /// Left, top, width, height in pixels.
    pub bbox: [f64; 4],
    /// How sure the detector is.
    pub score: f64,
}

/// What a result file holds, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Boxes that can be used.
    pub rows: Vec<ResultRow>,
    /// What had to be left out.
    pub problems: RowProblems,
}

/// Reads a file. An error is only what is no JSON or no list; see [`Results::problems`] for the rest.
pub fn read_results(path: &Path) -> Result<Results, SourceError> {
    let bytes = read(path)?;
    let pieces = (bytes.len() / PIECE).clamp(1, 4 * rayon::current_num_threads());
    parse(&bytes, pieces).map_err(|fault| malformed(path, &bytes, fault))
}

fn parse(bytes: &[u8], pieces: usize) -> Result<Results, Fault> {
    let mut s = Scanner::new(bytes);
    if s.peek() == Some(b'{') {
        return s.fault("an object and no list: a result file is a list of boxes, [{\"image_id\": …}, …]");
    }
    s.expect(b'[', "at the start of a result file")?;
    if s.peek() == Some(b']') {
        s.at += 1;
        return s.end().map(|()| Results::default());
    }
    match in_pieces(bytes, &starts(bytes, s.at, pieces)) {
        Some(results) => Ok(results),
        None => Piece::read(bytes, s.at, bytes.len()).map(|piece| joined(vec![piece])),
    }
}

/// Where rows seem to start, about evenly spread; the first does start there.
fn starts(bytes: &[u8], first: usize, pieces: usize) -> Vec<usize> {
    let mut starts = vec![first];
    for i in 1..pieces {
        let from = (first + (bytes.len() - first) / pieces * i).max(starts[i - 1] + 1);
        match row_start(bytes, from) {
            Some(at) => starts.push(at),
            None => break,
        }
    }
    starts
}

/// The next `{` behind `},`.
fn row_start(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|&b| b == b'}')? + 1;
        let mut s = Scanner::starting_at(bytes, at);
        if s.peek() == Some(b',') {
            s.at += 1;
            if s.peek() == Some(b'{') {
                return Some(s.at);
            }
        }
    }
}

/// `None` when a piece cannot be read or does not end where the next one starts.
fn in_pieces(bytes: &[u8], starts: &[usize]) -> Option<Results> {
    if starts.len() < 2 {
        return None;
    }
    let ends = starts[1..].iter().copied().chain([bytes.len()]);
    let spans: Vec<(usize, usize)> = starts.iter().copied().zip(ends).collect();
    let pieces: Result<Vec<Piece>, Fault> =
        spans.par_iter().map(|&(start, end)| Piece::read(bytes, start, end)).collect();
    pieces.ok().map(joined)
}

fn joined(mut pieces: Vec<Piece>) -> Results {
    let mut results = Results::default();
    if let [only] = pieces.as_mut_slice() {
        results.rows = std::mem::take(&mut only.rows);
    }
    results.rows.reserve_exact(pieces.iter().map(|piece| piece.rows.len()).sum());
    let mut before = 0;
    for piece in pieces {
        results.rows.extend_from_slice(&piece.rows);
        let told = |(row, text): &(u64, String)| format!("box in row {}: {text}; left out", before + row);
        results.problems.append(RowProblems { count: piece.bad, first: piece.problems.iter().map(told).collect() });
        before += piece.read;
    }
    results
}

/// Rows from one place in a file to another.
#[derive(Default)]
struct Piece {
    rows: Vec<ResultRow>,
    /// Rows that were seen, good or not.
    read: u64,
    /// Rows that cannot be used.
    bad: u64,
    /// The first of them: row, from 1, and what is wrong with it.
    problems: Vec<(u64, String)>,
}

impl Piece {
    /// Reads rows until exactly `end`, which is the start of another row or the end of the file.
    fn read(bytes: &[u8], start: usize, end: usize) -> Result<Piece, Fault> {
        // A row of six numbers and their names has at least so many bytes.
        let mut piece = Piece { rows: Vec::with_capacity((end - start) / 100), ..Piece::default() };
        let mut s = Scanner::starting_at(bytes, start);
        loop {
            piece.row(&mut s)?;
            if s.peek() == Some(b']') {
                s.at += 1;
                s.end()?;
                return if end == bytes.len() { Ok(piece) } else { s.fault("ends too early") };
            }
            s.expect(b',', "between two boxes")?;
            s.peek();
            if s.at >= end && end < bytes.len() {
                return if s.at == end { Ok(piece) } else { s.fault("ends too late") };
            }
        }
    }

    fn row(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        self.read += 1;
        match row(s)? {
            Ok(row) => self.rows.push(row),
            Err(problem) => {
                self.bad += 1;
                if self.problems.len() < RowProblems::KEPT {
                    self.problems.push((self.read, problem));
                }
            }
        }
        Ok(())
    }
}

/// A row, or what is wrong with it.
fn row(s: &mut Scanner<'_>) -> Result<Result<ResultRow, String>, Fault> {
    if s.peek() != Some(b'{') {
        s.skip()?;
        return Ok(Err("no object".to_owned()));
    }
    let (mut image_id, mut category_id, mut bbox, mut score) = (None, None, None, None);
    s.object(|s, name| {
        match name {
            b"image_id" => image_id = s.id()?,
            b"category_id" => category_id = s.id()?,
            b"bbox" => bbox = s.four()?,
            b"score" => score = s.number()?,
            _ => s.skip()?,
        }
        Ok(())
    })?;
    Ok(match (image_id, category_id, bbox, score) {
        (None, ..) => Err("no whole number as image_id".to_owned()),
        (_, None, ..) => Err("no whole number as category_id".to_owned()),
        (_, _, None, _) => Err("no bbox of four numbers".to_owned()),
        (_, _, _, None) => Err("no number as score".to_owned()),
        (Some(image), _, Some(bbox), _) if flaw(bbox).is_some() => {
            Err(format!("image {image}, bbox {bbox:?} {}", flaw(bbox).unwrap_or_default()))
        }
        (Some(image), _, _, Some(score)) if !score.is_finite() => {
            Err(format!("image {image}, score {score} is not finite"))
        }
        (Some(image_id), Some(category_id), Some(bbox), Some(score)) => {
            Ok(ResultRow { image_id, category_id, bbox, score })
        }
    })
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
