use super::*;
use prony_types::TensorData;

const POST: PostSpec = PostSpec { conf: 0.25, iou: 0.45, max_det: 300, multi_label: false };

/// The network's input is the image itself.
fn plain() -> Letterbox {
    Letterbox::new(64, 64, 64, 64)
}

fn view<'a>(shape: &'a [usize], data: &'a [f32]) -> TensorView<'a> {
    TensorView { name: "output0", shape, data: TensorData::F32(data) }
}

fn decode(head: Head, outputs: &[TensorView<'_>], item: usize) -> Result<Vec<Detection>, HeadError> {
    let mut out = vec![Detection { x1: 0.0, y1: 0.0, x2: 0.0, y2: 0.0, score: 9.0, class: 9 }];
    Decoder::new(head, &POST, [64, 64]).decode(outputs, item, &plain(), &mut out).map(|()| out)
}

fn found(x1: f32, y1: f32, x2: f32, y2: f32, score: f32, class: u32) -> Detection {
    Detection { x1, y1, x2, y2, score, class }
}

fn dense(shape: [usize; 3], classes: usize, transposed: bool) -> Head {
    Head::Dense { output: 0, shape, classes, transposed }
}

/// Three anchors, two classes: one sure, one that it covers, one that is not sure enough.
const COLUMNS: [f32; 18] =
    [20.0, 21.0, 50.0, 30.0, 30.0, 50.0, 20.0, 20.0, 8.0, 10.0, 10.0, 8.0, 0.1, 0.0, 0.25, 0.9, 0.8, 0.2];

fn turned(columns: &[f32], anchors: usize) -> Vec<f32> {
    let channels = columns.len() / anchors;
    (0..columns.len()).map(|i| columns[i % channels * anchors + i / channels]).collect()
}

#[test]
fn dense_both_ways_round() {
    let want = vec![found(10.0, 25.0, 30.0, 35.0, 0.9, 1)];
    let shape = [1, 6, 3];
    assert_eq!(decode(dense(shape, 2, false), &[view(&shape, &COLUMNS)], 0), Ok(want.clone()));
    let shape = [1, 3, 6];
    assert_eq!(decode(dense(shape, 2, true), &[view(&shape, &turned(&COLUMNS, 3))], 0), Ok(want));
}

#[test]
fn the_item_of_the_batch_is_taken() {
    let mut data = COLUMNS.to_vec();
    data.extend([0.0; 18]);
    data.extend(COLUMNS.map(|v| v / 2.0));
    let shape = [3, 6, 3];
    let got = |item| decode(dense(shape, 2, false), &[view(&shape, &data)], item);
    assert_eq!(got(0).unwrap()[0].score, 0.9);
    assert_eq!(got(1), Ok(vec![]));
    assert_eq!(got(2).unwrap()[0].score, 0.45);
    let error = got(3).unwrap_err().to_string();
    assert!(error.contains("holds 3 items, item 4 of the batch") && error.ends_with("use --batch 3"), "{error}");
    let shape = [1, 6, 3];
    let error = decode(dense(shape, 2, false), &[view(&shape, &COLUMNS)], 1).unwrap_err().to_string();
    let want = "output `output0` [1, 6, 3]: it holds 1 item, item 2 of the batch was asked for; \
                the model's batch is fixed inside, use --batch 1";
    assert_eq!(error, want);
}

#[test]
fn boxes_come_back_to_the_image_and_are_clipped() {
    let placed = Letterbox::new(128, 64, 64, 64); // half the size, 16 rows above
    let data = [32.0, 32.0, 200.0, 8.0, 0.9];
    let mut out = Vec::new();
    let mut decoder = Decoder::new(dense([1, 5, 1], 1, false), &POST, [64, 64]);
    decoder.decode(&[view(&[1, 5, 1], &data)], 0, &placed, &mut out).unwrap();
    assert_eq!(out, [found(0.0, 24.0, 128.0, 40.0, 0.9, 0)]);
}

/// A box in the bar above the image, one in the image, and one whose sides are swapped.
#[test]
fn logits_are_activated_once_and_probabilities_never() {
    let mut decoder = Decoder::new(dense([1, 5, 2], 1, false), &POST, [64, 64]);
    assert_eq!(decoder.scores_activated(), None);
    let mut out = Vec::new();
    let logits = [9.0, 30.0, 9.0, 30.0, 8.0, 8.0, 8.0, 8.0, -5.0, 0.5];
    decoder.decode(&[view(&[1, 5, 2], &logits)], 0, &plain(), &mut out).unwrap();
    assert_eq!(decoder.scores_activated(), Some(false));
    assert_eq!(out.len(), 1);
    assert!((out[0].score - 0.62246).abs() < 1e-5);
    // The decision stays, though these look like probabilities: 0.3 is 0.57.
    let later = [9.0, 30.0, 9.0, 30.0, 8.0, 8.0, 8.0, 8.0, 0.1, 0.3];
    decoder.decode(&[view(&[1, 5, 2], &later)], 0, &plain(), &mut out).unwrap();
    assert!((out[0].score - 0.57444).abs() < 1e-5);

    let mut decoder = Decoder::new(dense([1, 5, 2], 1, false), &POST, [64, 64]);
    decoder.decode(&[view(&[1, 5, 2], &later)], 0, &plain(), &mut out).unwrap();
    assert_eq!(decoder.scores_activated(), Some(true));
    assert_eq!(out[0].score, 0.3);
}

#[test]
fn objectness_multiplies() {
    let shape = [1, 4, 7];
    // The last one is exactly at the threshold, which is not above it.
    #[rustfmt::skip]
    let data = [
        20.0, 20.0, 8.0, 8.0, 0.5, 0.2, 0.9,
        40.0, 40.0, 8.0, 8.0, 0.2, 0.9, 1.0,
        50.0, 50.0, 8.0, 8.0, 0.9, 0.2, 0.1,
        10.0, 50.0, 8.0, 8.0, 0.5, 0.5, 0.1,
    ];
    let head = Head::Objectness { output: 0, shape, classes: 2 };
    let got = decode(head, &[view(&shape, &data)], 0).unwrap();
    assert_eq!(got, [found(16.0, 16.0, 24.0, 24.0, 0.45, 1)]);
}

#[test]
fn dfl_takes_the_mean_distance_in_strides() {
    // 64x64 has 64 + 16 + 4 anchors; the first of stride 16 is number 64, centred at 8,8.
    let (anchors, at) = (84, 64);
    let shape = [1, 66, anchors];
    let mut data = vec![0.0f32; 66 * anchors];
    data[64 * anchors..].fill(-9.0);
    data[65 * anchors + at] = 2.0;
    for (side, bin) in [0, 0, 2, 1].into_iter().enumerate() {
        data[(side * 16 + bin) * anchors + at] = 100.0;
    }
    // The lower edge lies between 1 and 2 strides.
    data[(3 * 16 + 2) * anchors + at] = 100.0;
    let head = Head::Dfl { output: 0, shape, classes: 2 };
    let got = decode(head.clone(), &[view(&shape, &data)], 0).unwrap();
    assert_eq!(got.len(), 1);
    assert_eq!((got[0].x1, got[0].y1, got[0].x2, got[0].y2, got[0].class), (8.0, 8.0, 40.0, 32.0, 1));
    assert!((got[0].score - 0.880797).abs() < 1e-5);
    let other = [1, 66, 83];
    let error = decode(head, &[view(&other, &data[..66 * 83])], 0).unwrap_err();
    assert!(error.to_string().contains("84 anchors"), "{error}");
}

#[test]
fn end_to_end_keeps_the_models_order() {
    let shape = [1, 5, 6];
    #[rustfmt::skip]
    let data = [
        1.0, 2.0, 3.0, 4.0, 0.3, 7.0,
        1.0, 2.0, 3.0, 4.0, 0.9, 1.0,
        1.0, 2.0, 3.0, 4.0, 0.25, 1.0,
        1.0, 2.0, 3.0, 4.0, 0.9, -1.0,
        1.0, f32::NAN, 3.0, 4.0, 0.9, 1.0,
    ];
    let got = decode(Head::EndToEnd { output: 0, shape }, &[view(&shape, &data)], 0).unwrap();
    assert_eq!(got, [found(1.0, 2.0, 3.0, 4.0, 0.3, 7), found(1.0, 2.0, 3.0, 4.0, 0.9, 1)]);
}

#[test]
fn end_to_end_passes_over_masks_and_key_points() {
    let shape = [2, 2, 8];
    #[rustfmt::skip]
    let data = [
        1.0, 2.0, 3.0, 4.0, 0.9, 7.0, 55.0, 66.0,
        5.0, 6.0, 7.0, 8.0, 0.1, 1.0, 55.0, 66.0,
        1.0, 2.0, 3.0, 4.0, 0.1, 7.0, f32::NAN, 66.0,
        5.0, 6.0, 7.0, 8.0, 0.5, 1.0, f32::NAN, 66.0,
    ];
    let head = || Head::EndToEnd { output: 0, shape };
    assert_eq!(decode(head(), &[view(&shape, &data)], 0), Ok(vec![found(1.0, 2.0, 3.0, 4.0, 0.9, 7)]));
    assert_eq!(decode(head(), &[view(&shape, &data)], 1), Ok(vec![found(5.0, 6.0, 7.0, 8.0, 0.5, 1)]));
    assert!(decode(head(), &[view(&[2, 2, 6], &data[..24])], 0).is_err());
    for shape in [[1, 2, 5], [1, 2, 0]] {
        assert!(decode(Head::EndToEnd { output: 0, shape }, &[view(&shape, &data[..2 * shape[2]])], 0).is_err());
    }
}

#[test]
fn rt_detr_is_ranked_and_scaled() {
    let shape = [1, 3, 6];
    #[rustfmt::skip]
    let data = [
        0.5, 0.5, 0.5, 0.25, 0.3, 0.1,
        0.5, 0.5, 0.5, 0.25, 0.1, 0.8,
        0.5, 0.5, 0.5, 0.25, 0.1, 0.2,
    ];
    let got = decode(Head::RtDetr { output: 0, shape, classes: 2 }, &[view(&shape, &data)], 0).unwrap();
    assert_eq!(got, [found(16.0, 24.0, 48.0, 40.0, 0.8, 1), found(16.0, 24.0, 48.0, 40.0, 0.3, 0)]);
}

#[test]
fn efficient_nms_counts_its_boxes() {
    let boxes = [1.0, 2.0, 3.0, 4.0].repeat(6);
    let scores = [0.9, 0.8, 0.7, 0.6, 0.1, 0.5];
    let classes = [0i64, 1, 2, 3, 4, 5];
    for (counts, want) in [([2, 3], 2), ([3, -4], 0), ([1, 99], 2), ([0, 0], 0)] {
        let outputs = [
            TensorView { name: "num_dets", shape: &[2, 1], data: TensorData::I32(&counts) },
            TensorView { name: "boxes", shape: &[2, 3, 4], data: TensorData::F32(&boxes) },
            TensorView { name: "scores", shape: &[2, 3], data: TensorData::F32(&scores) },
            TensorView { name: "classes", shape: &[2, 3], data: TensorData::I64(&classes) },
        ];
        let head = Head::EfficientNms { num_dets: 0, boxes: 1, scores: 2, classes: 3, capacity: 3 };
        let got = decode(head.clone(), &outputs, 1).unwrap();
        assert_eq!(got.len(), want, "{counts:?}");
        assert!(got.first().is_none_or(|b| *b == found(1.0, 2.0, 3.0, 4.0, 0.6, 3)));
        assert!(decode(head.clone(), &outputs[..3], 0).is_err());
        assert!(decode(head, &outputs, 2).is_err());
    }
}

#[test]
fn no_head_gives_no_boxes() {
    assert_eq!(decode(Head::None, &[], 7), Ok(vec![]));
}

#[test]
fn nan_anywhere_is_no_detection() {
    for at in 0..COLUMNS.len() {
        let mut data = COLUMNS;
        data[at] = f32::NAN;
        for got in decode(dense([1, 6, 3], 2, false), &[view(&[1, 6, 3], &data)], 0).unwrap() {
            assert!(finite(&got) && got.score > 0.25, "{got:?}");
        }
    }
    let nothing = [f32::NAN; 18];
    assert_eq!(decode(dense([1, 6, 3], 2, false), &[view(&[1, 6, 3], &nothing)], 0), Ok(vec![]));
}

#[test]
fn hostile_shapes_are_errors() {
    let head = || dense([1, 6, 3], 2, false);
    let data = [0.5f32; 18];
    let ints = [1i32; 18];
    assert!(decode(head(), &[], 0).unwrap_err().to_string().contains("missing"));
    for shape in
        [&[1, 6, 0][..], &[1, 6], &[6, 3], &[1, 3, 6], &[], &[1, 6, 4], &[usize::MAX, 6, usize::MAX], &[0, 6, 3]]
    {
        let error = decode(head(), &[view(shape, &data)], 0).unwrap_err();
        assert!(error.to_string().contains(&format!("{shape:?}")), "{error}");
    }
    assert!(decode(head(), &[view(&[1, 6, 0], &[])], 0).is_err());
    assert!(decode(head(), &[view(&[0, 6, 3], &[])], 0).is_err());
    let integers = TensorView { name: "x", shape: &[1, 6, 3], data: TensorData::I32(&ints) };
    assert!(decode(head(), &[integers], 0).is_err());
    // A head that was made by hand and does not agree with itself.
    for classes in [3, 200, usize::MAX] {
        assert!(decode(dense([1, 6, 3], classes, false), &[view(&[1, 6, 3], &data)], 0).is_err());
    }
}

#[test]
fn a_crowded_frame_after_an_empty_one_allocates_nothing() {
    let (anchors, width) = (1000, 7);
    let empty = vec![0.0f32; anchors * width];
    // Boxes side by side, all of them sure.
    let line = |i: usize| [20.0 * i as f32, 9.0, 8.0, 8.0, 0.9, 0.9, 0.2];
    let crowded: Vec<f32> = (0..anchors).flat_map(line).collect();
    let shape = [1, anchors, width];
    // Wide enough for all of them, also where they are taken as fractions of the input.
    let placed = Letterbox::new(2_000_000, 1000, 2_000_000, 1000);
    for head in [
        dense(shape, 3, true),
        Head::Objectness { output: 0, shape, classes: 2 },
        Head::RtDetr { output: 0, shape, classes: 3 },
    ] {
        let mut decoder = Decoder::new(head, &POST, [64, 64]);
        let mut out = Vec::new();
        let mut rooms = Vec::new();
        for (data, found) in [(&empty, 0), (&crowded, 300)] {
            decoder.decode(&[view(&shape, data)], 0, &placed, &mut out).unwrap();
            assert_eq!(out.len(), found);
            let own = [decoder.hits.capacity(), decoder.boxes.capacity(), out.capacity()];
            rooms.push((own, decoder.suppressor.room()));
        }
        assert_eq!(rooms[0], rooms[1], "{}", decoder.head());
    }
}
