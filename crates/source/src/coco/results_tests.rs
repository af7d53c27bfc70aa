use std::fs;

use super::*;

fn rows(count: usize, between: &str) -> String {
    let row = |i: usize| {
        let bbox = format!("[{}.5, {}, 10, 20.25]", i % 640, i % 480);
        format!(r#"{{"image_id": {}, "category_id": {}, "bbox": {bbox}, "score": 0.{:03}}}"#, i % 50, i % 9, i % 1000)
    };
    format!("[{}]", (0..count).map(row).collect::<Vec<_>>().join(between))
}

#[test]
fn pieces_give_what_the_whole_gives() {
    for between in [",", ", ", "\n ,\n\t"] {
        let text = rows(997, between);
        let whole = parse(text.as_bytes(), 1).unwrap();
        assert_eq!(whole.rows.len(), 997);
        assert_eq!(whole.rows[996].bbox, [996.0 - 640.0 + 0.5, 36.0, 10.0, 20.25]);
        for pieces in [2, 3, 8, 64, 2000] {
            assert!(in_pieces(text.as_bytes(), &starts(text.as_bytes(), 1, pieces)).is_some(), "{pieces} pieces");
            assert_eq!(parse(text.as_bytes(), pieces).unwrap(), whole, "{pieces} pieces");
        }
    }
}

#[test]
fn a_text_that_looks_like_rows_is_not_cut() {
    let trap = r#"{"image_id":1,"category_id":2,"bbox":[0,0,1,1],"score":0.5,"note":"},{\"image_id\":9},{ ,{},{"}"#;
    let text = format!("[{}]", vec![trap; 40].join(","));
    for pieces in 1..40 {
        let found = parse(text.as_bytes(), pieces).unwrap();
        assert_eq!(found.rows.len(), 40, "{pieces} pieces");
        assert!(found.problems.is_empty(), "{:?}", found.problems);
    }
}

#[test]
fn bad_rows_are_named_by_their_number_and_cost_no_other() {
    let mut list: Vec<String> =
        (0..60).map(|_| r#"{"image_id":1,"category_id":2,"bbox":[0,0,1,1],"score":0.5}"#.to_owned()).collect();
    list[3] = r#"{"image_id":1,"category_id":2,"bbox":[0,NaN,1,1],"score":0.5}"#.into();
    list[10] = r#"{"image_id":7,"category_id":2,"bbox":[0,0,-1,1],"score":0.5}"#.into();
    list[20] = r#"{"image_id":"a.jpg","category_id":2,"bbox":[0,0,1,1],"score":0.5}"#.into();
    list[30] = r#"{"image_id":1,"category_id":2,"bbox":[0,0,1],"score":0.5}"#.into();
    list[40] = r#"{"image_id":1,"category_id":2,"bbox":[0,0,1,1],"score":null}"#.into();
    list[45] = r#"{"image_id":1,"category_id":2,"bbox":[0,0,1,1],"score":Infinity}"#.into();
    list[50] = "17".into();
    list[55] = r#"{"image_id":1,"bbox":[0,0,1,1],"score":0.5}"#.into();
    let text = format!("[{}]", list.join(",\n"));
    for pieces in [1, 7] {
        let found = parse(text.as_bytes(), pieces).unwrap();
        assert_eq!(found.rows.len(), 52);
        assert_eq!(found.problems.count, 8);
        let texts = found.problems.first.join("\n");
        let wanted = [
            "box in row 4: image 1, bbox [0.0, NaN, 1.0, 1.0] is not finite; left out",
            "box in row 11: image 7, bbox [0.0, 0.0, -1.0, 1.0] has a negative size; left out",
            "box in row 21: no whole number as image_id",
            "box in row 31: no bbox of four numbers",
            "box in row 41: no number as score",
            "box in row 46: image 1, score inf is not finite",
            "box in row 51: no object",
            "box in row 56: no whole number as category_id",
        ];
        for wanted in wanted {
            assert!(texts.contains(wanted), "{wanted} is not in\n{texts}");
        }
    }
}

#[test]
fn what_is_no_result_file_says_where_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("detections.json");
    let message = |text: &str| {
        fs::write(&path, text).unwrap();
        read_results(&path).unwrap_err().to_string()
    };
    let broken = rows(300, ",\n").replacen(r#""category_id": 5"#, r#""category_id" 5"#, 1);
    assert!(message(&broken).contains("detections.json:6:31: `5` instead of `:`"), "{}", message(&broken));
    let cut = &rows(300, ",\n")[..20_000];
    assert!(
        message(cut).contains(": the file ends where") || message(cut).contains("without an end"),
        "{}",
        message(cut)
    );
    assert!(message("").contains("1:1: the file ends where `[` should stand"), "{}", message(""));
    assert!(message("{\"images\": []}").contains("an object and no list"), "{}", message("{}"));
    assert!(message("[] x").contains("1:4: something follows"), "{}", message("[] x"));
    let more = format!("{}]", rows(300, ","));
    assert!(message(&more).contains("something follows"), "{}", message(&more));
    assert!(read_results(&folder.path().join("none.json")).unwrap_err().to_string().contains("cannot read the file"));
}

#[test]
fn an_empty_list_has_no_boxes() {
    assert_eq!(parse(b" [ ]\n", 8).unwrap(), Results::default());
}

#[test]
fn a_file_cut_anywhere_is_an_error_in_one_piece_or_many() {
    let text = rows(12, ",\n");
    for end in 0..text.len() {
        let faults = [1, 4].map(|pieces| parse(&text.as_bytes()[..end], pieces).unwrap_err());
        assert_eq!(faults[0], faults[1], "cut at {end}: pieces change no message");
    }
}
