//! What a pickle says, as a graph of values. Values are kept in one list and refer to each other by their places in it:
//! an object may be referred to before it is filled, many times, and by itself.

/// A value's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(pub(super) u32);

/// One value. Calls and objects are descriptions: nobody makes them.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// A number that fits.
    Int(i64),
    /// A number that does not: two's complement, little-endian.
    Long(Box<[u8]>),
    /// A float.
    Float(f64),
    /// A text.
    Str(Box<str>),
    /// Bytes.
    Bytes(Box<[u8]>),
    /// A tuple.
    Tuple(Box<[Id]>),
    /// A list.
    List(Vec<Id>),
    /// A dict, in the order in which it was filled.
    Dict(Vec<(Id, Id)>),
    /// A set, frozen or not.
    Set(Vec<Id>),
    /// A class or a function, by name.
    Global(Box<(String, String)>),
    /// What calling a function would give.
    Reduce(Box<Made>),
    /// An object of a class, made without its constructor.
    Object(Box<Made>),
    /// Something outside of the pickle, such as a tensor's storage.
    Persistent(Id),
}

/// How an object would be made, and what it would be filled with.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// The class or function.
    pub callable: Id,
    /// A tuple of what it would be given.
    pub args: Id,
    /// What `BUILD` gives it: mostly a dict of attributes.
    pub state: Option<Id>,
    /// Entries set on it, as on an `OrderedDict`.
    pub entries: Vec<(Id, Id)>,
    /// Elements appended to it.
    pub elements: Vec<Id>,
}

/// A whole pickle.
#[derive(Clone, Debug)]
pub struct Pickle {
    pub(super) values: Vec<Value>,
    pub(super) root: Id,
}

impl Pickle {
    /// The value that the pickle stands for.
    pub fn root(&self) -> Id {
        self.root
    }

    /// The value at a place.
    pub fn get(&self, id: Id) -> &Value {
        // Places come from the machine that filled the list; one of another pickle is nothing here.
        self.values.get(id.0 as usize).unwrap_or(&Value::None)
    }

    /// Every value, in the order in which they were read.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// A text.
    pub fn text(&self, id: Id) -> Option<&str> {
        match self.get(id) {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number.
    pub fn int(&self, id: Id) -> Option<i64> {
        match self.get(id) {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// A number of either kind.
    pub fn number(&self, id: Id) -> Option<f64> {
        match self.get(id) {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// A truth value.
    pub fn truth(&self, id: Id) -> Option<bool> {
        match self.get(id) {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// Whether the value is `None`.
    pub fn is_none(&self, id: Id) -> bool {
        *self.get(id) == Value::None
    }

    /// The elements of a tuple, list or set, and of a `torch.Size`.
    pub fn elements(&self, id: Id) -> Option<&[Id]> {
        match self.get(id) {
            Value::Tuple(elements) => Some(elements),
            Value::List(elements) | Value::Set(elements) => Some(elements),
            Value::Reduce(made) if self.is_global(made.callable, "torch", "Size") => match self.get(made.args) {
                Value::Tuple(args) => match **args {
                    [size] if !matches!(self.get(size), Value::Reduce(_)) => self.elements(size),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// Whole numbers in a row.
    pub fn ints(&self, id: Id) -> Option<Vec<i64>> {
        self.elements(id)?.iter().map(|id| self.int(*id)).collect()
    }

    /// The entries of a dict, an `OrderedDict` among them.
    pub fn entries(&self, id: Id) -> Option<&[(Id, Id)]> {
        match self.get(id) {
            Value::Dict(entries) => Some(entries),
            Value::Reduce(made) | Value::Object(made)
                if self.is_global(made.callable, "collections", "OrderedDict") =>
            {
                Some(&made.entries)
            }
            _ => None,
        }
    }

    /// The entry of a dict under a text. The last one counts, as in Python.
    pub fn entry(&self, id: Id, key: &str) -> Option<Id> {
        self.entries(id)?.iter().rev().find(|(name, _)| self.text(*name) == Some(key)).map(|(_, value)| *value)
    }

    /// Module and name of a class or function.
    pub fn global(&self, id: Id) -> Option<(&str, &str)> {
        match self.get(id) {
            Value::Global(global) => Some((&global.0, &global.1)),
            _ => None,
        }
    }

    pub(super) fn is_global(&self, id: Id, module: &str, name: &str) -> bool {
        self.global(id) == Some((module, name))
    }

    /// A call of a function by this name: what it would be given.
    pub(super) fn call(&self, id: Id, module: &str, name: &str) -> Option<&[Id]> {
        match self.get(id) {
            Value::Reduce(made) if self.is_global(made.callable, module, name) => self.elements(made.args),
            _ => None,
        }
    }
}
