//! A kilobyte that claims four gigabytes is an error, and nothing of that size is asked for.
#![expect(clippy::unwrap_used, reason = "tests")]

use prony_fuzz::memory::{self, Counting};
use prony_fuzz::reader::Reader;
use prony_fuzz::seeds::seeds;
use prony_model::ModelFile;
use prony_model::onnx::{ModelProto, TensorProto, dtype};
use prony_model::pt::Checkpoint;
use prony_source::arrays::ArrayFile;
use prony_types::{DType, TensorSpec};
use prost::Message as _;

#[global_allocator]
static MEMORY: Counting = Counting;

const FOUR_GB: u64 = 4 << 30;
/// More than any reader needs for a file of a few kilobytes.
const SMALL: usize = 1 << 20;

/// What a reader says of it, and that it did not ask for much.
#[track_caller]
fn cheaply<T>(read: impl FnOnce() -> T) -> T {
    memory::begin();
    let read = read();
    assert!(memory::peak() < SMALL, "{} bytes were held", memory::peak());
    read
}

/// The first place of a text in bytes, with another text of the same length put there.
#[track_caller]
fn replaced(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|part| part == from).unwrap();
    bytes.splice(at..at + from.len(), to.iter().copied());
    bytes
}

#[test]
fn an_onnx_weight() {
    let mut model = ModelProto::decode(&seeds(Reader::Onnx)[0][..]).unwrap();
    let graph = model.graph.as_mut().unwrap();
    let claim = TensorProto {
        name: "huge".into(),
        dims: vec![FOUR_GB as i64 / 4],
        data_type: dtype::FLOAT,
        ..TensorProto::default()
    };
    graph.initializer.push(claim.clone());
    let bytes: prost::bytes::Bytes = model.encode_to_vec().into();
    assert!(bytes.len() < 2048);
    cheaply(|| {
        // What it is is told, and nothing is there of its elements.
        let file = ModelFile::from_bytes("m", bytes.clone()).unwrap();
        assert!(file.info.parameters > FOUR_GB / 4);
        assert_eq!((claim.to_f32s(), claim.count()), (None, Some(FOUR_GB as usize / 4)));
    });
    // The length of a field: raw data of four gigabytes that are not there.
    let mut cut = bytes.to_vec();
    cut.extend([7 << 3 | 2, 0x80, 0x80, 0x80, 0x80, 0x10]);
    let error = cheaply(|| ModelFile::from_bytes("m", cut.into()).unwrap_err().to_string());
    assert!(error.contains("is not an ONNX model"), "{error}");
}

#[test]
fn an_array_and_one_in_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let input = TensorSpec { name: "a".into(), dtype: DType::F32, shape: vec![FOUR_GB as usize / 4, 1] };
    let shape: &[u8] = b"(1073741824, 1), }";
    let npy = replaced(seeds(Reader::Npy)[0].clone(), b"(2, 2,), }            ", &[shape, b"    "].concat());
    let path = folder.path().join("a.npy");
    std::fs::write(&path, &npy).unwrap();
    let refused = |path: &std::path::Path| {
        cheaply(|| ArrayFile::open(path).and_then(|file| file.read("a", &input)).unwrap_err().to_string())
    };
    let error = refused(&path);
    assert!(error.contains("should be 4294967296 bytes, but 16 follow"), "{error}");

    // Stored, with the size of the member as it is, and as the claim would have it.
    let npz = replaced(seeds(Reader::Npz)[1].clone(), b"(2, 2,), }            ", &[shape, b"    "].concat());
    let path = folder.path().join("a.npz");
    std::fs::write(&path, &npz).unwrap();
    let error = refused(&path);
    assert!(error.contains("should be 4294967296 bytes, but 16 follow"), "{error}");
    let mut lying = npz;
    let record = lying.windows(4).rposition(|part| part == b"PK\x01\x02").unwrap();
    lying[record + 24..record + 28].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    std::fs::write(&path, &lying).unwrap();
    let error = refused(&path);
    assert!(error.contains("cannot hold the 4294967280 bytes"), "{error}");
}

#[test]
fn a_storage_of_a_checkpoint() {
    let whole = seeds(Reader::Checkpoint)[3].clone();
    cheaply(|| Checkpoint::read(whole.clone().into()).unwrap());
    // The storage of 4 floats claims 2^30 of them; the number stands behind where it lies.
    let four: &[u8] = b"cpu\x8a\x08\x04\0\0\0\0\0\0\0";
    let claim: &[u8] = b"cpu\x8a\x08\0\0\0\x40\0\0\0\0";
    let error = cheaply(|| Checkpoint::read(replaced(whole, four, claim).into()).unwrap_err().to_string());
    assert!(error.contains("its storage claims 4294967296 bytes, and the file has 16 for it"), "{error}");
}
