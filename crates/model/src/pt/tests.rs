//! Checkpoints that are good, foreign, damaged and hostile.

use proptest::prelude::*;
use zip::CompressionMethod;

use super::writer::{Writer, container, detector, stored};
use super::*;

const DETECTION: (&str, &str) = ("ultralytics.nn.tasks", "DetectionModel");

fn read(bytes: Vec<u8>) -> Result<Checkpoint, PtError> {
    Checkpoint::read(bytes.into())
}

fn refused(bytes: Vec<u8>) -> String {
    read(bytes).unwrap_err().to_string()
}

fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{part}: {text}");
}

/// A state dict with one tensor over a storage of these bytes.
fn one_tensor(class: &str, storage: &[u8], held: i64, at: i64, shape: &[i64], stride: &[i64]) -> Vec<u8> {
    let pickle = Writer::new().dict(&[("w", &|writer| writer.tensor(class, "0", held, at, shape, stride))]);
    stored(&pickle.end(), &[("0", storage)])
}

#[test]
fn a_detector_is_read_from_either_place() {
    for (holder, expected) in [("model", Holder::Model), ("ema", Holder::Ema)] {
        let checkpoint = read(detector(holder, DETECTION, "Detect")).unwrap();
        assert_eq!((checkpoint.holder, checkpoint.refusal()), (expected, None));
        assert_eq!(checkpoint.names.into_iter().collect::<Vec<_>>(), [(0, "person".into()), (1, "it's".into())]);
        assert_eq!((checkpoint.strides, checkpoint.imgsz), (vec![8.0, 16.0, 32.0], Some([640, 640])));
        assert_eq!((checkpoint.task.as_deref(), checkpoint.classes), (Some("detect"), Some(2)));
        assert_eq!((checkpoint.version.as_deref(), checkpoint.epoch), (Some("8.3.0"), Some(-1)));
        assert_eq!(checkpoint.yaml.as_deref(), Some("yolov8n.yaml"));
        assert_eq!(checkpoint.date.as_deref(), Some("2026-01-02T03:04:05"));
    }
}

#[test]
fn modules_keep_their_order_attributes_and_weights() {
    let checkpoint = read(detector("model", DETECTION, "Detect")).unwrap();
    assert_eq!(checkpoint.stored_elements().into_iter().collect::<Vec<_>>(), [(Element::F16, 4)]);
    assert_eq!(checkpoint.modules().values().sum::<usize>(), 4);
    let model = checkpoint.model.unwrap();
    let layers = model.child("model").unwrap();
    assert_eq!(layers.children.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["0", "1"]);
    let conv = layers.child("0").unwrap();
    assert_eq!(conv.class.to_string(), "torch.nn.modules.conv.Conv2d");
    assert_eq!(conv.attributes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["training", "groups"]);
    assert_eq!(checkpoint.pickle.int(conv.attribute("groups").unwrap()), Some(1));
    assert!(conv.parameter("bias").is_none() && conv.parameters.len() == 2);
    let weight = conv.parameter("weight").unwrap();
    assert_eq!(weight.to_f32(&checkpoint.archive).unwrap(), [1.0, -2.0, 0.5, 4.0]);
}

#[test]
fn a_container_that_was_compressed_again_is_read() {
    let pickle = Writer::new().dict(&[("w", &|writer| writer.tensor("ByteStorage", "0", 2, 0, &[2], &[1]))]).end();
    let checkpoint = read(container(&pickle, &[("0", &[7, 9])], CompressionMethod::Deflated)).unwrap();
    assert_eq!(checkpoint.weights[0].1.to_f32(&checkpoint.archive).unwrap(), [7.0, 9.0]);
}

