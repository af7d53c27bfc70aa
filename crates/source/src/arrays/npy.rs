//! numpy's array files: a short header in Python's spelling, then the values. The header may claim anything, so nothing
//! is allocated on its word.

use std::io::Read;

/// More than any header that numpy writes for an array of numbers.
const MAX_HEADER: usize = 64 << 10;
const MAGIC: &[u8] = b"\x93NUMPY";

/// Element types that a tensor can be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
}

impl Element {
    /// From numpy's letter and number of bytes.
    fn parse(code: &str) -> Option<Element> {
        Some(match code {
            "f2" => Element::F16,
            "f4" => Element::F32,
            "f8" => Element::F64,
            "i1" => Element::I8,
            "i2" => Element::I16,
            "i4" => Element::I32,
            "i8" => Element::I64,
            "u1" => Element::U8,
            "u2" => Element::U16,
            "u4" => Element::U32,
            "u8" => Element::U64,
            "b1" => Element::Bool,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Element::F16 => "f16",
            Element::F32 => "f32",
            Element::F64 => "f64",
            Element::I8 => "i8",
            Element::I16 => "i16",
            Element::I32 => "i32",
            Element::I64 => "i64",
            Element::U8 => "u8",
            Element::U16 => "u16",
            Element::U32 => "u32",
            Element::U64 => "u64",
            Element::Bool => "bool",
        }
    }

    pub(crate) fn bytes(self) -> usize {
        match self {
            Element::I8 | Element::U8 | Element::Bool => 1,
            Element::F16 | Element::I16 | Element::U16 => 2,
            Element::F32 | Element::I32 | Element::U32 => 4,
            Element::F64 | Element::I64 | Element::U64 => 8,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::F32 | Element::F64)
    }
}

/// What a file says about its array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) element: Element,
    pub(crate) big_endian: bool,
    /// The first axis runs fastest, instead of the last.
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<usize>,
    /// Where the values begin.
    pub(crate) begin: usize,
}

impl Header {
    /// Reads up to the first value.
    pub(crate) fn read(mut from: impl Read) -> Result<Header, String> {
        let cut = |_| "it ends within the header of an .npy file".to_owned();
        let mut start = [0; 10];
        from.read_exact(&mut start).map_err(|_| "it is no .npy file".to_owned())?;
        if &start[..6] != MAGIC {
            return Err("it is no .npy file".into());
        }
        let low = usize::from(u16::from_le_bytes([start[8], start[9]]));
        let (begin, length) = match start[6] {
            1 => (10, low),
            2 | 3 => {
                let mut high = [0; 2];
                from.read_exact(&mut high).map_err(cut)?;
                (12, low | usize::from(u16::from_le_bytes(high)) << 16)
            }
            version => return Err(format!("version {version} of the .npy format is not known")),
        };
        if length > MAX_HEADER {
            return Err(format!("its header claims {length} bytes, which no array of numbers needs"));
        }
        let mut text = vec![0; length];
        from.read_exact(&mut text).map_err(cut)?;
        let text = String::from_utf8(text).map_err(|_| "its header is no text".to_owned())?;
        Header::parse(&text, begin + length)
    }

