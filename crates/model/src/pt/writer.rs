//! Writes small checkpoints for the tests, in the way torch does.

use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A pickle in the making.
#[derive(Clone, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn new() -> Writer {
        Writer(vec![0x80, 2])
    }

    pub(super) fn raw(mut self, bytes: &[u8]) -> Writer {
        self.0.extend(bytes);
        self
    }

    pub(super) fn text(self, text: &str) -> Writer {
        self.raw(b"X").raw(&u32::try_from(text.len()).unwrap().to_le_bytes()).raw(text.as_bytes())
    }

    pub(super) fn int(self, number: i32) -> Writer {
        self.raw(b"J").raw(&number.to_le_bytes())
    }

    /// A number of 64 bits.
    pub(super) fn long(self, number: i64) -> Writer {
        self.raw(&[0x8a, 8]).raw(&number.to_le_bytes())
    }

    pub(super) fn global(self, module: &str, name: &str) -> Writer {
        self.raw(format!("c{module}\n{name}\n").as_bytes())
    }

    pub(super) fn ints(self, numbers: &[i64]) -> Writer {
        numbers.iter().fold(self.raw(b"("), |writer, number| writer.long(*number)).raw(b"t")
    }

    /// A dict of texts to whatever is written for each.
    pub(super) fn dict(self, entries: &[(&str, &dyn Fn(Writer) -> Writer)]) -> Writer {
        let start = self.raw(b"}(");
        entries.iter().fold(start, |writer, (key, value)| value(writer.text(key))).raw(b"u")
    }

    /// A tensor: storage class, member, elements of the storage, offset, shape, stride.
    pub(super) fn tensor(self, class: &str, key: &str, held: i64, at: i64, shape: &[i64], stride: &[i64]) -> Writer {
        self.global("torch._utils", "_rebuild_tensor_v2")
            .raw(b"((")
            .text("storage")
            .global("torch", class)
            .text(key)
            .text("cpu")
            .long(held)
            .raw(b"tQ")
            .long(at)
            .ints(shape)
            .ints(stride)
            .raw(b"\x89ccollections\nOrderedDict\n)RtR")
    }

    /// A module: its class, weights, children and attributes.
    pub(super) fn module(self, class: (&str, &str), state: &[(&str, &dyn Fn(Writer) -> Writer)]) -> Writer {
        self.global(class.0, class.1).raw(b")\x81").dict(state).raw(b"b")
    }

    pub(super) fn end(self) -> Vec<u8> {
        self.raw(b".").0
    }
}

/// A container with a pickle and storages.
pub(super) fn container(pickle: &[u8], storages: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    let mut add = |name: &str, bytes: &[u8]| {
        zip.start_file(format!("best/{name}"), options).unwrap();
        zip.write_all(bytes).unwrap();
    };
    add("data.pkl", pickle);
    add("byteorder", b"little");
    add("version", b"3\n");
    storages.iter().for_each(|(key, bytes)| add(&format!("data/{key}"), bytes));
    zip.finish().unwrap().into_inner()
}

pub(super) fn stored(pickle: &[u8], storages: &[(&str, &[u8])]) -> Vec<u8> {
    container(pickle, storages, CompressionMethod::Stored)
}

/// A detector of two layers, under a key of a checkpoint, with a head of a class.
pub(super) fn detector(holder: &str, class: (&str, &str), head: &str) -> Vec<u8> {
    let none = |writer: Writer| writer.raw(b"}");
    let weight = |writer: Writer| {
        let inner = writer.global("torch._utils", "_rebuild_parameter").raw(b"(");
        inner.tensor("HalfStorage", "0", 4, 0, &[2, 2], &[2, 1]).raw(b"\x89ccollections\nOrderedDict\n)RtR")
    };
    let conv = |writer: Writer| {
        let parameters = |writer: Writer| writer.dict(&[("weight", &weight), ("bias", &|writer| writer.raw(b"N"))]);
        let state: &[(&str, &dyn Fn(Writer) -> Writer)] = &[
            ("training", &|writer| writer.raw(b"\x89")),
            ("_parameters", &parameters),
            ("_buffers", &none),
            ("_modules", &none),
            ("_forward_hooks", &none),
            ("groups", &|writer| writer.int(1)),
        ];
        writer.module(("torch.nn.modules.conv", "Conv2d"), state)
    };
    let head = |writer: Writer| {
        let state: &[(&str, &dyn Fn(Writer) -> Writer)] =
            &[("_parameters", &none), ("_buffers", &none), ("_modules", &none), ("nc", &|writer| writer.int(2))];
        writer.module(("ultralytics.nn.modules.head", head), state)
    };
    let layers = |writer: Writer| {
        let children = |writer: Writer| writer.dict(&[("0", &conv), ("1", &head)]);
        let state: &[(&str, &dyn Fn(Writer) -> Writer)] =
            &[("_parameters", &none), ("_buffers", &none), ("_modules", &children)];
        writer.module(("torch.nn.modules.container", "Sequential"), state)
    };
    let model = |writer: Writer| {
        let children = |writer: Writer| writer.dict(&[("model", &layers)]);
        let names = |writer: Writer| writer.raw(b"}(K\x00").text("person").raw(b"K\x01").text("it's").raw(b"u");
        let yaml = |writer: Writer| writer.dict(&[("yaml_file", &|writer| writer.text("yolov8n.yaml"))]);
        let stride = |writer: Writer| writer.tensor("FloatStorage", "1", 3, 0, &[3], &[1]);
        let state: &[(&str, &dyn Fn(Writer) -> Writer)] = &[
            ("_parameters", &none),
            ("_buffers", &none),
            ("_modules", &children),
            ("names", &names),
            ("yaml", &yaml),
            ("stride", &stride),
        ];
        writer.module(class, state)
    };
    let arguments = |writer: Writer| writer.dict(&[("imgsz", &|writer| writer.int(640))]);
    let pickle = Writer::new().dict(&[
        ("date", &|writer| writer.text("2026-01-02T03:04:05")),
        ("version", &|writer| writer.text("8.3.0")),
        ("epoch", &|writer| writer.int(-1)),
        ("model", &|writer| writer.raw(b"N")),
        ("ema", &|writer| writer.raw(b"N")),
        (holder, &model),
        ("train_args", &arguments),
    ]);
    let weights: Vec<u8> = [1.0, -2.0, 0.5, 4.0].iter().flat_map(|w| half::f16::from_f32(*w).to_le_bytes()).collect();
    let strides: Vec<u8> = [8f32, 16.0, 32.0].iter().flat_map(|stride| stride.to_le_bytes()).collect();
    stored(&pickle.end(), &[("0", &weights), ("1", &strides)])
}
