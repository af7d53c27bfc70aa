use super::*;

fn spec(name: &str, dtype: DType, shape: &[usize]) -> TensorSpec {
    TensorSpec { name: name.into(), dtype, shape: shape.into() }
}

fn named(n: usize) -> Metadata {
    Metadata { names: (0..n).map(|i| i.to_string()).collect(), ..Metadata::default() }
}

fn auto_of(shape: &[usize], names: usize, imgsz: Option<u32>) -> Result<Head, HeadError> {
    let imgsz = imgsz.map(|s| [s, s]);
    choose(HeadChoice::Auto, &[spec("output0", DType::F32, shape)], &named(names), imgsz)
}

#[track_caller]
fn check(shape: &[usize], names: usize, imgsz: Option<u32>, want: &str) {
    let got = auto_of(shape, names, imgsz).map_or_else(|e| format!("error: {e}"), |h| h.to_string());
    assert!(got.starts_with(want), "{shape:?} with {names} names: {got}");
}

#[test]
fn shapes_and_names_decide() {
    check(&[1, 84, 8400], 80, Some(640), "dense [1,84,8400], 80 classes");
    check(&[1, 8400, 84], 80, Some(640), "dense [1,8400,84], transposed, 80 classes");
    check(&[4, 10, 2100], 6, Some(320), "dense [4,10,2100], 6 classes");
    check(&[1, 10, 500], 6, Some(320), "dense [1,10,500], 6 classes");
    check(&[1, 25200, 85], 80, Some(640), "objectness [1,25200,85], 80 classes");
    check(&[1, 25200, 6], 1, Some(640), "objectness [1,25200,6], 1 class");
    check(&[1, 8400, 6], 2, Some(640), "dense [1,8400,6], transposed, 2 classes");
    check(&[1, 144, 8400], 80, Some(640), "dfl [1,144,8400], 80 classes");
    check(&[1, 84, 8400], 20, Some(640), "dfl [1,84,8400], 20 classes");
    check(&[1, 300, 6], 80, Some(640), "end2end [1,300,6]");
    check(&[1, 300, 84], 80, Some(640), "rtdetr [1,300,84], 80 classes");
}

#[test]
fn without_names_the_grid_decides() {
    for imgsz in [Some(640), None] {
        check(&[1, 84, 8400], 0, imgsz, "dense [1,84,8400], 80 classes");
        check(&[1, 8400, 84], 0, imgsz, "dense [1,8400,84], transposed, 80");
        check(&[1, 25200, 85], 0, imgsz, "objectness [1,25200,85], 80 classes");
        check(&[1, 144, 8400], 0, imgsz, "dfl [1,144,8400], 80 classes");
        check(&[1, 300, 6], 0, imgsz, "end2end");
        check(&[1, 300, 84], 0, imgsz, "rtdetr");
        check(&[1, 197, 768], 0, imgsz, "error: no head fits the outputs: output0 f32[1, 197, 768]");
    }
}

#[test]
fn names_that_do_not_fit_are_an_error() {
    check(&[1, 84, 8400], 7, Some(640), "error: no head fits");
    check(&[1, 1000], 0, None, "error: no head fits");
    check(&[1, 84, 0], 80, None, "error: no head fits");
}

#[test]
fn a_named_task_counts() {
    let mut meta = named(80);
    let outputs = [spec("output0", DType::F32, &[1, 116, 8400]), spec("output1", DType::F32, &[1, 32, 160, 160])];
    assert!(choose(HeadChoice::Auto, &outputs, &meta, None).is_err());
    meta.task = Some("segment".into());
    let head = choose(HeadChoice::Auto, &outputs, &meta, None).unwrap();
    assert_eq!(head, Head::Dense { output: 0, shape: [1, 116, 8400], classes: 80, transposed: false });
    meta.task = Some("classify".into());
    assert_eq!(choose(HeadChoice::Auto, &outputs, &meta, None), Ok(Head::None));
    meta.task = Some("obb".into());
    assert!(choose(HeadChoice::Auto, &outputs, &meta, None).unwrap_err().to_string().contains("obb"));
}

#[test]
fn two_classes_of_rt_detr_are_not_end_to_end() {
    let mut meta = named(2);
    let outputs = [spec("output0", DType::F32, &[1, 300, 6])];
    assert!(matches!(choose(HeadChoice::Auto, &outputs, &meta, None), Ok(Head::EndToEnd { .. })));
    meta.end2end = Some(false);
    assert!(matches!(choose(HeadChoice::Auto, &outputs, &meta, None), Ok(Head::RtDetr { classes: 2, .. })));
}

#[test]
fn feature_maps_beside_the_output_are_passed_over() {
    let outputs = [
        spec("p3", DType::F32, &[1, 144, 80, 80]),
        spec("mask", DType::I64, &[1, 84, 8400]),
        spec("out", DType::F32, &[1, 84, 8400]),
    ];
    let head = choose(HeadChoice::Auto, &outputs, &named(80), None).unwrap();
    assert!(matches!(head, Head::Dense { output: 2, .. }));
}

#[test]
fn efficient_nms_in_any_order() {
    let count = spec("num_dets", DType::I32, &[1, 1]);
    let boxes = spec("det_boxes", DType::F32, &[1, 100, 4]);
    let scores = spec("det_scores", DType::F32, &[1, 100]);
    let classes = spec("det_classes", DType::I32, &[1, 100]);
    let outputs = [classes.clone(), count.clone(), scores.clone(), boxes.clone()];
    let want = Head::EfficientNms { num_dets: 1, boxes: 3, scores: 2, classes: 0, capacity: 100 };
    assert_eq!(choose(HeadChoice::Auto, &outputs, &named(80), None), Ok(want));
    // Same types, so the names tell; then neither does, and the plugin's order does.
    let float = |s: &TensorSpec, name: &str| TensorSpec { name: name.into(), dtype: DType::F32, ..s.clone() };
    let outputs = [float(&classes, "classes"), float(&scores, "scores"), count.clone(), boxes.clone()];
    assert!(matches!(efficient_nms(&outputs), Some(Head::EfficientNms { scores: 1, classes: 0, .. })));
    let outputs = [count, boxes, float(&scores, "a"), float(&classes, "b")];
    assert!(matches!(efficient_nms(&outputs), Some(Head::EfficientNms { scores: 2, classes: 3, .. })));
    assert!(efficient_nms(&outputs[..3]).is_none());
}

#[test]
fn a_named_head_beats_the_guess_and_says_what_it_wants() {
    let outputs = [spec("output0", DType::F32, &[1, 84, 8400])];
    let head = choose(HeadChoice::Dfl, &outputs, &Metadata::default(), Some([640, 640])).unwrap();
    assert_eq!(head.classes(), Some(20));
    assert_eq!(choose(HeadChoice::None, &outputs, &named(80), None), Ok(Head::None));
    let error = choose(HeadChoice::EndToEnd, &outputs, &named(80), None).unwrap_err().to_string();
    assert!(error.starts_with("head `end2end` does not fit the outputs: output0 f32[1, 84, 8400]"), "{error}");
    assert!(error.contains("[N,K,6]"), "{error}");
    assert!(choose(HeadChoice::Dfl, &outputs, &named(20), Some([320, 320])).is_err());
    for &choice in HeadChoice::ALL {
        let _ = choose(choice, &[spec("x", DType::F32, &[0, 0, 0]), spec("y", DType::F32, &[])], &named(3), None);
    }
}
