//! Element types: their numbers, those of every tensor of a graph, and the elements themselves.

use std::collections::HashMap;

use half::{bf16, f16};

use super::{GraphProto, NodeProto, TensorProto};

/// ONNX's numbers for element types.
pub mod dtype {
    use prony_types::DType;

    /// 32-bit float.
    pub const FLOAT: i32 = 1;
    /// Unsigned byte.
    pub const UINT8: i32 = 2;
    /// Byte.
    pub const INT8: i32 = 3;
    /// 32-bit integer.
    pub const INT32: i32 = 6;
    /// 64-bit integer.
    pub const INT64: i32 = 7;
    /// Truth value.
    pub const BOOL: i32 = 9;
    /// 16-bit float.
    pub const FLOAT16: i32 = 10;
    /// 64-bit float.
    pub const DOUBLE: i32 = 11;
    /// bfloat16.
    pub const BFLOAT16: i32 = 16;
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

/// Element type of the tensors of a graph, by name. What cannot be told is left out: an operator that is not known, say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elements(HashMap<String, i32>);

impl Elements {
    /// Those of inputs, weights and of every node's outputs, in one pass: nodes stand in topological order.
    pub fn of(graph: &GraphProto) -> Elements {
        let declared = graph.input.iter().chain(&graph.value_info).chain(&graph.output);
        let tensor = |value: &super::ValueInfo| {
            let tensor = value.ty.as_ref()?.tensor.as_ref()?;
            (tensor.elem_type != 0).then(|| (value.name.clone(), tensor.elem_type))
        };
        let mut types: HashMap<String, i32> = declared.filter_map(tensor).collect();
        types.extend(graph.initializer.iter().map(|tensor| (tensor.name.clone(), tensor.data_type)));
        for node in &graph.node {
            for (at, output) in node.output.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
                if let Some(number) = given(node, at, &types) {
                    types.entry(output.clone()).or_insert(number);
                }
            }
        }
        Elements(types)
    }

    /// The type of a tensor, as a number of [`dtype`].
    pub fn get(&self, tensor: &str) -> Option<i32> {
        self.0.get(tensor).copied()
    }
}

/// The type of a node's nth output.
fn given(node: &NodeProto, at: usize, types: &HashMap<String, i32>) -> Option<i32> {
    let input = |at: usize| node.input.get(at).and_then(|name| types.get(name.as_str())).copied();
    let attribute = |name: &str| node.attribute.iter().find(|attribute| attribute.name == name);
    let number = |name: &str| attribute(name).and_then(|attribute| i32::try_from(attribute.i).ok());
    match node.op_type.as_str() {
        "Cast" => number("to"),
        "Constant" | "ConstantOfShape" => match node.attribute.first() {
            Some(value) if value.t.is_some() => value.t.as_ref().map(|tensor| tensor.data_type),
            Some(value) if value.name.starts_with("value_int") => Some(dtype::INT64),
            Some(_) => Some(dtype::FLOAT),
            None => (node.op_type == "ConstantOfShape").then_some(dtype::FLOAT),
        },
        "Shape" | "Size" | "ArgMax" | "ArgMin" | "NonZero" | "NonMaxSuppression" => Some(dtype::INT64),
        "TopK" | "MaxPool" | "Unique" if at > 0 => Some(dtype::INT64),
        "Dropout" if at > 0 => Some(dtype::BOOL),
        "CastLike" => input(1),
        "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" | "And" | "Or" | "Xor" | "Not" | "IsNaN"
        | "IsInf" => Some(dtype::BOOL),
        "QuantizeLinear" => number("output_dtype").filter(|&n| n != 0).or_else(|| input(2)).or(Some(dtype::UINT8)),
        "DequantizeLinear" => input(1),
        "DynamicQuantizeLinear" if at != 1 => Some(dtype::UINT8),
        "DynamicQuantizeLinear" => Some(dtype::FLOAT),
        "ConvInteger" | "MatMulInteger" => Some(dtype::INT32),
        "RandomNormal" | "RandomUniform" | "EyeLike" | "Multinomial" | "Bernoulli" => number("dtype"),
        "Where" => input(1).or_else(|| input(2)),
        "OneHot" => input(2),
        "If" | "Loop" | "Scan" => None,
        _ if node.domain.is_empty() || node.domain == "ai.onnx" => input(0).or_else(|| input(1)),
        _ => None,
    }
}

impl TensorProto {
    /// How many elements its shape asks for; `None` where that is no number.
    pub fn count(&self) -> Option<usize> {
        self.dims.iter().try_fold(1usize, |n, &dim| n.checked_mul(usize::try_from(dim).ok()?))
    }

    /// Whether its elements are in a file of their own.
    pub fn is_external(&self) -> bool {
        self.data_location == 1
    }

