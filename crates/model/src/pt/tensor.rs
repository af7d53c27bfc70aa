//! Tensors: where their elements are in the container, checked against what is there before anything is read.

use std::fmt;

use half::{bf16, f16};
use prost::bytes::Bytes;

use super::pickle::{Id, Pickle, Value};
use super::{Archive, PtError, plain};

/// Dimensions that a tensor may have.
const RANK: usize = 16;

/// Types of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    /// 64-bit float.
    F64,
    /// 32-bit float.
    F32,
    /// 16-bit float.
    F16,
    /// bfloat16.
    Bf16,
    /// 64-bit integer.
    I64,
    /// 32-bit integer.
    I32,
    /// 16-bit integer.
    I16,
    /// Signed byte.
    I8,
    /// Unsigned byte.
    U8,
    /// Truth value.
    Bool,
}

impl Element {
    /// By the name of torch's storage class.
    fn of_storage(class: &str) -> Option<Element> {
        Some(match class {
            "DoubleStorage" => Element::F64,
            "FloatStorage" => Element::F32,
            "HalfStorage" => Element::F16,
            "BFloat16Storage" => Element::Bf16,
            "LongStorage" => Element::I64,
            "IntStorage" => Element::I32,
            "ShortStorage" => Element::I16,
            "CharStorage" => Element::I8,
            "ByteStorage" => Element::U8,
            "BoolStorage" => Element::Bool,
            _ => return None,
        })
    }

    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            Element::F64 | Element::I64 => 8,
            Element::F32 | Element::I32 => 4,
            Element::F16 | Element::Bf16 | Element::I16 => 2,
            Element::I8 | Element::U8 | Element::Bool => 1,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Element::F64 => "f64",
            Element::F32 => "f32",
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::I64 => "i64",
            Element::I32 => "i32",
            Element::I16 => "i16",
            Element::I8 => "i8",
            Element::U8 => "u8",
            Element::Bool => "bool",
        })
    }
}

/// A tensor of a checkpoint. It lies within its storage, and its storage within the container's member.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Type of its elements.
    pub element: Element,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Elements from one step along a dimension to the next.
    pub stride: Vec<usize>,
    /// Where it begins in its storage, in elements.
    pub offset: usize,
    /// Which storage; tensors may share one.
    pub storage: String,
}

impl Tensor {
    /// What a value says about a tensor; `None` where it is none. A parameter is the tensor that it wraps.
    pub(super) fn read(pickle: &Pickle, archive: &Archive, id: Id) -> Result<Option<Tensor>, String> {
        let parameter = ["_rebuild_parameter", "_rebuild_parameter_with_state"];
        let wrapped = parameter.iter().find_map(|name| pickle.call(id, "torch._utils", name)?.first().copied());
        match pickle.call(wrapped.unwrap_or(id), "torch._utils", "_rebuild_tensor_v2") {
            Some(args) => described(pickle, archive, args).map(Some),
            None if wrapped.is_some() => Err("the parameter wraps no plain tensor".to_owned()),
            None => Ok(None),
        }
    }

