//! The part of the ONNX schema that Prony reads and writes, declared for prost by its published field numbers.
//! Fields that are not declared here are skipped when reading.

use prost::Message;
use prost::bytes::Bytes;

/// The file.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// Version of the container format.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The tool that wrote it.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// The graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Operator sets by domain.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetId>,
    /// Free-form facts.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringEntry>,
}

/// Version of an operator set.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetId {
    /// Empty for the standard operators.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// The version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A key and its value.
#[derive(Clone, PartialEq, Message)]
pub struct StringEntry {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// Nodes in topological order, weights, inputs, outputs.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// The nodes.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// Name of the graph.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The weights.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// The inputs; older files list weights here too.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfo>,
    /// The outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfo>,
}

/// One operation.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// Names of its inputs; empty for one that is left out.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of its outputs.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Name of the node.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Its attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// Operator set; empty for the standard one.
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// A constant parameter of a node.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A float.
    #[prost(float, tag = "2")]
    pub f: f32,
    /// An integer.
    #[prost(int64, tag = "3")]
    pub i: i64,
    /// A string.
    #[prost(bytes = "bytes", tag = "4")]
    pub s: Bytes,
    /// A tensor.
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorProto>,
    /// A graph, for control flow.
    #[prost(message, optional, tag = "6")]
    pub g: Option<GraphProto>,
    /// Floats.
    #[prost(float, repeated, tag = "7")]
    pub floats: Vec<f32>,
    /// Integers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Which of the fields above is meant.
    #[prost(int32, tag = "20")]
    pub kind: i32,
}

/// A tensor with its elements.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// The shape.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// Element type, see [`dtype`].
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Elements as floats.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Elements as 64-bit integers.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// Name of the tensor.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Elements as little-endian bytes.
    #[prost(bytes = "bytes", tag = "9")]
    pub raw_data: Bytes,
}

/// Name and type of a value.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfo {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its type.
    #[prost(message, optional, tag = "2")]
    pub ty: Option<TypeProto>,
}

/// Type of a value; only tensors are declared.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// A tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor: Option<TensorType>,
}

/// Element type and shape.
#[derive(Clone, PartialEq, Message)]
pub struct TensorType {
    /// Element type, see [`dtype`].
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// The shape, where it is declared.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShape>,
}

/// A shape.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShape {
    /// Its axes.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<Dimension>,
}

/// One axis: a value or a name.
#[derive(Clone, PartialEq, Message)]
pub struct Dimension {
    /// The value or the name.
    #[prost(oneof = "dimension::Value", tags = "1, 2")]
    pub value: Option<dimension::Value>,
}

/// The choices of [`Dimension`].
pub mod dimension {
    /// A value or a name.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Value {
        /// Known when the file was written.
        #[prost(int64, tag = "1")]
        Fixed(i64),
        /// Chosen by the caller.
        #[prost(string, tag = "2")]
        Named(String),
    }
}

/// ONNX's numbers for element types.
pub mod dtype {
    use prony_types::DType;

    /// 32-bit float.
    pub const FLOAT: i32 = 1;
    /// 32-bit integer.
    pub const INT32: i32 = 6;
    /// 64-bit integer.
    pub const INT64: i32 = 7;
    /// 8-bit float of 4 bits exponent, as NVIDIA has it.
    pub const FLOAT8E4M3FN: i32 = 17;
    /// The same without a negative zero.
    pub const FLOAT8E4M3FNUZ: i32 = 18;
    /// 8-bit float of 5 bits exponent.
    pub const FLOAT8E5M2: i32 = 19;
    /// The same without a negative zero.
    pub const FLOAT8E5M2FNUZ: i32 = 20;
    /// 4-bit float.
    pub const FLOAT4E2M1: i32 = 23;

    /// The element type behind a number.
    pub fn from_number(n: i32) -> DType {
        match n {
            1 => DType::F32,
            2 => DType::U8,
            3 => DType::I8,
            6 => DType::I32,
            7 => DType::I64,
            9 => DType::Bool,
            10 => DType::F16,
            11 => DType::F64,
            16 => DType::Bf16,
            _ => DType::Other,
        }
    }
}

/// Small constructors, for graphs made by Prony.
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
            domain: String::new(),
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
            Dimension { value: Some(value) }
        };
        let shape = TensorShape { dim: dims.iter().map(dim).collect() };
        let tensor = TensorType { elem_type: dtype::FLOAT, shape: Some(shape) };
        ValueInfo { name: name.into(), ty: Some(TypeProto { tensor: Some(tensor) }) }
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
        }
    }
}
