//! Small constructors, for graphs made by Prony.

use super::{
    AttributeProto, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetId, StringEntry, TensorProto, TensorShape,
    TensorType, TypeProto, ValueInfo, dimension, dtype,
};

impl TensorProto {
    /// A tensor of floats.
    pub fn floats(name: &str, dims: &[i64], data: &[f32]) -> TensorProto {
        let raw: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        TensorProto {
            name: name.into(),
            dims: dims.into(),
            data_type: dtype::FLOAT,
            raw_data: raw.into(),
            ..TensorProto::default()
        }
    }

    /// A vector of 64-bit integers.
    pub fn ints(name: &str, data: &[i64]) -> TensorProto {
        let raw: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        TensorProto {
            name: name.into(),
            dims: vec![data.len() as i64],
            data_type: dtype::INT64,
            raw_data: raw.into(),
            ..TensorProto::default()
        }
    }
}

impl NodeProto {
    /// A node named after its first output.
    pub fn new(op_type: &str, input: &[&str], output: &[&str], attribute: Vec<AttributeProto>) -> NodeProto {
        NodeProto {
            input: input.iter().map(|&s| s.into()).collect(),
            output: output.iter().map(|&s| s.into()).collect(),
            name: output.first().copied().unwrap_or_default().into(),
            op_type: op_type.into(),
            attribute,
            ..NodeProto::default()
        }
    }
}

impl AttributeProto {
    /// An integer.
    pub fn int(name: &str, i: i64) -> AttributeProto {
        AttributeProto { name: name.into(), i, kind: 2, ..AttributeProto::default() }
    }

    /// Integers.
    pub fn ints(name: &str, ints: &[i64]) -> AttributeProto {
        AttributeProto { name: name.into(), ints: ints.into(), kind: 7, ..AttributeProto::default() }
    }
}

impl ValueInfo {
    /// A tensor of floats; a negative axis is named `batch`.
    pub fn floats(name: &str, dims: &[i64]) -> ValueInfo {
        let dim = |&n: &i64| {
            let value = if n < 0 { dimension::Value::Named("batch".into()) } else { dimension::Value::Fixed(n) };
            Dimension { value: Some(value), ..Dimension::default() }
        };
        let shape = TensorShape { dim: dims.iter().map(dim).collect() };
        let tensor = TensorType { elem_type: dtype::FLOAT, shape: Some(shape) };
        let ty = Some(TypeProto { tensor: Some(tensor), ..TypeProto::default() });
        ValueInfo { name: name.into(), ty, ..ValueInfo::default() }
    }
}

impl ModelProto {
    /// A file around a graph, with operator set 17 and the given facts.
    pub fn new(graph: GraphProto, metadata: &[(&str, &str)]) -> ModelProto {
        let entry = |&(key, value): &(&str, &str)| StringEntry { key: key.into(), value: value.into() };
        ModelProto {
            ir_version: 8,
            producer_name: "prony".into(),
            graph: Some(graph),
            opset_import: vec![OperatorSetId { domain: String::new(), version: 17 }],
            metadata_props: metadata.iter().map(entry).collect(),
            ..ModelProto::default()
        }
    }
}
