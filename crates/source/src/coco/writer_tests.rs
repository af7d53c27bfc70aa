use std::fs;

use super::*;
use crate::coco::read_results;

const ROW: ResultRow = ResultRow { image_id: 42, category_id: 18, bbox: [258.15, -0.0, 1e-9, 1.0 / 3.0], score: 0.236 };

#[test]
fn what_is_written_reads_back_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("detections.json");
    let rows: Vec<ResultRow> = (0..1000)
        .map(|i| ResultRow { image_id: i * 7 - 3, score: f64::from(i as i32).sqrt() / 40.0, ..ROW })
        .chain([ResultRow { bbox: [1e300, 5e-324, 1e17, 123_456_789.125], ..ROW }])
        .collect();
    let mut writer = ResultWriter::create(&path).unwrap();
    rows.iter().for_each(|row| writer.push(row).unwrap());
    assert!(!path.exists(), "no name before the end");
    assert_eq!(writer.finish().unwrap(), 1001);

    let back = read_results(&path).unwrap();
    assert_eq!(back.problems.count, 0, "{:?}", back.problems);
    let bits = |rows: &[ResultRow]| rows.iter().map(|r| r.bbox.map(f64::to_bits)).collect::<Vec<_>>();
    assert_eq!(back.rows, rows);
    assert_eq!(bits(&back.rows), bits(&rows));
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), rows.len() + 2, "a row a line");
    let json: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(json[5]["score"].as_f64(), Some(rows[5].score));
}

#[test]
fn an_empty_file_is_an_empty_list() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("detections.json");
    assert_eq!(ResultWriter::create(&path).unwrap().finish().unwrap(), 0);
    assert!(read_results(&path).unwrap().rows.is_empty());
}

#[test]
fn an_unfinished_file_leaves_nothing_and_the_old_one_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("detections.json");
    fs::write(&path, "[]").unwrap();
    let mut writer = ResultWriter::create(&path).unwrap();
    writer.push(&ROW).unwrap();
    drop(writer);
    assert_eq!(fs::read_to_string(&path).unwrap(), "[]");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_json_cannot_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("detections.json");
    let mut writer = ResultWriter::create(&path).unwrap();
    let error = writer.push(&ResultRow { score: f64::NAN, ..ROW }).unwrap_err().to_string();
    assert!(error.contains("image 42") && error.contains("not finite"), "{error}");
    writer.push(&ROW).unwrap();
    assert_eq!(writer.finish().unwrap(), 1);
    assert_eq!(read_results(&path).unwrap().rows, [ROW]);
}
