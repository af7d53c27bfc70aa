//! A label file of Ultralytics' detection: `class cx cy w h` a line, as shares of the image, or a class and a polygon.
//!
//! Judged as Ultralytics judges it, so that the same images count: one bad line spoils the file, with the image it
//! belongs to; a line that is there twice counts once. Where one line is a polygon all are, so `class cx cy w h` beside a
//! polygon is read as two corners.

/// An object as a label file has it: shares of the image's sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Label {
    pub(super) class: u32,
    /// Centre and size.
    pub(super) shares: [f32; 4],
}

/// What a label file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Labels {
    pub(super) labels: Vec<Label>,
    /// Lines that were there before.
    pub(super) duplicates: usize,
    /// Lines of a box that were read as two corners.
    pub(super) corners: usize,
}

/// How far outside a number may lie.
const TOLERANCE: f32 = 0.01;

/// The objects of a file, or the line that spoils it and why.
pub(super) fn parse(text: &str, classes: usize) -> Result<Labels, String> {
    let rows: Vec<(usize, Vec<&str>)> =
        (1..).zip(text.lines()).map(|(n, line)| (n, line.split_whitespace().collect())).collect();
    let rows: Vec<_> = rows.into_iter().filter(|(_, words): &(usize, Vec<&str>)| !words.is_empty()).collect();
    let polygons = rows.iter().any(|(_, words)| words.len() > 6);
    let mut found = Labels::default();
    for (number, words) in &rows {
        let label = row(words, polygons, classes).map_err(|why| format!("line {number}: {why}"))?;
        if polygons && words.len() == 5 {
            found.corners += 1;
        }
        if found.labels.contains(&label) {
            found.duplicates += 1;
        } else {
            found.labels.push(label);
        }
    }
    Ok(found)
}

fn row(words: &[&str], polygons: bool, classes: usize) -> Result<Label, String> {
    let number = |word: &&str| word.parse::<f32>().map_err(|_| format!("{word} is not a number"));
    let numbers: Vec<f32> = words.iter().map(number).collect::<Result<_, _>>()?;
    let class = numbers[0];
    if !(class >= -TOLERANCE && class < classes as f32) {
        return Err(format!("class {} is not below {classes}", words[0]));
    }
    let shares = if polygons { enclosing(&numbers[1..])? } else { five(&numbers[1..])? };
    if let Some(outside) = shares.iter().find(|share| !(-TOLERANCE..=1.0 + TOLERANCE).contains(*share)) {
        return Err(format!("{outside} is outside the image; coordinates are shares from 0 to 1"));
    }
    Ok(Label { class: class.max(0.0) as u32, shares })
}

fn five(numbers: &[f32]) -> Result<[f32; 4], String> {
    numbers.try_into().map_err(|_| format!("has {} columns instead of 5", numbers.len() + 1))
}

/// Centre and size of the box around a polygon.
fn enclosing(numbers: &[f32]) -> Result<[f32; 4], String> {
    let (points, odd) = numbers.as_chunks::<2>();
    if points.is_empty() || !odd.is_empty() {
        return Err(format!("a polygon of {} numbers", numbers.len()));
    }
    let [mut x0, mut y0, mut x1, mut y1] = [points[0][0], points[0][1], points[0][0], points[0][1]];
    for [x, y] in points {
        // A NaN must not get lost between the others.
        if x.is_nan() || y.is_nan() {
            return Err("NaN is no coordinate".to_owned());
        }
        (x0, y0, x1, y1) = (x0.min(*x), y0.min(*y), x1.max(*x), y1.max(*y));
    }
    Ok([(x0 + x1) / 2.0, (y0 + y1) / 2.0, x1 - x0, y1 - y0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_read_and_twins_counted_once() {
        let labels = parse("0 0.5 0.5 0.25 0.5\n\n1.0 0.5 0.5 1.005 1\r\n0 0.50 0.5 0.25 0.5\n", 2).unwrap();
        assert_eq!(labels.labels[0], Label { class: 0, shares: [0.5, 0.5, 0.25, 0.5] });
        assert_eq!(labels.labels[1], Label { class: 1, shares: [0.5, 0.5, 1.005, 1.0] });
        assert_eq!((labels.labels.len(), labels.duplicates), (2, 1));
        assert_eq!(parse("", 2).unwrap(), Labels::default());
    }

    #[test]
    fn a_polygon_becomes_the_box_around_it() {
        let labels = parse("1 0.25 0.5 0.75 0.25 0.5 0.75\n0 0.25 0.25 0.5 0.75\n", 2).unwrap();
        assert_eq!(labels.labels[0], Label { class: 1, shares: [0.5, 0.5, 0.5, 0.5] });
        // What Ultralytics makes of a box beside a polygon.
        assert_eq!(labels.labels[1], Label { class: 0, shares: [0.375, 0.5, 0.25, 0.5] });
        assert_eq!(labels.corners, 1);
    }

    #[test]
    fn one_bad_line_spoils_the_file() {
        let cases = [
            ("0 .5 .5 .5\n", "line 1: has 4 columns instead of 5"),
            ("0 .5 .5 .5 .5 .9\n", "line 1: has 6 columns instead of 5"),
            ("0 .5 .5 .5 .5\n2 .5 .5 .5 .5\n", "line 2: class 2 is not below 2"),
            ("-1 .5 .5 .5 .5\n", "class -1 is not below 2"),
            ("0 .5 .5 .5 1.5\n", "1.5 is outside the image"),
            ("0 .5 -.5 .5 .5\n", "-0.5 is outside the image"),
            ("0 .5 nan .5 .5\n", "NaN is outside the image"),
            ("0 .5 x .5 .5\n", "x is not a number"),
            ("0 .1 .1 .2 .2 .3 .3 .4\n", "a polygon of 7 numbers"),
            ("0 .1 .1 nan .2 .3 .3\n", "NaN is no coordinate"),
        ];
        for (text, expected) in cases {
            let error = parse(text, 2).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
