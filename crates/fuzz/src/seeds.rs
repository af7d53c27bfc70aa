//! What damage starts from: small whole files of every kind, made by Prony's own writers.

mod documents;

use std::io::Read as _;

use prony_model::onnx::{
    AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TensorShape, ValueInfo, dtype,
};
use prony_source::arrays::{npy_bytes, npz_bytes};
use prony_types::{SceneKind, TensorData, TensorView};
use prost::Message as _;
use zip::{CompressionMethod, ZipArchive};

use crate::reader::Reader;
use crate::writer::{Writer, container, detector};

/// Nodes and elements of a built-in detector that are left.
const NODES: usize = 40;

/// Whole files for a reader.
pub fn seeds(reader: Reader) -> Vec<Vec<u8>> {
    match reader {
        Reader::Pickle => pickles(),
        Reader::Zip | Reader::Checkpoint => checkpoints(),
        Reader::Onnx => graphs(),
        Reader::Npy => arrays().iter().map(npy_bytes).collect(),
        Reader::Record => documents::records(),
        Reader::Events => documents::events(),
        Reader::Samples => documents::samples(),
        Reader::Plan => documents::plans(),
        Reader::DataYaml => documents::data_yamls(),
        Reader::Coco => documents::cocos(),
        Reader::Sidecar => documents::sidecars(),
        Reader::Wheel => documents::whole_wheels(),
        Reader::Npz => vec![npz_bytes(&arrays()).unwrap_or_default(), npz_bytes(&arrays()[..1]).unwrap_or_default()],
    }
}

fn checkpoints() -> Vec<Vec<u8>> {
    let ours = ("ultralytics.nn.tasks", "DetectionModel");
    let weights = Writer::new().dict(&[
        ("a", &|writer| writer.tensor("FloatStorage", "0", 4, 0, &[2, 2], &[2, 1])),
        ("b", &|writer| writer.tensor("LongStorage", "1", 2, 1, &[1], &[1])),
    ]);
    let storages: [(&str, &[u8]); 2] = [("0", &[0; 16]), ("1", &[1; 16])];
    vec![
        detector("model", ours, "Detect"),
        detector("ema", ours, "v10Detect"),
        container(&weights.clone().end(), &storages, CompressionMethod::Deflated),
        container(&weights.end(), &storages, CompressionMethod::Stored),
    ]
}

fn pickles() -> Vec<Vec<u8>> {
    let inside = |container: Vec<u8>| {
        let mut pickle = Vec::new();
        let mut archive = ZipArchive::new(std::io::Cursor::new(container)).ok()?;
        archive.by_name("best/data.pkl").ok()?.read_to_end(&mut pickle).ok()?;
        Some(pickle)
    };
    let mut pickles: Vec<Vec<u8>> = checkpoints().into_iter().filter_map(inside).collect();
    let newer = b"\x80\x04\x95\x10\0\0\0\0\0\0\0\x8f(K\x01K\x02\x90\x94(\x8c\x01aK\x01d\x8c\x05torch\x8c\x04Size\x93(K\x01t\x85R\x87.";
    pickles.push(newer.to_vec());
    pickles
}

fn graphs() -> Vec<Vec<u8>> {
    vec![quantised().encode_to_vec(), nested().encode_to_vec(), cut(SceneKind::Rgb)]
}

/// The beginning of a detector, with its weights emptied.
fn cut(kind: SceneKind) -> Vec<u8> {
    let mut model = ModelProto::decode(prony_model::builtin(kind)).unwrap_or_default();
    let graph = model.graph.get_or_insert_default();
    graph.node.truncate(NODES);
    graph.initializer.truncate(NODES / 4);
    for tensor in &mut graph.initializer {
        tensor.dims = vec![8, 8];
        tensor.raw_data = vec![0; 256].into();
    }
    model.encode_to_vec()
}

