//! The stack machine that a pickle is a program of. It builds descriptions only: no class is looked up, no function is
//! called. What it may use is limited, so that a small file cannot ask for much memory.

use std::collections::HashMap;

use super::PtError;
use super::pickle::{Id, Made, Pickle, Value};

/// Bytes that a pickle may have. Those of the largest detectors have about one million.
const BYTES: usize = 16 << 20;
/// Values, links between them and places on the stack, all together, that a pickle may ask for.
const BUDGET: usize = 2_000_000;
/// Values that every pickle shares, by their places.
const NONE: Id = Id(0);
const TRUE: Id = Id(1);
const FALSE: Id = Id(2);
const EMPTY: Id = Id(3);

/// Reads a pickle of protocol 2 to 5 as data.
pub fn read_pickle(bytes: &[u8]) -> Result<Pickle, PtError> {
    let machine = Machine {
        bytes,
        at: 0,
        values: vec![Value::None, Value::Bool(true), Value::Bool(false), Value::Tuple(Box::default())],
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
        spent: 0,
    };
    let mut offset = 0;
    let mut opcode = 0;
    machine.run(&mut offset, &mut opcode).map_err(|reason| PtError::Pickle { opcode: name(opcode), offset, reason })
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    values: Vec<Value>,
    stack: Vec<Id>,
    /// How high the stack was at every mark.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
    spent: usize,
}

type Step<T = ()> = Result<T, String>;