    fn parse(text: &str, begin: usize) -> Result<Header, String> {
        let field = |key: &str| value_of(text, key).ok_or_else(|| format!("its header has no `{key}`"));
        let descr = field("descr")?;
        let quoted = descr.strip_prefix(['\'', '"']).and_then(|rest| rest.split_once(['\'', '"']));
        let Some((descr, _)) = quoted else { return Err("it is a structured array, not one of numbers".into()) };
        let (order, code) = descr.split_at_checked(1).unwrap_or(("", descr));
        let element = Element::parse(code).filter(|_| "<>|=".contains(order));
        let element = element.ok_or_else(|| format!("values of type `{descr}` cannot be fed to a model"))?;
        let fortran = match field("fortran_order")? {
            value if value.starts_with("True") => true,
            value if value.starts_with("False") => false,
            _ => return Err("its header does not say in which order the values are".into()),
        };
        let shape = field("shape")?.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(inside, _)| inside);
        let axes = shape.unwrap_or_default().split(',').map(str::trim).filter(|axis| !axis.is_empty());
        let shape: Option<Vec<usize>> = axes.map(|axis| axis.parse().ok()).collect();
        let shape = shape.ok_or("its header has a shape that cannot be read")?;
        Ok(Header { element, big_endian: order == ">", fortran, shape, begin })
    }

    /// Number of values, where that is a number at all.
    pub(crate) fn len(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis))
    }

    /// Holds the size that the header claims against the size that is there.
    pub(crate) fn check_size(&self, there: u64) -> Result<(), String> {
        let claimed = self.len().and_then(|n| n.checked_mul(self.element.bytes())).map(|n| n as u64);
        let there = there.saturating_sub(self.begin as u64);
        match claimed {
            Some(claimed) if claimed == there => Ok(()),
            Some(claimed) => Err(format!(
                "{} should be {claimed} bytes, but {there} follow the header; {}",
                self.describe(),
                if there < claimed { "it was cut short" } else { "it holds more than the array" }
            )),
            None => Err(format!("{} is larger than any memory", self.describe())),
        }
    }

    /// As `f32[1,3,640,640]`.
    pub(crate) fn describe(&self) -> String {
        super::describe(self.element.name(), &self.shape)
    }
}

/// What follows a key of the header, without the space before it.
fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = ['\'', '"'].iter().find_map(|quote| text.split_once(&format!("{quote}{key}{quote}")))?.1;
    rest.trim_start().strip_prefix(':').map(str::trim_start)
}

/// A header for little-endian values in C order.
pub(crate) fn header(code: &str, shape: &[usize]) -> Vec<u8> {
    let shape: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let mut text = format!("{{'descr': '<{code}', 'fortran_order': False, 'shape': ({}), }}", shape.trim_end());
    // numpy aligns the values to 64 bytes and ends the header with a line feed.
    text.push_str(&" ".repeat(63 - (10 + text.len()) % 64));
    text.push('\n');
    let mut bytes = [MAGIC, &[1, 0]].concat();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes
    }

    #[test]
    fn a_header_that_was_written_is_read() {
        for shape in [&[][..], &[7], &[1, 3, 640, 480]] {
            let bytes = header("f4", shape);
            assert_eq!(bytes.len() % 64, 0);
            let read = Header::read(&bytes[..]).unwrap();
            let expected = Header {
                element: Element::F32,
                big_endian: false,
                fortran: false,
                shape: shape.into(),
                begin: bytes.len(),
            };
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn what_numpy_writes_is_understood() {
        let read = Header::read(&file("{'descr': '>i8', 'fortran_order': True, 'shape': (2, 3), }  \n")[..]).unwrap();
        assert_eq!((read.element, read.big_endian, read.fortran, read.shape), (Element::I64, true, true, vec![2, 3]));
        let read = Header::read(&file("{'descr': '|b1', 'fortran_order': False, 'shape': (5,), }\n")[..]).unwrap();
        assert_eq!((read.element, read.shape), (Element::Bool, vec![5]));
    }

    #[test]
    fn wild_headers_are_errors() {
        let refused = |bytes: &[u8], why: &str| {
            let error = Header::read(bytes).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused(b"", "no .npy file");
        refused(b"PK\x03\x04 something else", "no .npy file");
        refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "4294967295 bytes");
        refused(b"\x93NUMPY\x01\x00\x40\x00{'descr'", "ends within the header");
        refused(b"\x93NUMPY\x09\x00\x01\x00 ", "version 9");
        refused(&file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"), "structured");
        refused(&file("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"), "`|O`");
        refused(&file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "shape");
        refused(&file("{'descr': '<f4', 'shape': (1,), }"), "fortran_order");
    }

    #[test]
    fn sizes_are_held_against_the_file() {
        let big = Header::read(&header("f4", &[1 << 30])[..]).unwrap();
        assert!(big.check_size(1024).unwrap_err().contains("cut short"));
        let absurd = Header::read(&header("f4", &[usize::MAX, 2])[..]).unwrap();
        assert!(absurd.check_size(1024).unwrap_err().contains("larger than any memory"));
        let whole = Header::read(&header("f4", &[2])[..]).unwrap();
        assert!(whole.check_size(whole.begin as u64 + 8).is_ok());
        assert!(whole.check_size(whole.begin as u64 + 9).unwrap_err().contains("more than the array"));
    }
}