fn quantised() -> ModelProto {
    let byte =
        TensorProto { name: "zero".into(), data_type: dtype::INT8, raw_data: vec![0].into(), ..TensorProto::default() };
    let graph = GraphProto {
        node: vec![
            NodeProto::new("QuantizeLinear", &["x", "scale", "zero"], &["q"], vec![]),
            NodeProto::new("DequantizeLinear", &["q", "scale", "zero"], &["d"], vec![]),
            NodeProto::new("MatMul", &["d", "w"], &["m"], vec![]),
            NodeProto::new("TopK", &["m", "k"], &["y", "i"], vec![AttributeProto::ints("axes", &[1])]),
        ],
        initializer: vec![
            TensorProto::floats("scale", &[], &[0.5]),
            byte,
            TensorProto::floats("w", &[8, 8], &[0.5; 64]),
            TensorProto::ints("k", &[3]),
            TensorProto { float_data: vec![1.0, 2.0], ..TensorProto::floats("loose", &[2], &[]) },
        ],
        input: vec![ValueInfo::floats("x", &[-1, 8])],
        output: vec![ValueInfo::floats("y", &[-1, 3])],
        value_info: vec![ValueInfo::floats("d", &[1, 8])],
        ..GraphProto::default()
    };
    ModelProto::new(graph, &[("names", "{0: 'a', 1: 'b'}"), ("imgsz", "[640, 640]"), ("stride", "32")])
}

/// Graphs within a graph, and constants among the nodes.
fn nested() -> ModelProto {
    let value = AttributeProto { t: Some(TensorProto::floats("", &[1], &[2.0])), ..AttributeProto::int("value", 0) };
    let leaf = GraphProto {
        node: vec![NodeProto::new("Constant", &[], &["c"], vec![value])],
        output: vec![ValueInfo::floats("c", &[1])],
        ..GraphProto::default()
    };
    let branch = |name: &str| AttributeProto { name: name.into(), g: Some(leaf.clone()), ..AttributeProto::default() };
    let graph = GraphProto {
        node: vec![
            NodeProto::new("If", &["x"], &["i"], vec![branch("then_branch"), branch("else_branch")]),
            NodeProto::new("Conv", &["i", "w"], &["y"], vec![]),
        ],
        initializer: vec![TensorProto::floats("w", &[8, 8, 1, 1], &[0.5; 64])],
        input: vec![ValueInfo::floats("x", &[1])],
        output: vec![ValueInfo { ty: None, ..ValueInfo::floats("y", &[]) }, shapeless()],
        ..GraphProto::default()
    };
    ModelProto::new(graph, &[("names", "['a', \"b's\"]")])
}

fn shapeless() -> ValueInfo {
    let mut value = ValueInfo::floats("i", &[]);
    if let Some(tensor) = value.ty.as_mut().and_then(|ty| ty.tensor.as_mut()) {
        tensor.shape = Some(TensorShape::default());
    }
    value
}

fn arrays() -> [TensorView<'static>; 3] {
    [
        TensorView { name: "a", shape: &[2, 2], data: TensorData::F32(&[1.0, -2.5, 0.0, f32::NAN]) },
        TensorView { name: "ids", shape: &[3], data: TensorData::I64(&[1, -2, 1 << 40]) },
        TensorView { name: "one", shape: &[], data: TensorData::I32(&[7]) },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::Traces;

    #[test]
    fn every_seed_is_a_whole_file() {
        for reader in Reader::ALL {
            let seeds = seeds(reader);
            assert!(seeds.len() > 1);
            for seed in seeds {
                assert!(seed.len() < crate::mutate::LARGEST, "{}: {} bytes", reader.name(), seed.len());
                let mut traces = Traces::default();
                reader.read(&seed, &mut traces);
                // An error leaves one mark, or two; what is read leaves more.
                assert!(traces.marks().len() > 2, "{}: {:?}", reader.name(), traces);
            }
        }
    }
}