impl Machine<'_> {
    fn run(mut self, offset: &mut usize, opcode: &mut u8) -> Step<Pickle> {
        if self.bytes.len() > BYTES {
            return Err(format!("it has {} bytes, and {BYTES} are allowed", self.bytes.len()));
        }
        loop {
            *offset = self.at;
            *opcode = b'.';
            *opcode = self.byte().map_err(|_| "it is missing: the pickle is cut short".to_owned())?;
            if *opcode == b'.' {
                let root = self.pop()?;
                return Ok(Pickle { values: self.values, root });
            }
            self.step(*opcode)?;
        }
    }

    fn step(&mut self, opcode: u8) -> Step {
        match opcode {
            0x80 => match self.byte()? {
                0..=5 => {}
                version => return Err(format!("protocol {version} is newer than 5")),
            },
            // Frames only help a reader that reads ahead.
            0x95 => drop(self.number::<8>()?),
            b'(' => {
                self.spend(1)?;
                self.marks.push(self.stack.len());
            }
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_mark()?),
            b'2' => {
                let top = self.top()?;
                self.push(top)?;
            }
            b'N' => self.push(NONE)?,
            0x88 => self.push(TRUE)?,
            0x89 => self.push(FALSE)?,
            b')' => self.push(EMPTY)?,
            b'K' | b'M' | b'J' | 0x8a | 0x8b | b'G' => self.scalar(opcode)?,
            b'X' | 0x8c | 0x8d | b'U' | b'T' | b'C' | b'B' | 0x8e | 0x96 => self.string(opcode)?,
            b'}' => self.add(Value::Dict(Vec::new()))?,
            b']' => self.add(Value::List(Vec::new()))?,
            0x8f => self.add(Value::Set(Vec::new()))?,
            b't' | 0x85..=0x87 | b'l' | b'd' | 0x91 => self.collection(opcode)?,
            b'a' | b'e' | b's' | b'u' | 0x90 => self.fill(opcode)?,
            b'c' | 0x93 | b'R' | 0x81 | 0x92 | b'o' | b'i' | b'b' => self.object(opcode)?,
            b'Q' => {
                let id = self.pop()?;
                self.add(Value::Persistent(id))?;
            }
            b'q' | b'r' | 0x94 | b'h' | b'j' => self.remember(opcode)?,
            _ => return Err("no checkpoint uses this opcode".to_owned()),
        }
        Ok(())
    }

    fn scalar(&mut self, opcode: u8) -> Step {
        let value = match opcode {
            b'K' => Value::Int(i64::from(self.byte()?)),
            b'M' => Value::Int(self.number::<2>()? as i64),
            b'J' => Value::Int(i64::from(self.number::<4>()? as u32 as i32)),
            b'G' => Value::Float(f64::from_bits(self.number::<8>()?.swap_bytes())),
            0x8a => {
                let len = u64::from(self.byte()?);
                long(self.take(len)?)
            }
            _ => {
                let len = self.number::<4>()?;
                long(self.take(len)?)
            }
        };
        self.add(value)
    }

    fn string(&mut self, opcode: u8) -> Step {
        let len = match opcode {
            0x8c | b'U' | b'C' => u64::from(self.byte()?),
            0x8d | 0x8e | 0x96 => self.number::<8>()?,
            _ => self.number::<4>()?,
        };
        let bytes = self.take(len)?;
        let value = match opcode {
            b'C' | b'B' | 0x8e | 0x96 => Value::Bytes(bytes.into()),
            // Python 2 wrote texts as bytes, and Python writes lone surrogates: what is no UTF-8 is shown as such.
            _ => Value::Str(String::from_utf8_lossy(bytes).into()),
        };
        self.add(value)
    }

    fn collection(&mut self, opcode: u8) -> Step {
        let elements = match opcode {
            0x85..=0x87 => {
                let mut elements: Vec<Id> = (0x84..opcode).map(|_| self.pop()).collect::<Step<_>>()?;
                elements.reverse();
                elements
            }
            _ => self.pop_mark()?,
        };
        self.spend(elements.len())?;
        let value = match opcode {
            b'l' => Value::List(elements),
            0x91 => Value::Set(elements),
            b'd' => Value::Dict(pairs(&elements)?),
            _ => Value::Tuple(elements.into()),
        };
        self.add(value)
    }

    /// Puts elements or entries into what is below them on the stack.
    fn fill(&mut self, opcode: u8) -> Step {
        let new = match opcode {
            b'a' => vec![self.pop()?],
            b's' => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.pop_mark()?,
        };
        self.spend(new.len())?;
        let target = self.top()?;
        let target = &mut self.values[target.0 as usize];
        match (opcode, target) {
            (b'a' | b'e', Value::List(elements)) | (0x90, Value::Set(elements)) => elements.extend(new),
            (b'a' | b'e', Value::Reduce(made) | Value::Object(made)) => made.elements.extend(new),
            (b's' | b'u', Value::Dict(entries)) => entries.extend(pairs(&new)?),
            (b's' | b'u', Value::Reduce(made) | Value::Object(made)) => made.entries.extend(pairs(&new)?),
            _ => return Err("what it would fill cannot be filled".to_owned()),
        }
        Ok(())
    }

    fn object(&mut self, opcode: u8) -> Step {
        match opcode {
            b'c' => {
                let global = self.global_lines()?;
                self.add(global)
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Value::Str(module), Value::Str(name)) = (self.value(module), self.value(name)) else {
                    return Err("the name of a class is no text".to_owned());
                };
                let global = Box::new((module.to_string(), name.to_string()));
                // The same long name may be asked for again and again.
                self.spend((global.0.len() + global.1.len()) / 16)?;
                let global = Value::Global(global);
                self.add(global)
            }
            b'b' => {
                let (state, target) = (self.pop()?, self.top()?);
                match &mut self.values[target.0 as usize] {
                    Value::Reduce(made) | Value::Object(made) => made.state = Some(state),
                    _ => return Err("what it would fill is no object".to_owned()),
                }
                Ok(())
            }
            b'R' | 0x81 => {
                let (args, callable) = (self.pop()?, self.pop()?);
                self.make(callable, args, opcode == b'R')
            }
            0x92 => {
                let (named, args, callable) = (self.pop()?, self.pop()?, self.pop()?);
                if *self.value(named) != Value::Dict(Vec::new()) {
                    return Err("arguments by name are not known in checkpoints".to_owned());
                }
                self.make(callable, args, false)
            }
            b'o' => {
                let mut args = self.pop_mark()?;
                if args.is_empty() {
                    return Err("it names no class".to_owned());
                }
                let callable = args.remove(0);
                self.make_of(callable, args)
            }
            _ => {
                let global = self.global_lines()?;
                let args = self.pop_mark()?;
                let callable = self.keep(global)?;
                self.make_of(callable, args)
            }
        }
    }

    fn make_of(&mut self, callable: Id, args: Vec<Id>) -> Step {
        self.spend(args.len())?;
        let args = self.keep(Value::Tuple(args.into()))?;
        self.make(callable, args, true)
    }

    fn make(&mut self, callable: Id, args: Id, called: bool) -> Step {
        // Its description is a few times larger than another value.
        self.spend(3)?;
        if !matches!(self.value(args), Value::Tuple(_)) {
            return Err("its arguments are no tuple".to_owned());
        }
        let made = Made { callable, args, state: None, entries: Vec::new(), elements: Vec::new() };
        self.add(if called { Value::Reduce(made.into()) } else { Value::Object(made.into()) })
    }

    fn remember(&mut self, opcode: u8) -> Step {
        let key = match opcode {
            b'q' | b'h' => u32::from(self.byte()?),
            b'r' | b'j' => self.number::<4>()? as u32,
            _ => self.memo.len() as u32,
        };
        if matches!(opcode, b'h' | b'j') {
            let Some(id) = self.memo.get(&key) else { return Err(format!("nothing was remembered as {key}")) };
            return self.push(*id);
        }
        self.spend(1)?;
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn value(&self, id: Id) -> &Value {
        &self.values[id.0 as usize]
    }

    fn spend(&mut self, cost: usize) -> Step {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > BUDGET {
            return Err(format!("the pickle holds more than the {BUDGET} values that are allowed"));
        }
        Ok(())
    }

    fn keep(&mut self, value: Value) -> Step<Id> {
        self.spend(1)?;
        let id = Id(self.values.len() as u32);
        self.values.push(value);
        Ok(id)
    }

    fn add(&mut self, value: Value) -> Step {
        let id = self.keep(value)?;
        self.push(id)
    }

    fn push(&mut self, id: Id) -> Step {
        if self.stack.len() >= BUDGET {
            return Err(format!("the stack is higher than the {BUDGET} places that are allowed"));
        }
        self.stack.push(id);
        Ok(())
    }

    /// What is on top, above the last mark.
    fn top(&self) -> Step<Id> {
        let floor = self.marks.last().copied().unwrap_or(0);
        self.stack.get(floor..).and_then(<[Id]>::last).copied().ok_or_else(|| "the stack is empty".to_owned())
    }

    fn pop(&mut self) -> Step<Id> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn pop_mark(&mut self) -> Step<Vec<Id>> {
        let mark = self.marks.pop().ok_or("there is no mark on the stack")?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn take(&mut self, len: u64) -> Step<&[u8]> {
        let end = usize::try_from(len).ok().and_then(|len| self.at.checked_add(len));
        let bytes = end.and_then(|end| self.bytes.get(self.at..end));
        let bytes =
            bytes.ok_or_else(|| format!("it claims {len} bytes, and {} are left", self.bytes.len() - self.at))?;
        self.at += bytes.len();
        Ok(bytes)
    }

    fn byte(&mut self) -> Step<u8> {
        Ok(self.take(1)?[0])
    }

    /// A little-endian number.
    fn number<const N: usize>(&mut self) -> Step<u64> {
        Ok(self.take(N as u64)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn global_lines(&mut self) -> Step<Value> {
        let (module, name) = (self.line()?, self.line()?);
        Ok(Value::Global(Box::new((module, name))))
    }

    fn line(&mut self) -> Step<String> {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|byte| *byte == b'\n').ok_or("its line has no end")?;
        self.at += len + 1;
        Ok(String::from_utf8_lossy(&rest[..len]).into_owned())
    }
}

fn pairs(flat: &[Id]) -> Step<Vec<(Id, Id)>> {
    let (pairs, rest) = flat.as_chunks();
    if !rest.is_empty() {
        return Err("a key has no value".to_owned());
    }
    Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect())
}

/// A number in two's complement of any length.
fn long(bytes: &[u8]) -> Value {
    if bytes.len() > 8 {
        return Value::Long(bytes.into());
    }
    let fill = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
    let mut wide = [fill; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    Value::Int(i64::from_le_bytes(wide))
}

/// What Python calls an opcode.
fn name(opcode: u8) -> String {
    let name = match opcode {
        0x80 => "PROTO",
        0x95 => "FRAME",
        b'0' => "POP",
        b'1' => "POP_MARK",
        b'2' => "DUP",
        b'.' => "STOP",
        b'J' => "BININT",
        b'M' => "BININT2",
        b'K' => "BININT1",
        0x8a => "LONG1",
        0x8b => "LONG4",
        b'G' => "BINFLOAT",
        b'X' => "BINUNICODE",
        0x8c => "SHORT_BINUNICODE",
        0x8d => "BINUNICODE8",
        b'U' => "SHORT_BINSTRING",
        b'T' => "BINSTRING",
        b'C' => "SHORT_BINBYTES",
        b'B' => "BINBYTES",
        0x8e => "BINBYTES8",
        0x96 => "BYTEARRAY8",
        b't' => "TUPLE",
        0x85 => "TUPLE1",
        0x86 => "TUPLE2",
        0x87 => "TUPLE3",
        b'l' => "LIST",
        b'd' => "DICT",
        0x91 => "FROZENSET",
        b'a' => "APPEND",
        b'e' => "APPENDS",
        b's' => "SETITEM",
        b'u' => "SETITEMS",
        0x90 => "ADDITEMS",
        b'c' => "GLOBAL",
        0x93 => "STACK_GLOBAL",
        b'R' => "REDUCE",
        0x81 => "NEWOBJ",
        0x92 => "NEWOBJ_EX",
        b'o' => "OBJ",
        b'i' => "INST",
        b'b' => "BUILD",
        b'Q' => "BINPERSID",
        b'q' => "BINPUT",
        b'r' => "LONG_BINPUT",
        0x94 => "MEMOIZE",
        b'h' => "BINGET",
        b'j' => "LONG_BINGET",
        0x82..=0x84 => "EXT",
        0x97 => "NEXT_BUFFER",
        0x98 => "READONLY_BUFFER",
        _ => return format!("{opcode:#04x}"),
    };
    name.to_owned()
}
