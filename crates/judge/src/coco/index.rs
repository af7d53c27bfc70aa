//! Numbers of a data set as positions, and rows sorted into classes.

use std::ops::Range;

use super::LeftOut;

/// Numbers up to this far apart get a table: 16 MiB for the largest.
const TABLE: u64 = 1 << 22;

/// Ascending numbers and where each is.
pub(super) struct Index {
    ids: Vec<i64>,
    /// Position + 1 by distance from the first number; empty where numbers lie too far apart.
    table: Vec<u32>,
}

impl Index {
    pub(super) fn new(ids: impl Iterator<Item = i64>) -> Index {
        let mut ids: Vec<i64> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        let span = ids.last().zip(ids.first()).map_or(0, |(last, first)| last.abs_diff(*first));
        let mut table = Vec::new();
        if span < TABLE && !ids.is_empty() {
            table = vec![0; span as usize + 1];
            for (position, id) in ids.iter().enumerate() {
                table[id.abs_diff(ids[0]) as usize] = position as u32 + 1;
            }
        }
        Index { ids, table }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn get(&self, id: i64) -> Option<u32> {
        let first = *self.ids.first()?;
        if self.table.is_empty() {
            return self.ids.binary_search(&id).ok().map(|at| at as u32);
        }
        let slot = usize::try_from(id.checked_sub(first)?).ok()?;
        self.table.get(slot)?.checked_sub(1)
    }

    pub(super) fn into_ids(self) -> Vec<i64> {
        self.ids
    }
}

/// A row of the data and the position of its image.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) image: u32,
    pub(super) row: u32,
}

/// Rows by class, in their own order within one.
pub(super) struct ByClass {
    places: Vec<Place>,
    ranges: Vec<Range<usize>>,
    pub(super) left_out: LeftOut,
}

impl ByClass {
    pub(super) fn of(&self, class: usize) -> &[Place] {
        &self.places[self.ranges[class].clone()]
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}

/// Sorts rows into classes by counting; `ids` says image and class of a row. Rows must be fewer than 2^32.
pub(super) fn by_class<T>(rows: &[T], images: &Index, classes: &Index, ids: impl Fn(&T) -> (i64, i64)) -> ByClass {
    let mut left_out = LeftOut::default();
    let mut counts = vec![0usize; classes.len()];
    for row in rows {
        let (image, class) = ids(row);
        match (images.get(image), classes.get(class)) {
            (Some(_), Some(class)) => counts[class as usize] += 1,
            (None, _) => {
                left_out.images += 1;
                left_out.first_image.get_or_insert(image);
            }
            (_, None) => {
                left_out.classes += 1;
                left_out.first_class.get_or_insert(class);
            }
        }
    }
    let mut ranges = Vec::with_capacity(counts.len());
    let mut end = 0;
    for count in counts {
        ranges.push(end..end);
        end += count;
    }
    let mut places = vec![Place::default(); end];
    for (row, ids) in rows.iter().map(ids).enumerate() {
        if let (Some(image), Some(class)) = (images.get(ids.0), classes.get(ids.1)) {
            let range: &mut Range<usize> = &mut ranges[class as usize];
            places[range.end] = Place { image, row: row as u32 };
            range.end += 1;
        }
    }
    ByClass { places, ranges, left_out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_far_apart_are_found_as_well() {
        for ids in [vec![5, 3, 9, 3], vec![i64::MAX, 3, i64::MIN, 0, 7_000_000_000], vec![-4, -2], vec![]] {
            let index = Index::new(ids.iter().copied());
            let mut sorted = ids.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(index.len(), sorted.len());
            for (at, id) in sorted.iter().enumerate() {
                assert_eq!(index.get(*id), Some(at as u32), "{id} of {ids:?}");
            }
            for other in [1, 4, -3, i64::MAX - 1, i64::MIN + 1] {
                assert_eq!(index.get(other), None, "{other} of {ids:?}");
            }
        }
    }

    #[test]
    fn rows_keep_their_order_and_strangers_are_counted() {
        let rows = [(1, 20), (2, 10), (9, 10), (1, 10), (1, 30), (2, 20), (8, 30)];
        let images = Index::new([2, 1].into_iter());
        let classes = Index::new([10, 15, 20].into_iter());
        let sorted = by_class(&rows, &images, &classes, |&row| row);
        let shown = |class| sorted.of(class).iter().map(|p| (p.image, p.row)).collect::<Vec<_>>();
        assert_eq!(shown(0), [(1, 1), (0, 3)]);
        assert_eq!(shown(1), []);
        assert_eq!(shown(2), [(0, 0), (1, 5)]);
        let left_out = LeftOut { images: 2, first_image: Some(9), classes: 1, first_class: Some(30) };
        assert_eq!(sorted.left_out, left_out);
    }
}
