use super::*;

fn object(id: i64, bbox: [f64; 4]) -> Truth {
    Truth { id, image: 1, class: 1, bbox, area: bbox[2] * bbox[3], crowd: false }
}

fn bits(n: usize) -> Mask {
    (1 << n) - 1
}

#[test]
fn thresholds_are_numpys_to_the_last_bit() {
    assert_eq!(THRESHOLDS[..5], [0.5, 0.55, 0.6, 0.65, 0.7]);
    assert_eq!(THRESHOLDS[5..], [0.75, 0.8, 0.85, 0.899_999_999_999_999_9, 0.95]);
}

#[test]
fn the_later_of_two_equal_objects_is_taken_first_and_then_the_other() {
    let mut matcher = Matcher::default();
    let same = [0.0, 0.0, 40.0, 40.0];
    matcher.start([object(1, same), object(2, same)].iter());
    assert_eq!(matcher.give(same)[0], Worth { right: ALL, wrong: 0 });
    assert_eq!((matcher.objects[0].taken[0], matcher.objects[1].taken[0]), (0, ALL));
    assert_eq!(matcher.give(same)[0], Worth { right: ALL, wrong: 0 });
    assert_eq!(matcher.give(same)[0], Worth { right: 0, wrong: ALL });
}

#[test]
fn a_box_goes_to_the_best_free_object_at_each_overlap() {
    let mut matcher = Matcher::default();
    // The box overlaps the first by 0.8 and the second by 1; a copy of the second comes before it.
    matcher.start([object(1, [0.0, 0.0, 50.0, 40.0]), object(2, [0.0, 0.0, 40.0, 40.0])].iter());
    assert_eq!(matcher.give([0.0, 0.0, 40.0, 40.0])[0].right, ALL);
    let second = matcher.give([0.0, 0.0, 40.0, 40.0])[0];
    assert_eq!(second, Worth { right: bits(7), wrong: ALL & !bits(7) }, "0.50 to 0.80 by the first object");
}

#[test]
fn an_object_that_counts_comes_before_a_better_one_that_does_not() {
    let crowd = Truth { crowd: true, ..object(2, [0.0, 0.0, 100.0, 100.0]) };
    let mut matcher = Matcher::default();
    matcher.start([crowd, object(1, [0.0, 0.0, 50.0, 40.0])].iter());
    assert_eq!(matcher.counted(), [1, 0, 1, 0]);
    // Wholly inside the crowd, 0.8 with the object: right up to 0.80, above it no business of anyone's.
    assert_eq!(matcher.give([0.0, 0.0, 40.0, 40.0])[0], Worth { right: bits(7), wrong: 0 });
    assert_eq!(matcher.give([0.0, 0.0, 40.0, 40.0])[0], Worth { right: 0, wrong: 0 });
}

#[test]
fn a_box_of_another_size_is_neither_right_nor_wrong() {
    let mut matcher = Matcher::default();
    matcher.start([object(1, [0.0, 0.0, 40.0, 40.0])].iter());
    assert_eq!(matcher.counted(), [1, 0, 1, 0]);
    let worth = matcher.give([300.0, 0.0, 10.0, 10.0]);
    let wrong = Worth { right: 0, wrong: ALL };
    assert_eq!(worth, [wrong, wrong, Worth::default(), Worth::default()]);
    // Found, but the object is not small: so the box is not wrong as a small one either.
    let worth = matcher.give([0.0, 0.0, 40.0, 24.0]);
    assert_eq!(worth[1], Worth { right: 0, wrong: ALL & !bits(3) });
    assert_eq!(worth[2].right, bits(3));
    // Bounds belong to both sides.
    matcher.start([object(1, [0.0, 0.0, 32.0, 32.0])].iter());
    assert_eq!(matcher.counted(), [1, 1, 1, 0]);
}

#[test]
fn boxes_of_no_size_and_an_object_with_number_0_are_found_by_nothing() {
    let mut matcher = Matcher::default();
    matcher.start([object(1, [5.0, 5.0, 0.0, 0.0]), object(0, [0.0, 0.0, 40.0, 40.0])].iter());
    assert_eq!(matcher.give([5.0, 5.0, 0.0, 0.0])[0], Worth { right: 0, wrong: ALL });
    assert_eq!(matcher.give([0.0, 0.0, 40.0, 40.0])[0], Worth { right: 0, wrong: ALL });
}
