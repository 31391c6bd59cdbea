//! The values that a pickle builds. They refer to each other by number, so that neither cycles nor
//! depth cost anything, and share their texts: what a pickle uses many times is kept once.

use std::cell::Cell;
use std::rc::Rc;

use super::Fault;
use super::globals::Global;
use crate::dtype::Dtype;

/// The most opcodes of one file: some hundred thousand tensors.
const MAX_OPCODES: u32 = 4_000_000;

/// A value, small enough to copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Global(Global),
    /// Something that no tensor needs: floats, and where tensors were.
    Other,
    /// Everything else, by its number in [`Objects`].
    Object(usize),
}

// A pickle may have a value for each of its bytes.
const _: () = assert!(size_of::<Value>() == 16);

/// What a value may refer to.
#[derive(Debug)]
pub(super) enum Object {
    Text(Rc<str>),
    /// A number that a [`Value`] has no room for.
    Long(Box<i128>),
    /// A tuple, list or set.
    Items(Vec<Value>),
    Dict(Vec<(Value, Value)>),
    Storage(Rc<Storage>),
    Tensor(Box<Tensor>),
}

const _: () = assert!(size_of::<Object>() == 32);

/// A storage, as the pickle names it.
#[derive(Debug)]
pub(super) struct Storage {
    /// Its name among the storages.
    pub key: Rc<str>,
    pub dtype: Dtype,
    /// First element, of a view into the storage.
    pub start: u64,
}

/// A tensor: which elements of a storage, in which order.
#[derive(Debug)]
pub(super) struct Tensor {
    pub storage: Rc<Storage>,
    /// The type of its elements; another than the storage's if that one is plain bytes.
    pub dtype: Dtype,
    /// First element.
    pub offset: u64,
    /// Elements per dimension, slowest first, and how far apart they are in the storage.
    pub dims: Box<[(u64, u64)]>,
}

/// All objects of the pickles of a file.
///
/// An opcode makes at most one object, whose size is that of its own bytes; and what is copied out
/// of lists is counted. So memory and work are bounded by the length of the pickles.
#[derive(Debug, Default)]
pub(super) struct Objects {
    objects: Vec<Object>,
    opcodes: u32,
    /// Elements of lists that were copied.
    copied: Cell<usize>,
}

impl Objects {
    /// Counts an opcode.
    pub fn count_opcode(&mut self) -> Result<(), Fault> {
        if self.opcodes >= MAX_OPCODES {
            return Err(Fault::Damaged("has a pickle too large for one of tensors".into()));
        }
        self.opcodes += 1;
        Ok(())
    }

    /// Counts `n` elements of a list that are about to be copied. Every element that stands in a
    /// list took an opcode, and a pickle of tensors uses each of its lists once.
    pub fn count_copied(&self, n: usize) -> Result<(), Fault> {
        self.copied.set(self.copied.get().saturating_add(n));
        if self.copied.get() > self.opcodes as usize {
            let what = "has a pickle that copies its lists over and over: tensors need no more \
                        elements than the pickle has instructions";
            return Err(Fault::Damaged(what.into()));
        }
        Ok(())
    }

    /// The storages that the pickles name, also several times.
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

    /// What a dict has under a text.
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
