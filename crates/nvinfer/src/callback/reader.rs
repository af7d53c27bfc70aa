//! The stream reader: an engine that is read piece by piece instead of lying in memory. 10.x.
//!
//! 11.x knows only the second version of the interface, which may ask for bytes straight into device memory; this crate
//! has no CUDA to do that with.

use std::ffi::c_void;
use std::fmt;
use std::sync::Mutex;

use super::{ABSENT, Face, Object, Table, body, guarded, lock, versioned};
use crate::Family;

/// Where an engine's bytes come from.
pub trait EngineReader: Send {
    /// Fills from the front and says how many bytes; 0 at the end, negative when it failed.
    fn read(&mut self, into: &mut [u8]) -> i64;
}

struct Body(Mutex<Box<dyn EngineReader>>);

/// What TensorRT reads an engine from.
pub struct StreamReader(Object<Body>);

pub(super) static TABLE: Table<7> = versioned![c"IStreamReader"; "read" => read];

impl StreamReader {
    /// A stream of what this reads.
    pub fn new(from: Box<dyn EngineReader>) -> StreamReader {
        StreamReader(Object::new(Body(Mutex::new(from)), [ABSENT, TABLE.slots(), ABSENT]))
    }

    /// What a library of this family is given; null where it is not 10.x.
    pub(crate) fn object(&self, family: Family) -> *mut c_void {
        self.0.address(family)
    }
}

impl fmt::Debug for StreamReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamReader")
    }
}

extern "C" fn read(this: *const Face<Body>, into: *mut c_void, bytes: i64) -> i64 {
    guarded(-1, || {
        let Ok(bytes) = usize::try_from(bytes) else {
            return -1;
        };
        if bytes == 0 {
            return 0;
        }
        if into.is_null() {
            return -1;
        }
        // SAFETY: TensorRT hands over so many bytes of host memory to write to. They are zeroed first, as it promises
        // nothing about what is in them.
        let into = unsafe {
            into.cast::<u8>().write_bytes(0, bytes);
            std::slice::from_raw_parts_mut(into.cast::<u8>(), bytes)
        };
        // SAFETY: called through a table of ours; the reader outlives the call that it was given to.
        lock(unsafe { &body(this).0 }).read(into)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback::calls::{destructors, information, slot};

    /// Ten bytes, at most four at a time, and a panic after the end.
    struct Ten(u8);

    impl EngineReader for Ten {
        fn read(&mut self, into: &mut [u8]) -> i64 {
            assert!(self.0 < 11, "past the end");
            let mut count = 0;
            for byte in into.iter_mut().take(4) {
                if self.0 == 10 {
                    break;
                }
                *byte = self.0;
                self.0 += 1;
                count += 1;
            }
            if count == 0 {
                self.0 = 11;
            }
            count
        }
    }

    #[test]
    fn bytes_come_in_pieces_up_to_the_end() {
        let reader = StreamReader::new(Box::new(Ten(0)));
        let object = reader.object(Family::V10);
        // SAFETY: slot 4 of `IStreamReader`.
        let read: unsafe extern "C" fn(*mut c_void, *mut c_void, i64) -> i64 = unsafe { slot(object, 4) };
        let mut all = Vec::new();
        let mut sizes = Vec::new();
        let mut piece = [0xffu8; 6];
        for ask in [6, 3, 6, 6, 6] {
            // SAFETY: an object and a method of ours; the piece has six bytes.
            let got = unsafe { read(object, piece.as_mut_ptr().cast(), ask) };
            sizes.push(got);
            all.extend_from_slice(&piece[..usize::try_from(got).unwrap_or(0)]);
        }
        assert_eq!(sizes, [4, 3, 3, 0, -1], "the last is a panic");
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // SAFETY: as above; nothing is written.
        let odd = unsafe { [read(object, std::ptr::null_mut(), 8), read(object, piece.as_mut_ptr().cast(), -3)] };
        assert_eq!(odd, [-1, -1]);
        assert_eq!(information(object), (0, "IStreamReader".to_owned(), 1, 0));
        destructors(object, 2);
        assert!(reader.object(Family::V8).is_null() && reader.object(Family::V11).is_null());
    }
}
