//! The ONNX schema, declared for prost by its published field numbers. It is whole, so that a file that was read and is
//! written again loses nothing but zeros and empty texts, which are what a missing field means; what Prony never looks
//! into is kept as the bytes that it is.

mod element;
mod make;

pub use element::{Elements, dtype};

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
    /// Its version.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// Whose model it is.
    #[prost(string, tag = "4")]
    pub domain: String,
    /// Version of the model.
    #[prost(int64, tag = "5")]
    pub model_version: i64,
    /// Words on the model.
    #[prost(string, tag = "6")]
    pub doc_string: String,
    /// The graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Operator sets by domain.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetId>,
    /// Free-form facts.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringEntry>,
    /// How it may be trained; not looked into.
    #[prost(bytes = "bytes", repeated, tag = "20")]
    pub training_info: Vec<Bytes>,
    /// Operators that are graphs themselves; not looked into.
    #[prost(bytes = "bytes", repeated, tag = "25")]
    pub functions: Vec<Bytes>,
    /// Several devices; not looked into.
    #[prost(bytes = "bytes", repeated, tag = "26")]
    pub configuration: Vec<Bytes>,
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
    /// Words on the graph.
    #[prost(string, tag = "10")]
    pub doc_string: String,
    /// The inputs; older files list weights here too.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfo>,
    /// The outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfo>,
    /// Types of values in between, where the exporter wrote them.
    #[prost(message, repeated, tag = "13")]
    pub value_info: Vec<ValueInfo>,
    /// Scales of tensors; not looked into.
    #[prost(bytes = "bytes", repeated, tag = "14")]
    pub quantization_annotation: Vec<Bytes>,
    /// Sparse weights; not looked into.
    #[prost(bytes = "bytes", repeated, tag = "15")]
    pub sparse_initializer: Vec<Bytes>,
    /// Free-form facts.
    #[prost(message, repeated, tag = "16")]
    pub metadata_props: Vec<StringEntry>,
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
    /// Words on the node.
    #[prost(string, tag = "6")]
    pub doc_string: String,
    /// Operator set; empty for the standard one.
    #[prost(string, tag = "7")]
    pub domain: String,
    /// Which of several functions of one name.
    #[prost(string, tag = "8")]
    pub overload: String,
    /// Free-form facts.
    #[prost(message, repeated, tag = "9")]
    pub metadata_props: Vec<StringEntry>,
    /// Where it runs; not looked into.
    #[prost(bytes = "bytes", repeated, tag = "10")]
    pub device_configurations: Vec<Bytes>,
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
    /// Strings.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
    /// Tensors.
    #[prost(message, repeated, tag = "10")]
    pub tensors: Vec<TensorProto>,
    /// Graphs.
    #[prost(message, repeated, tag = "11")]
    pub graphs: Vec<GraphProto>,
    /// Words on the attribute.
    #[prost(string, tag = "13")]
    pub doc_string: String,
    /// A type; not looked into.
    #[prost(bytes = "bytes", optional, tag = "14")]
    pub tp: Option<Bytes>,
    /// Types; not looked into.
    #[prost(bytes = "bytes", repeated, tag = "15")]
    pub type_protos: Vec<Bytes>,
    /// Which of the fields above is meant.
    #[prost(int32, tag = "20")]
    pub kind: i32,
    /// The attribute of a function that it stands for.
    #[prost(string, tag = "21")]
    pub ref_attr_name: String,
    /// A sparse tensor; not looked into.
    #[prost(bytes = "bytes", optional, tag = "22")]
    pub sparse_tensor: Option<Bytes>,
    /// Sparse tensors; not looked into.
    #[prost(bytes = "bytes", repeated, tag = "23")]
    pub sparse_tensors: Vec<Bytes>,
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
    /// A part of a larger tensor; not looked into.
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub segment: Option<Bytes>,
    /// Elements as floats.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Elements of up to 32 bits, each as a whole number: the bits of 16-bit floats too.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// Elements as strings.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub string_data: Vec<Bytes>,
    /// Elements as 64-bit integers.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// Name of the tensor.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Elements as little-endian bytes.
    #[prost(bytes = "bytes", tag = "9")]
    pub raw_data: Bytes,
    /// Elements as doubles.
    #[prost(double, repeated, tag = "10")]
    pub double_data: Vec<f64>,
    /// Elements as unsigned 64-bit integers.
    #[prost(uint64, repeated, tag = "11")]
    pub uint64_data: Vec<u64>,
    /// Words on the tensor.
    #[prost(string, tag = "12")]
    pub doc_string: String,
    /// Which file holds the elements, and where in it.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringEntry>,
    /// 1 where they are in a file of their own.
    #[prost(int32, tag = "14")]
    pub data_location: i32,
    /// Free-form facts.
    #[prost(message, repeated, tag = "16")]
    pub metadata_props: Vec<StringEntry>,
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
    /// Words on the value.
    #[prost(string, tag = "3")]
    pub doc_string: String,
    /// Free-form facts.
    #[prost(message, repeated, tag = "4")]
    pub metadata_props: Vec<StringEntry>,
}

/// Type of a value: a tensor, or something that is not looked into.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// A tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor: Option<TensorType>,
    /// A sequence.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub sequence: Option<Bytes>,
    /// A map.
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub map: Option<Bytes>,
    /// What it stands for.
    #[prost(string, tag = "6")]
    pub denotation: String,
    /// Something of an operator set of its own.
    #[prost(bytes = "bytes", optional, tag = "7")]
    pub opaque: Option<Bytes>,
    /// A sparse tensor.
    #[prost(bytes = "bytes", optional, tag = "8")]
    pub sparse: Option<Bytes>,
    /// Something that may be missing.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub optional: Option<Bytes>,
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
    /// What it stands for.
    #[prost(string, tag = "3")]
    pub denotation: String,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_looked_into_is_kept() {
        // A function, a sparse weight, a sequence as input, an attribute that names another: each by its number alone.
        let function = [25 << 3 | 2 | 0x80, 1, 2, 8, 1];
        let sparse = [15 << 3 | 2, 2, 8, 2];
        let input = [11 << 3 | 2, 6, 2 << 3 | 2, 4, 4 << 3 | 2, 2, 8, 3];
        let node = [1 << 3 | 2, 8, 5 << 3 | 2, 6, 21 << 3 | 2 | 0x80, 1, 3, b'a', b'b', b'c'];
        let graph = [&node[..], &input, &sparse].concat();
        let file = [&[7 << 3 | 2, graph.len() as u8][..], &graph, &function].concat();
        assert_eq!(ModelProto::decode(&file[..]).unwrap().encode_to_vec(), file);
    }
}
