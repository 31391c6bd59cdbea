//! Values that a pickle builds. They refer to each other by index, so that neither cycles nor depth
//! are a problem, and share strings: a memoized value is stored once.

use std::cell::Cell;
use std::rc::Rc;

use super::Fault;
use super::globals::Global;
use crate::dtype::Dtype;

/// Maximum number of opcodes per file: some hundred thousand tensors.
const MAX_OPCODES: u32 = 4_000_000;

/// A value, small enough to copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Global(Global),
    /// A value that no tensor needs: floats, and devices.
    Other,
    /// Any other value, by index in [`Objects`].
    Object(usize),
}

// A pickle may create a value for each of its bytes.
const _: () = assert!(size_of::<Value>() == 16);

/// An object that a value refers to.
#[derive(Debug)]
pub(super) enum Object {
    Text(Rc<str>),
    /// An integer that does not fit a [`Value`].
    Long(Box<i128>),
    /// A tuple, list or set.
    Items(Vec<Value>),
    Dict(Vec<(Value, Value)>),
    Storage(Rc<Storage>),
    Tensor(Box<Tensor>),
}

const _: () = assert!(size_of::<Object>() == 32);

/// A storage, as named by the pickle.
#[derive(Debug)]
pub(super) struct Storage {
    /// Key among the storages.
    pub key: Rc<str>,
    pub dtype: Dtype,
    /// First element, for a view into the storage.
    pub start: u64,
}

/// A tensor: a strided view of a storage.
#[derive(Debug)]
pub(super) struct Tensor {
    pub storage: Rc<Storage>,
    /// Element type; differs from the storage's if that is untyped.
    pub dtype: Dtype,
    /// First element.
    pub offset: u64,
    /// Length and stride of each dimension, slowest first.
    pub dims: Box<[(u64, u64)]>,
}

/// All objects of the pickles of a file.
///
/// An opcode creates at most one object, of the size of the opcode's own bytes, and copied list
/// elements are counted. So the length of the pickles bounds memory and work.
#[derive(Debug, Default)]
pub(super) struct Objects {
    objects: Vec<Object>,
    opcodes: u32,
    /// Number of copied list elements.
    copied: Cell<usize>,
}

impl Objects {
    /// Counts an opcode.
    pub fn count_opcode(&mut self) -> Result<(), Fault> {
        if self.opcodes >= MAX_OPCODES {
            return Err(Fault::Damaged("has a pickle too large for a pickle of tensors".into()));
        }
        self.opcodes += 1;
        Ok(())
    }

    /// Counts `n` list elements before they are copied. Every list element took an opcode, and a
    /// pickle of tensors uses each of its lists once.
    pub fn count_copied(&self, n: usize) -> Result<(), Fault> {
        self.copied.set(self.copied.get().saturating_add(n));
        if self.copied.get() > self.opcodes as usize {
            let what = "has a pickle that copies its lists repeatedly: tensors need no more \
                                    elements than the pickle has opcodes";
            return Err(Fault::Damaged(what.into()));
        }
        Ok(())
    }

    /// Returns the storages that the pickles name, with repetitions.
    pub fn storages(&self) -> impl Iterator<Item = &Storage> {
        self.objects.iter().filter_map(|object| match object {
            Object::Storage(storage) => Some(&**storage),
            _ => None,
        })
    }

    pub fn text(&self, value: Value) -> Option<&Rc<str>> {
        match self.object(value)? {
            Object::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn integer(&self, value: Value) -> Option<i128> {
        match value {
            Value::Int(number) => Some(number.into()),
            value => match self.object(value)? {
                Object::Long(number) => Some(**number),
                _ => None,
            },
        }
    }

    pub fn items(&self, value: Value) -> Option<&[Value]> {
        match self.object(value)? {
            Object::Items(items) => Some(items),
            _ => None,
        }
    }

    pub fn dict(&self, value: Value) -> Option<&[(Value, Value)]> {
        match self.object(value)? {
            Object::Dict(pairs) => Some(pairs),
            _ => None,
        }
    }

    pub fn tensor(&self, value: Value) -> Option<&Tensor> {
        match self.object(value)? {
            Object::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Returns the value under a string key of a dict.
    pub fn get(&self, dict: Value, key: &str) -> Option<Value> {
        let mut pairs = self.dict(dict)?.iter();
        pairs.find(|(k, _)| self.text(*k).is_some_and(|k| **k == *key)).map(|(_, value)| *value)
    }

    pub fn object(&self, value: Value) -> Option<&Object> {
        match value {
            Value::Object(number) => self.objects.get(number),
            _ => None,
        }
    }

    pub fn object_mut(&mut self, value: Value) -> Option<&mut Object> {
        match value {
            Value::Object(number) => self.objects.get_mut(number),
            _ => None,
        }
    }

    pub fn add(&mut self, object: Object) -> Value {
        self.objects.push(object);
        Value::Object(self.objects.len() - 1)
    }
}