#[test]
fn every_type_of_element_becomes_a_float() {
    let bytes = |numbers: [&[u8]; 2]| numbers.concat();
    let cases: [(&str, Vec<u8>, [f32; 2]); 10] = [
        ("DoubleStorage", bytes([&1.5f64.to_le_bytes(), &(-2f64).to_le_bytes()]), [1.5, -2.0]),
        ("FloatStorage", bytes([&1.5f32.to_le_bytes(), &(-2f32).to_le_bytes()]), [1.5, -2.0]),
        ("HalfStorage", bytes([&[0x00, 0x3e], &[0x00, 0xc0]]), [1.5, -2.0]),
        ("BFloat16Storage", bytes([&[0xc0, 0x3f], &[0x00, 0xc0]]), [1.5, -2.0]),
        ("LongStorage", bytes([&3i64.to_le_bytes(), &(-2i64).to_le_bytes()]), [3.0, -2.0]),
        ("IntStorage", bytes([&3i32.to_le_bytes(), &(-2i32).to_le_bytes()]), [3.0, -2.0]),
        ("ShortStorage", bytes([&3i16.to_le_bytes(), &(-2i16).to_le_bytes()]), [3.0, -2.0]),
        ("CharStorage", vec![3, 0xfe], [3.0, -2.0]),
        ("ByteStorage", vec![3, 0xfe], [3.0, 254.0]),
        ("BoolStorage", vec![0, 2], [0.0, 1.0]),
    ];
    for (class, bytes, expected) in cases {
        let checkpoint = read(one_tensor(class, &bytes, 2, 0, &[2], &[1])).unwrap();
        assert_eq!(checkpoint.weights[0].1.to_f32(&checkpoint.archive).unwrap(), expected, "{class}");
    }
}