    /// How many elements it has.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Its elements in order, the last dimension fastest, as 32-bit floats.
    pub fn to_f32(&self, archive: &Archive) -> Result<Vec<f32>, PtError> {
        if self.elements() == 0 {
            return Ok(Vec::new());
        }
        let bytes = archive.member(&member(&self.storage))?;
        let place = |elements: usize| elements.checked_mul(self.element.bytes());
        let end = self.offset.checked_add(self.extent()).and_then(place);
        let (Some(start), Some(end)) = (place(self.offset), end.filter(|end| *end <= bytes.len())) else {
            let reason = "its storage is cut short".to_owned();
            return Err(PtError::Tensor { name: plain(&self.storage), reason });
        };
        let bytes = bytes.slice(start..end);
        Ok(match self.element {
            Element::F64 => self.gather(&bytes, |bytes| f64::from_le_bytes(bytes) as f32),
            Element::F32 => self.gather(&bytes, f32::from_le_bytes),
            Element::F16 => self.gather(&bytes, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Element::Bf16 => self.gather(&bytes, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            Element::I64 => self.gather(&bytes, |bytes| i64::from_le_bytes(bytes) as f32),
            Element::I32 => self.gather(&bytes, |bytes| i32::from_le_bytes(bytes) as f32),
            Element::I16 => self.gather(&bytes, |bytes| f32::from(i16::from_le_bytes(bytes))),
            Element::I8 => self.gather(&bytes, |bytes| f32::from(i8::from_le_bytes(bytes))),
            Element::U8 => self.gather(&bytes, |[byte]| f32::from(byte)),
            Element::Bool => self.gather(&bytes, |[byte]| f32::from(u8::from(byte != 0))),
        })
    }

    /// Elements of the storage from its first to its last, both included.
    fn extent(&self) -> usize {
        1 + self.shape.iter().zip(&self.stride).map(|(size, stride)| (size - 1) * stride).sum::<usize>()
    }

    fn contiguous(&self) -> bool {
        let mut step = 1;
        self.shape.iter().zip(&self.stride).rev().all(|(size, stride)| {
            let fits = *size == 1 || *stride == step;
            step *= size;
            fits
        })
    }

    fn gather<const N: usize>(&self, bytes: &Bytes, convert: impl Fn([u8; N]) -> f32) -> Vec<f32> {
        let source = bytes.as_chunks::<N>().0;
        if self.contiguous() {
            return source.iter().map(|element| convert(*element)).collect();
        }
        let mut index = vec![0; self.shape.len()];
        let mut at = 0;
        let mut elements = Vec::with_capacity(self.elements());
        for _ in 0..self.elements() {
            elements.push(convert(source[at]));
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                at += self.stride[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                at -= self.shape[axis] * self.stride[axis];
                index[axis] = 0;
            }
        }
        elements
    }
}

fn member(storage: &str) -> String {
    format!("data/{storage}")
}

/// Reads the arguments of a tensor: storage, offset, shape, stride.
fn described(pickle: &Pickle, archive: &Archive, args: &[Id]) -> Result<Tensor, String> {
    let [storage, offset, shape, stride, ..] = *args else { return Err("its description is not whole".to_owned()) };
    let (element, storage, held) = stored(pickle, storage)?;
    let sizes = |id: Id, what: &str| -> Result<Vec<usize>, String> {
        let numbers = pickle.elements(id).filter(|numbers| numbers.len() <= RANK);
        let numbers = numbers.and_then(|ids| ids.iter().map(|id| size(pickle, *id)).collect());
        numbers.ok_or_else(|| format!("its {what} is no short row of sizes"))
    };
    let (shape, stride) = (sizes(shape, "shape")?, sizes(stride, "stride")?);
    let offset = size(pickle, offset).ok_or("its offset is no size")?;
    if shape.len() != stride.len() {
        return Err(format!("it has {} dimensions and {} strides", shape.len(), stride.len()));
    }
    let present =
        archive.size(&member(&storage)).ok_or_else(|| format!("its storage {} is missing", plain(&storage)))?;
    let claimed = (held as u64).saturating_mul(element.bytes() as u64);
    if claimed > present {
        return Err(format!("its storage claims {claimed} bytes, and the file has {present} for it"));
    }
    let elements = shape.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
    let last = shape
        .iter()
        .zip(&stride)
        .try_fold(offset, |last, (size, stride)| last.checked_add(size.saturating_sub(1).checked_mul(*stride)?));
    let inside = match elements {
        Some(0) => true,
        // Elements that share a place are no weights, and a few of them would claim any amount of memory.
        Some(elements) => elements <= held && last.is_some_and(|last| last < held),
        None => false,
    };
    if !inside {
        return Err(format!(
            "its shape {shape:?} with strides {stride:?} from {offset} is more than the {held} elements of its storage"
        ));
    }
    Ok(Tensor { element, shape, stride, offset, storage })
}

fn size(pickle: &Pickle, id: Id) -> Option<usize> {
    usize::try_from(pickle.int(id)?).ok()
}

/// Type, name and number of elements of a storage.
fn stored(pickle: &Pickle, id: Id) -> Result<(Element, String, usize), String> {
    const NAME: usize = 64;
    let Value::Persistent(id) = pickle.get(id) else { return Err("it has no storage".to_owned()) };
    let Some([kind, class, key, _, count, ..]) = pickle.elements(*id) else {
        return Err("its storage is described in a way that is not known".to_owned());
    };
    if pickle.text(*kind) != Some("storage") {
        return Err("what it refers to is no storage".to_owned());
    }
    let (module, class) = pickle.global(*class).ok_or("its storage has no class")?;
    let known = Element::of_storage(class).filter(|_| module == "torch");
    let element =
        known.ok_or_else(|| format!("its storage {} is not supported", plain(&format!("{module}.{class}"))))?;
    let key = pickle.text(*key).filter(|key| key.len() <= NAME).ok_or("its storage has no short name")?;
    Ok((element, key.to_owned(), size(pickle, *count).ok_or("its storage has no size")?))
}