    /// Its elements as floats, whatever floats they are stored as. `None` where they are no floats, are not in this file, or
    /// are not as many as the shape asks for; nothing is allocated beyond what is there.
    pub fn to_f32s(&self) -> Option<Vec<f32>> {
        let raw = &self.raw_data;
        let narrow = |bits: &i32| u16::try_from(*bits).ok();
        let elements: Vec<f32> = match self.data_type {
            _ if self.is_external() => return None,
            dtype::FLOAT if raw.is_empty() => self.float_data.clone(),
            dtype::FLOAT => chunks(raw).map(f32::from_le_bytes).collect(),
            dtype::DOUBLE if raw.is_empty() => self.double_data.iter().map(|&x| x as f32).collect(),
            dtype::DOUBLE => chunks(raw).map(|bytes| f64::from_le_bytes(bytes) as f32).collect(),
            dtype::FLOAT16 if raw.is_empty() => self
                .int32_data
                .iter()
                .map(|bits| Some(f16::from_bits(narrow(bits)?).to_f32()))
                .collect::<Option<_>>()?,
            dtype::FLOAT16 => chunks(raw).map(|bytes| f16::from_le_bytes(bytes).to_f32()).collect(),
            dtype::BFLOAT16 if raw.is_empty() => self
                .int32_data
                .iter()
                .map(|bits| Some(bf16::from_bits(narrow(bits)?).to_f32()))
                .collect::<Option<_>>()?,
            dtype::BFLOAT16 => chunks(raw).map(|bytes| bf16::from_le_bytes(bytes).to_f32()).collect(),
            _ => return None,
        };
        (Some(elements.len()) == self.count()).then_some(elements)
    }

    /// Its elements as whole numbers, where they are of 32 or 64 bits.
    pub fn to_i64s(&self) -> Option<Vec<i64>> {
        let raw = &self.raw_data;
        let elements: Vec<i64> = match self.data_type {
            _ if self.is_external() => return None,
            dtype::INT64 if raw.is_empty() => self.int64_data.clone(),
            dtype::INT64 => chunks(raw).map(i64::from_le_bytes).collect(),
            dtype::INT32 if raw.is_empty() => self.int32_data.iter().map(|&x| x.into()).collect(),
            dtype::INT32 => chunks(raw).map(|bytes| i32::from_le_bytes(bytes).into()).collect(),
            _ => return None,
        };
        (Some(elements.len()) == self.count()).then_some(elements)
    }
}

/// Whole groups of bytes.
fn chunks<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::super::{AttributeProto, ValueInfo};
    use super::*;

    #[test]
    fn types_follow_the_operators() {
        let node = |op: &str, input: &[&str], output: &[&str], attribute| NodeProto::new(op, input, output, attribute);
        let graph = GraphProto {
            input: vec![ValueInfo::floats("x", &[1, 4])],
            initializer: vec![TensorProto::ints("two", &[2])],
            node: vec![
                node("Relu", &["x"], &["r"], vec![]),
                node("TopK", &["r", "two"], &["best", "where"], vec![]),
                node("Cast", &["where"], &["half"], vec![AttributeProto::int("to", dtype::FLOAT16.into())]),
                node("Greater", &["best", "x"], &["more"], vec![]),
                node("Where", &["more", "best", "x"], &["y"], vec![]),
                node("Shape", &["y"], &["shape"], vec![]),
                NodeProto { domain: "mine".into(), ..node("Magic", &["x"], &["unknown"], vec![]) },
            ],
            ..GraphProto::default()
        };
        let types = Elements::of(&graph);
        let number = |name: &str| types.get(name);
        assert_eq!([number("r"), number("best"), number("y")], [Some(dtype::FLOAT); 3]);
        assert_eq!([number("where"), number("shape"), number("two")], [Some(dtype::INT64); 3]);
        assert_eq!((number("half"), number("more")), (Some(dtype::FLOAT16), Some(dtype::BOOL)));
        assert_eq!(number("unknown"), None);
    }

    #[test]
    fn elements_are_read_from_wherever_they_are_stored() {
        let tensor = |data_type| TensorProto { dims: vec![2], data_type, ..TensorProto::default() };
        let expected = Some(vec![1.0, -2.0]);
        assert_eq!(TensorProto { float_data: vec![1.0, -2.0], ..tensor(dtype::FLOAT) }.to_f32s(), expected);
        assert_eq!(TensorProto { double_data: vec![1.0, -2.0], ..tensor(dtype::DOUBLE) }.to_f32s(), expected);
        let bits = |x: f32| i32::from(f16::from_f32(x).to_bits());
        assert_eq!(
            TensorProto { int32_data: vec![bits(1.0), bits(-2.0)], ..tensor(dtype::FLOAT16) }.to_f32s(),
            expected
        );
        let raw: Vec<u8> = [1.0, -2.0].iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes()).collect();
        assert_eq!(TensorProto { raw_data: raw.into(), ..tensor(dtype::BFLOAT16) }.to_f32s(), expected);
        assert_eq!(TensorProto { int32_data: vec![3, -4], ..tensor(dtype::INT32) }.to_i64s(), Some(vec![3, -4]));
    }

    #[test]
    fn a_shape_that_lies_gives_nothing() {
        let mut tensor = TensorProto::floats("x", &[2], &[1.0, 2.0]);
        tensor.dims = vec![1 << 40];
        assert_eq!(tensor.to_f32s(), None);
        tensor.dims = vec![i64::MAX, i64::MAX];
        assert_eq!((tensor.count(), tensor.to_f32s()), (None, None));
        tensor.dims = vec![-1];
        assert_eq!(tensor.to_f32s(), None);
    }
}