#[test]
fn strides_and_offsets_are_honoured() {
    // Two rows and three columns, kept column by column after one element that is not theirs.
    let checkpoint = read(one_tensor("ByteStorage", &[99, 0, 3, 1, 4, 2, 5], 7, 1, &[2, 3], &[1, 2])).unwrap();
    assert_eq!(checkpoint.weights[0].1.to_f32(&checkpoint.archive).unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let none = read(one_tensor("LongStorage", &[0; 8], 1, i64::MAX, &[0, 3], &[3, 1])).unwrap();
    assert_eq!(none.weights[0].1.to_f32(&none.archive).unwrap(), [0.0; 0]);
    let scalar = read(one_tensor("ByteStorage", &[5], 1, 0, &[], &[])).unwrap();
    assert_eq!(scalar.weights[0].1.to_f32(&scalar.archive).unwrap(), [5.0]);
}

#[test]
fn tensors_that_do_not_fit_are_refused() {
    let giant = refused(one_tensor("FloatStorage", &[0; 64], 1 << 30, 0, &[1 << 30], &[1]));
    has(&giant, "tensor w: its storage claims 4294967296 bytes, and the file has 64 for it");
    let cases: [(i64, &[i64], &[i64]); 7] = [
        (0, &[17], &[1]),
        (1, &[16], &[1]),
        (0, &[4, 4], &[5, 1]),
        // One element that would be shown a billion times.
        (0, &[1 << 30], &[0]),
        (0, &[i64::MAX, i64::MAX], &[1, 1]),
        (0, &[2], &[i64::MAX]),
        (i64::MAX, &[2], &[1]),
    ];
    for (at, shape, stride) in cases {
        has(&refused(one_tensor("FloatStorage", &[0; 64], 16, at, shape, stride)), "elements of its storage");
    }
    has(&refused(one_tensor("FloatStorage", &[0; 64], 16, 0, &[-1], &[1])), "shape is no short row of sizes");
    has(&refused(one_tensor("FloatStorage", &[0; 64], 16, 0, &[2, 2], &[1])), "2 dimensions and 1 strides");
    has(&refused(one_tensor("QInt8Storage", &[0; 64], 16, 0, &[2], &[1])), "torch.QInt8Storage is not supported");
}

#[test]
fn foreign_models_are_named() {
    let cases = [
        (("ultralytics.nn.tasks", "SegmentationModel"), "Segment", "it is a model for segmentation; supported are"),
        (("ultralytics.nn.tasks", "PoseModel"), "Pose", "it is a model for poses"),
        (("ultralytics.nn.tasks", "OBBModel"), "OBB", "it is a model for oriented boxes"),
        (("ultralytics.nn.tasks", "ClassificationModel"), "Classify", "it is a model for classification"),
        (("torchvision.models.resnet", "ResNet"), "Linear", "its model is torchvision.models.resnet.ResNet"),
        (("models.yolo", "DetectionModel"), "Detect", "original YOLOv5"),
        (DETECTION, "MyDetect", "its head is ultralytics.nn.modules.head.MyDetect"),
    ];
    for (class, head, reason) in cases {
        has(&read(detector("model", class, head)).unwrap().refusal().unwrap(), reason);
    }
    let weights = read(one_tensor("ByteStorage", &[1], 1, 0, &[1], &[1])).unwrap();
    has(&weights.refusal().unwrap(), "it is a state dict, 1 tensors");
}

#[test]
fn what_is_no_checkpoint_is_said() {
    has(&refused(b"hello, this is text".to_vec()), "does not start as the zip file");
    has(&refused(Vec::new()), "does not start as the zip file");
    has(&refused(b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.".to_vec()), "torch before 1.6");
    let dict = Writer::new().dict(&[("a", &|writer| writer.int(1)), ("b\x1b[2J", &|writer| writer.int(1))]);
    has(&refused(stored(&dict.end(), &[])), "it holds a dict of a, b\\u{1b}[2J, and no model");
    has(&refused(stored(&Writer::new().int(1).end(), &[])), "neither a model nor a dict");
    has(&refused(stored(&[], &[])), "opcode STOP at byte 0: it is missing");
}

#[test]
fn a_call_that_would_run_a_command_is_named_and_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let proof = folder.path().join("executed");
    let command = format!("touch {}", proof.display());
    let pickle = Writer::new().global("posix", "system").raw(b"(").text(&command).raw(b"tR.").0;
    has(&refused(stored(&pickle, &[])), "it would call posix.system when it is loaded; nothing was executed here");
    assert!(!proof.exists());
    // Also deep inside of what nobody looks at, by a later protocol, and as an argument of something harmless.
    let hidden = Writer::new().dict(&[("x", &|w| w.raw(b"\x8c\x08builtins\x8c\x04eval\x93)R"))]).end();
    has(&refused(stored(&hidden, &[])), "builtins.eval");
    let argument = Writer::new().global("functools", "partial").raw(b"(").global("os", "system").raw(b"tR.").0;
    has(&refused(stored(&argument, &[])), "os.system");
    // As data it is there.
    let data = read_pickle(&pickle).unwrap();
    let Value::Reduce(made) = data.get(data.root()) else { panic!("no call") };
    assert_eq!(data.global(made.callable), Some(("posix", "system")));
    assert_eq!(data.text(data.elements(made.args).unwrap()[0]), Some(command.as_str()));
}

#[test]
fn damaged_pickles_name_the_opcode_and_its_place() {
    let cases: [(&[u8], &str); 9] = [
        (b"\x80\x02\xff.", "opcode 0xff at byte 2: no checkpoint uses this opcode"),
        (b"\x80\x02S'a'\n.", "opcode 0x53 at byte 2"),
        (b"\x80\x02R.", "opcode REDUCE at byte 2: the stack is empty"),
        (b"\x80\x02](K\x01a.", "opcode APPEND at byte 6: the stack is empty"),
        (b"\x80\x02t.", "opcode TUPLE at byte 2: there is no mark"),
        (b"\x80\x02h\x07.", "opcode BINGET at byte 2: nothing was remembered as 7"),
        (b"\x80\x02X\xff\xff\xff\x7fab.", "opcode BINUNICODE at byte 2: it claims 2147483647 bytes, and 3 are left"),
        (b"\x80\x02}(K\x01u.", "opcode SETITEMS at byte 6: a key has no value"),
        (b"\x80\x09N.", "opcode PROTO at byte 0: protocol 9"),
    ];
    for (pickle, expected) in cases {
        has(&read_pickle(pickle).unwrap_err().to_string(), expected);
    }
}

#[test]
fn an_object_may_be_remembered_before_it_is_filled_and_hold_itself() {
    let pickle = read_pickle(b"\x80\x02]q\x00(K\x01h\x00e.").unwrap();
    let elements = pickle.elements(pickle.root()).unwrap();
    assert_eq!((pickle.int(elements[0]), elements[1]), (Some(1), pickle.root()));
    // A module that is its own child has no end.
    let state = Writer::new().global("m", "M").raw(b")\x81q\x00");
    let state = state.dict(&[("_modules", &|writer| writer.dict(&[("again", &|writer| writer.raw(b"h\x00"))]))]);
    has(&refused(stored(&state.raw(b"b").end(), &[])), "nested deeper than 64");
}

#[test]
fn modules_that_double_at_every_level_are_refused() {
    // Each has the one before twice: a few hundred bytes stand for 2^60 modules.
    let mut pickle = Writer::new();
    for level in 0..60u8 {
        let child = move |writer: Writer| if level == 0 { writer.raw(b"N") } else { writer.raw(&[b'h', level - 1]) };
        let modules = |writer: Writer| writer.dict(&[("a", &child), ("b", &child)]);
        pickle = pickle.global("m", "M").raw(b")\x81").raw(&[b'q', level]).dict(&[("_modules", &modules)]).raw(b"b");
    }
    has(&refused(stored(&pickle.end(), &[])), "more than 400000 parts");
}

#[test]
fn deep_nesting_neither_overflows_nor_hides() {
    let depth = 300_000;
    let pickle = [b"\x80\x02".as_slice(), &b"]".repeat(depth), &b"a".repeat(depth - 1), b"."].concat();
    let data = read_pickle(&pickle).unwrap();
    assert_eq!(data.elements(data.root()).map(<[Id]>::len), Some(1));
    has(&refused(stored(&pickle, &[])), "neither a model nor a dict");
    let tuples = [b"\x80\x02N".as_slice(), &b"\x85".repeat(depth), b"."].concat();
    assert!(read_pickle(&tuples).is_ok());
}

#[test]
fn a_pickle_cannot_ask_for_more_than_is_allowed() {
    for (filler, reason) in [
        (b"]".as_slice(), "more than the 2000000 values"),
        (b"N", "higher than the 2000000 places"),
        (b"(", "more than the 2000000 values"),
    ] {
        has(&read_pickle(&filler.repeat(3_000_000)).unwrap_err().to_string(), reason);
    }
    has(&read_pickle(&vec![b'N'; 17 << 20]).unwrap_err().to_string(), "16777216 are allowed");
}

#[test]
fn a_zip_bomb_is_not_unfolded() {
    let zeros = vec![0; 80 << 20];
    let bomb = container(&zeros, &[], CompressionMethod::Deflated);
    assert!(bomb.len() < 1 << 20);
    has(&refused(bomb.clone()), "data.pkl claims 83886080 bytes, and 67108864 are allowed");
    // One that claims less than it holds is cut off where its claim ends.
    let mut liar = bomb;
    let claim = (80u32 << 20).to_le_bytes();
    let places: Vec<usize> = (0..liar.len() - 4).filter(|at| liar[*at..*at + 4] == claim).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| liar[at..at + 4].copy_from_slice(&100u32.to_le_bytes()));
    has(&refused(liar), "its member data.pkl: ");
}

#[test]
fn a_file_that_was_cut_short_is_said_to_be() {
    let whole = detector("model", DETECTION, "Detect");
    for len in [whole.len() - 1, whole.len() - 30, whole.len() / 2, 100, 4] {
        has(&refused(whole[..len].to_vec()), "cut short");
    }
}

#[test]
fn a_member_that_claims_gigabytes_is_refused() {
    let mut bytes = one_tensor("ByteStorage", &[1; 77], 77, 0, &[77], &[1]);
    let places: Vec<usize> = (0..bytes.len() - 4).filter(|at| bytes[*at..*at + 4] == 77u32.to_le_bytes()).collect();
    assert!(places.len() >= 4);
    places.into_iter().for_each(|at| bytes[at..at + 4].copy_from_slice(&0xf000_0000u32.to_le_bytes()));
    has(&refused(bytes), "data/0 claims 4026531840 bytes");
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = read_pickle(&bytes);
        prop_assert!(read(bytes.clone()).is_err());
        // A pickle of noise within a whole container.
        let _ = read(stored(&bytes, &[("0", &bytes)]));
    }

    #[test]
    fn a_checkpoint_with_other_bytes_in_it_never_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = detector("ema", DETECTION, "Detect");
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(checkpoint) = read(bytes) {
            let _ = (checkpoint.refusal(), checkpoint.stored_elements(), checkpoint.modules());
            if let Some(model) = &checkpoint.model {
                model.visit(&mut |module| {
                    let tensors = module.parameters.iter().chain(&module.buffers);
                    tensors.filter_map(|(_, tensor)| tensor.as_ref()).for_each(|tensor| {
                        let floats = tensor.to_f32(&checkpoint.archive);
                        assert!(floats.is_err() || floats.unwrap().len() == tensor.elements());
                    });
                });
            }
        }
    }

    #[test]
    fn a_strided_tensor_is_what_its_indices_say(rows in 1usize..6, columns in 1usize..6, gap in 0usize..3, at in 0usize..3) {
        let (row, column) = (1, rows + gap);
        let held = at + column * columns;
        let storage: Vec<u8> = (0..held as u8).collect();
        let [r, c, n] = [rows, columns, held].map(|n| n as i64);
        let file = one_tensor("ByteStorage", &storage, n, at as i64, &[r, c], &[row as i64, column as i64]);
        let checkpoint = read(file).unwrap();
        let floats = checkpoint.weights[0].1.to_f32(&checkpoint.archive).unwrap();
        let place = |index: usize| at + index / columns * row + index % columns * column;
        let expected: Vec<f32> = (0..rows * columns).map(|index| f32::from(storage[place(index)])).collect();
        prop_assert_eq!(floats, expected);
    }
}
