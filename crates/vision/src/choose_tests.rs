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

fn floats(shapes: &[&[usize]]) -> Vec<TensorSpec> {
    shapes.iter().enumerate().map(|(i, shape)| spec(&format!("output{i}"), DType::F32, shape)).collect()
}

#[track_caller]
fn check_all(shapes: &[&[usize]], metadata: &Metadata, imgsz: Option<u32>, want: &str) {
    let got = choose(HeadChoice::Auto, &floats(shapes), metadata, imgsz.map(|s| [s, s]));
    let got = got.map_or_else(|e| format!("error: {e}"), |h| h.to_string());
    assert!(got.starts_with(want), "{shapes:?}: {got}");
}

#[test]
fn one_anchor_a_cell_may_have_objectness() {
    for imgsz in [Some(640), None] {
        check(&[1, 8400, 85], 0, imgsz, "objectness [1,8400,85], 80 classes");
        check(&[1, 8400, 85], 80, imgsz, "objectness [1,8400,85], 80 classes");
        check(&[1, 8400, 85], 81, imgsz, "dense [1,8400,85], transposed, 81 classes");
        check(&[1, 85, 8400], 0, imgsz, "dense [1,85,8400], 81 classes");
    }
    check(&[1, 525, 15], 10, Some(160), "objectness [1,525,15], 10 classes");
}

#[test]
fn final_boxes_may_carry_masks_and_key_points() {
    let prototypes: &[usize] = &[1, 32, 160, 160];
    for (task, columns) in [("segment", 38), ("pose", 57)] {
        let want = format!("end2end [1,300,{columns}]");
        for names in [0, 1, 34, 80] {
            for (end2end, imgsz) in [(Some(true), Some(640)), (Some(true), None), (None, Some(640)), (None, None)] {
                let meta = Metadata { task: Some(task.into()), end2end, ..named(names) };
                check_all(&[&[1, 300, columns], prototypes], &meta, imgsz, &want);
            }
        }
    }
    check_all(&[&[1, 300, 38], prototypes], &Metadata::default(), Some(640), "end2end [1,300,38]");
    let meta = Metadata { end2end: Some(true), ..named(80) };
    check_all(&[&[1, 5000, 6]], &meta, Some(640), "end2end [1,5000,6]");
    // What the file says does not make anchors final.
    check_all(&[&[1, 84, 8400]], &meta, Some(640), "dense [1,84,8400], 80 classes");
    check_all(&[&[1, 8400, 84]], &meta, Some(640), "dense [1,8400,84], transposed, 80 classes");
    let meta = Metadata { task: Some("pose".into()), ..named(1) };
    check_all(&[&[1, 56, 8400]], &meta, Some(640), "dense [1,56,8400], 1 class");
    check_all(&[&[1, 336, 56]], &meta, Some(128), "dense [1,336,56], transposed, 1 class");
    for columns in [6, 38, 57] {
        let head = choose(HeadChoice::EndToEnd, &floats(&[&[1, 300, columns]]), &named(80), None);
        assert_eq!(head, Ok(Head::EndToEnd { output: 0, shape: [1, 300, columns] }));
    }
    assert!(choose(HeadChoice::EndToEnd, &floats(&[&[1, 300, 5]]), &named(80), None).is_err());
}

#[test]
fn boxes_and_scores_in_two_outputs_are_an_error() {
    for (shapes, names) in [
        ([&[1, 8400, 4][..], &[1, 8400, 80]], 0),
        ([&[1, 8400, 80], &[1, 8400, 4]], 76),
        ([&[1, 300, 80], &[1, 300, 4]], 0),
        ([&[1, 300, 80], &[1, 300, 4]], 76),
        ([&[1, 300, 6], &[1, 300, 4]], 6),
    ] {
        let want = format!("error: no head fits the outputs: output0 f32{:?}, output1 f32{:?}", shapes[0], shapes[1]);
        check_all(&shapes, &named(names), Some(640), &want);
        let error = choose(HeadChoice::Auto, &floats(&shapes), &named(names), None).unwrap_err().to_string();
        assert!(error.contains("boxes and scores come in two outputs"), "{error}");
    }
    // Beside another output that is whole they do no harm.
    let shapes: [&[usize]; 3] = [&[1, 8400, 4], &[1, 8400, 80], &[1, 300, 6]];
    check_all(&shapes, &Metadata::default(), Some(640), "end2end [1,300,6]");
}

#[test]
fn mask_coefficients_are_not_classes() {
    let prototypes: &[usize] = &[1, 32, 160, 160];
    let nameless = Metadata::default();
    check_all(&[&[1, 116, 8400], prototypes], &nameless, Some(640), "dense [1,116,8400], 80 classes");
    check_all(&[&[1, 8400, 116], prototypes], &nameless, Some(640), "dense [1,8400,116], transposed, 80 classes");
    check_all(&[prototypes, &[1, 25200, 117]], &nameless, Some(640), "objectness [1,25200,117], 80 classes");
    check_all(&[&[1, 8400, 117], prototypes], &nameless, Some(640), "objectness [1,8400,117], 80 classes");
    check_all(&[&[1, 20, 8400], prototypes], &nameless, Some(640), "dense [1,20,8400], 16 classes");
    for (choice, shape) in [(HeadChoice::Dense, [1, 116, 8400]), (HeadChoice::Objectness, [1, 25200, 117])] {
        let head = choose(choice, &floats(&[&shape, prototypes]), &nameless, None).unwrap();
        assert_eq!(head.classes(), Some(80));
    }
    let meta = Metadata { task: Some("segment".into()), ..named(80) };
    check_all(&[&[1, 25200, 117], prototypes], &meta, Some(640), "objectness [1,25200,117], 80 classes");
    // Feature maps are no prototypes.
    let maps: [&[usize]; 3] = [&[1, 84, 8400], &[1, 64, 80, 80], &[1, 64, 40, 40]];
    check_all(&maps, &nameless, Some(640), "dense [1,84,8400], 80 classes");
}

#[test]
fn a_small_grid_of_six_columns_is_not_final() {
    check(&[1, 336, 6], 2, Some(128), "dense [1,336,6], transposed, 2 classes");
    check(&[1, 567, 6], 1, Some(96), "objectness [1,567,6], 1 class");
    check(&[1, 336, 6], 1, Some(128), "objectness [1,336,6], 1 class");
    // With more names six columns can only be final; and another size has another grid.
    check(&[1, 336, 6], 3, Some(128), "end2end [1,336,6]");
    check(&[1, 336, 6], 2, Some(640), "end2end [1,336,6]");
    // 300 cells at strides 16 and 32 are a chance; 300 final boxes are the rule.
    let wide = choose(HeadChoice::Auto, &floats(&[&[1, 300, 6]]), &named(2), Some([192, 320])).unwrap();
    assert_eq!(wide, Head::EndToEnd { output: 0, shape: [1, 300, 6] });
}
