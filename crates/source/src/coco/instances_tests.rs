use std::fs;

use super::*;

const GOOD: &str = r#"{
  "info": {"description": "x", "year": 2017},
  "annotations": [
    {"segmentation": [[1, 2, 3.5, 4]], "area": 702.5, "iscrowd": 0, "image_id": 9, "bbox": [473.07, 395.93, 38.65, 28.67],
     "category_id": 18, "id": 1768},
    {"segmentation": {"counts": [3, 4], "size": [1, 2]}, "iscrowd": 1, "image_id": 4, "bbox": [0, 0, 10, 5],
     "category_id": 90, "id": 900100}
  ],
  "images": [{"id": 9, "file_name": "b\u00e9.jpg", "width": 640, "height": 426}, {"file_name": "a.jpg", "id": 4}],
  "categories": [{"supercategory": "animal", "id": 18, "name": "dog"}, {"id": 90, "name": "toothbrush"}]
}"#;

#[test]
fn a_file_is_read_in_any_order_of_its_parts() {
    let found = parse(GOOD.as_bytes()).unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!(found.images[0].file_name, "b\u{e9}.jpg");
    assert_eq!((found.images[0].width, found.images[0].height), (Some(640), Some(426)));
    assert_eq!((found.images[1].id, found.images[1].width), (4, None));
    assert_eq!(found.categories[1], Category { id: 90, name: "toothbrush".into() });
    let bbox = [473.07, 395.93, 38.65, 28.67];
    let first = Annotation { id: 1768, image_id: 9, category_id: 18, bbox, area: 702.5, iscrowd: false };
    assert_eq!(found.annotations[0], first);
    assert!(found.annotations[1].iscrowd);
    assert_eq!(found.annotations[1].area, 50.0, "width x height where there is no area");
}

#[test]
fn rows_that_cannot_be_used_are_named_and_left_out() {
    let rows = [
        r#"{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "area": 25, "iscrowd": 0}"#,
        r#"{"id": 2, "image_id": 1, "category_id": 1, "bbox": [0, NaN, 5, 5]}"#,
        r#"{"id": 3, "image_id": 1, "category_id": 1, "bbox": [0, 0, -5, 5]}"#,
        r#"{"id": 4, "image_id": 77, "category_id": 1, "bbox": [0, 0, 5, 5]}"#,
        r#"{"id": 5, "image_id": 1, "category_id": 77, "bbox": [0, 0, 5, 5]}"#,
        r#"{"id": 6, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5]}"#,
        r#"{"id": 7, "image_id": 1, "category_id": 1}"#,
        r#"{"id": 8, "image_id": "x", "category_id": 1, "bbox": [0, 0, 5, 5]}"#,
        r#"{"id": 9, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 4], "area": NaN}"#,
        r#"{"id": 9, "image_id": 1, "category_id": 1, "bbox": [0, 0, Infinity, 5]}"#,
        r#"{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5]}"#,
        r#"{"id": 0, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1e200, 1e200]}"#,
        r#"{"id": 0, "image_id": 1, "category_id": 1, "bbox": [0, 0, 0, 0]}"#,
        "null",
    ];
    let text = format!(
        r#"{{"images": [{{"id": 1, "file_name": "a"}}, {{"id": 1, "file_name": "b"}}, {{"id": 2}}, {{"file_name": "c"}}],
        "categories": [{{"id": 1, "name": "x"}}, {{"id": 1, "name": "y"}}, {{"name": "z"}}], "annotations": [{}]}}"#,
        rows.join(",")
    );
    let found = parse(text.as_bytes()).unwrap();
    assert_eq!(found.annotations.iter().map(|a| a.id).collect::<Vec<_>>(), [1, 9, 1, 0]);
    assert_eq!(found.annotations[1].area, 20.0);
    assert_eq!((found.images.len(), found.categories.len()), (1, 1));
    let wanted = [
        "annotation 2 of image 1: box [0.0, NaN, 5.0, 5.0] is not finite; left out",
        "annotation 3 of image 1: box [0.0, 0.0, -5.0, 5.0] has a negative size; left out",
        "annotation 4: image 77 is not listed; left out",
        "annotation 5: category 77 is not listed; left out",
        "annotation 6 of image 1: no box of four numbers; left out",
        "annotation 7 of image 1: no box of four numbers; left out",
        "annotation 8: no whole number as image_id or category_id; left out",
        "annotation 9: its area is no size; width x height is taken",
        "annotation 9 of image 1: box [0.0, 0.0, inf, 5.0] is not finite; left out",
        "annotation id 1 is used twice; both are kept",
        "annotation 0 of image 1: box [0.0, 0.0, 1e200, 1e200] is beyond all bounds; left out",
        "annotation 0: its id means `not found`",
        "annotation in row 14 is no object; left out",
        "image 1 is listed twice; b is left out",
        "image 2: no file name; left out",
        "image c: its id is missing or no whole number; left out",
        "category 1 is listed twice; y is left out",
        "category z: its id is missing or no whole number; left out",
    ];
    let texts = found.problems.first.join("\n");
    for wanted in wanted {
        assert!(texts.contains(wanted), "{wanted} is not in\n{texts}");
    }
    assert_eq!(found.problems.count, wanted.len() as u64, "{texts}");
}

#[test]
fn what_is_no_instances_file_says_where_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("instances.json");
    let message = |text: &str| {
        fs::write(&path, text).unwrap();
        read_instances(&path).unwrap_err().to_string()
    };
    let broken = GOOD.replacen("\"bbox\": [473.07,", "\"bbox\": [473.07.1,", 1);
    assert!(message(&broken).contains("instances.json:4:99: `.` instead of `,` in a list"), "{}", message(&broken));
    assert!(message(&GOOD[..300]).contains("instances.json:"), "{}", message(&GOOD[..300]));
    assert!(message("[]").contains("a result file is given"), "{}", message("[]"));
    let other = r#"{"images": [], "annotations": []}"#;
    assert!(message(other).contains("no `categories` in it"), "{}", message(other));
    assert!(message("not json").contains("1:1: `n` instead of `{`"), "{}", message("not json"));
}

#[test]
fn a_file_cut_anywhere_or_with_any_byte_broken_is_no_crash() {
    let whole = GOOD.trim_end();
    for end in 0..whole.len() {
        assert!(parse(&whole.as_bytes()[..end]).is_err(), "cut at {end}");
    }
    let mut broken = 0;
    for at in 0..whole.len() {
        for byte in [b'"', b'\\', b'}', b'[', b',', b'-', 0xff] {
            let mut bytes = whole.as_bytes().to_vec();
            bytes[at] = byte;
            broken += usize::from(parse(&bytes).is_err());
        }
    }
    assert!(broken > whole.len(), "{broken} of {} were noticed", whole.len() * 7);
}
