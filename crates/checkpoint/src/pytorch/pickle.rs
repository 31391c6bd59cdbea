//! A pickle reader that executes nothing.
//!
//! The opcodes of protocols 0 to 5 build plain values; the few names that describe tensors
//! (`globals.rs`) build records of ours; every other name ends the reading. An opcode takes memory
//! for its own bytes only (`objects.rs`). The opcodes are described in Python's `pickletools.py`.

use std::collections::HashMap;
use std::rc::Rc;

use super::Fault;
use super::globals::{self, Global};
use super::input::Input;
use super::objects::{Object, Objects, Storage, Tensor, Value};

/// The most bytes of one pickle.
const MAX_BYTES: u64 = 64 << 20;

/// The longest name of a storage; PyTorch counts them. Each use looks the name up.
const MAX_KEY: usize = 256;

/// Reads one pickle, up to its end.
pub(super) fn load(input: &mut Input, objects: &mut Objects) -> Result<Value, Fault> {
    let end = input.position().saturating_add(MAX_BYTES);
    let mut machine =
        Machine { input, objects, stack: Vec::new(), marks: Vec::new(), memo: HashMap::new() };
    loop {
        if machine.input.position() > end {
            return Err(Fault::Damaged("has a pickle too large for one of tensors".into()));
        }
        machine.objects.count_opcode()?;
        let opcode = machine.input.byte()?;
        if opcode == b'.' {
            return machine.pop();
        }
        machine.step(opcode)?;
    }
}

struct Machine<'m> {
    input: &'m mut Input,
    objects: &'m mut Objects,
    stack: Vec<Value>,
    /// Where in the stack marks stand.
    marks: Vec<usize>,
    memo: HashMap<u64, Value>,
}

impl Machine<'_> {
    fn step(&mut self, opcode: u8) -> Result<(), Fault> {
        match opcode {
            // PROTO, FRAME
            0x80 => drop(self.input.byte()?),
            0x95 => drop(self.input.array::<8>()?),
            // MARK, POP, POP_MARK, DUP
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_to_mark()?),
            b'2' => self.stack.push(self.top()?),
            // NONE, NEWTRUE, NEWFALSE
            b'N' => self.stack.push(Value::None),
            0x88 => self.stack.push(Value::Bool(true)),
            0x89 => self.stack.push(Value::Bool(false)),
            // BININT, BININT1, BININT2
            b'J' => {
                let value = i32::from_le_bytes(self.input.array()?);
                self.stack.push(Value::Int(value.into()));
            }
            b'K' => {
                let value = self.input.byte()?;
                self.stack.push(Value::Int(value.into()));
            }
            b'M' => {
                let value = u16::from_le_bytes(self.input.array()?);
                self.stack.push(Value::Int(value.into()));
            }
            // INT, LONG
            b'I' | b'L' => {
                let value = self.decimal()?;
                self.stack.push(value);
            }
            // LONG1, LONG4
            0x8a => {
                let len = self.input.byte()?;
                self.long(len.into())?;
            }
            0x8b => {
                let len = u32::from_le_bytes(self.input.array()?);
                self.long(len.into())?;
            }
            // FLOAT, BINFLOAT
            b'F' => {
                self.input.line()?;
                self.stack.push(Value::Other);
            }
            b'G' => {
                self.input.array::<8>()?;
                self.stack.push(Value::Other);
            }
            // STRING, UNICODE
            b'S' => {
                let line = self.input.line()?;
                let quoted = line.trim_ascii();
                let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
                self.text(inner);
            }
            b'V' => {
                let line = self.input.line()?;
                self.text(&line);
            }
            // SHORT_BINSTRING, SHORT_BINBYTES, SHORT_BINUNICODE
            b'U' | b'C' | 0x8c => {
                let len = self.input.byte()?;
                self.counted_text(len.into())?;
            }
            // BINSTRING, BINBYTES, BINUNICODE
            b'T' | b'B' | b'X' => {
                let len = u32::from_le_bytes(self.input.array()?);
                self.counted_text(len.into())?;
            }
            // BINUNICODE8, BINBYTES8, BYTEARRAY8
            0x8d | 0x8e | 0x96 => {
                let len = u64::from_le_bytes(self.input.array()?);
                self.counted_text(len)?;
            }
            // EMPTY_TUPLE, EMPTY_LIST, EMPTY_SET, EMPTY_DICT
            b')' | b']' | 0x8f => self.push(Object::Items(Vec::new())),
            b'}' => self.push(Object::Dict(Vec::new())),
            // TUPLE, LIST, FROZENSET, DICT
            b't' | b'l' | 0x91 => {
                let items = self.pop_to_mark()?;
                self.push(Object::Items(items));
            }
            b'd' => {
                let items = self.pop_to_mark()?;
                let pairs = self.pairs(&items)?;
                self.push(Object::Dict(pairs));
            }
            // TUPLE1, TUPLE2, TUPLE3
            0x85..=0x87 => {
                let first = self.stack.len().checked_sub(usize::from(opcode - 0x84));
                let first = first.ok_or_else(short)?;
                let items = self.stack.split_off(first);
                self.push(Object::Items(items));
            }
            // APPEND, APPENDS, ADDITEMS
            b'a' => {
                let item = self.pop()?;
                self.extend(vec![item])?;
            }
            b'e' | 0x90 => {
                let items = self.pop_to_mark()?;
                self.extend(items)?;
            }
            // SETITEM, SETITEMS
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.update(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.update(&items)?;
            }
            // GET, BINGET, LONG_BINGET
            b'g' => {
                let number = self.number()?;
                self.recall(number)?;
            }
            b'h' => {
                let number = self.input.byte()?;
                self.recall(number.into())?;
            }
            b'j' => {
                let number = u32::from_le_bytes(self.input.array()?);
                self.recall(number.into())?;
            }
            // PUT, BINPUT, LONG_BINPUT, MEMOIZE
            b'p' => {
                let number = self.number()?;
                self.remember(number)?;
            }
            b'q' => {
                let number = self.input.byte()?;
                self.remember(number.into())?;
            }
            b'r' => {
                let number = u32::from_le_bytes(self.input.array()?);
                self.remember(number.into())?;
            }
            0x94 => self.remember(self.memo.len() as u64)?,
            // GLOBAL, STACK_GLOBAL, INST
            b'c' => {
                let (module, name) = (self.input.line()?, self.input.line()?);
                self.global(&String::from_utf8_lossy(&module), &String::from_utf8_lossy(&name))?;
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let text = |value| self.objects.text(value).cloned().ok_or_else(short);
                let (module, name) = (text(module)?, text(name)?);
                self.global(&module, &name)?;
            }
            b'i' => {
                let (module, name) = (self.input.line()?, self.input.line()?);
                return Err(Fault::Call(shown(
                    &String::from_utf8_lossy(&module),
                    &String::from_utf8_lossy(&name),
                )));
            }
            // REDUCE, NEWOBJ
            b'R' | 0x81 => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                let Value::Global(function) = function else {
                    return Err(Fault::Unknown("a call of what is no function".into()));
                };
                let value = self.call(function, arguments)?;
                self.stack.push(value);
            }
            // BUILD: attributes, which no tensor needs.
            b'b' => drop(self.pop()?),
            // BINPERSID
            b'Q' => {
                let id = self.pop()?;
                let storage = self.storage(id)?;
                self.push(Object::Storage(Rc::new(storage)));
            }
            other => {
                let shown = char::from(other).escape_default();
                return Err(Fault::Unknown(format!("the opcode {other:#04x} (`{shown}`)")));
            }
        }
        Ok(())
    }

    fn push(&mut self, object: Object) {
        let value = self.objects.add(object);
        self.stack.push(value);
    }

    fn text(&mut self, bytes: &[u8]) {
        self.push(Object::Text(String::from_utf8_lossy(bytes).into()));
    }

    fn counted_text(&mut self, len: u64) -> Result<(), Fault> {
        if len > MAX_BYTES {
            return Err(Fault::Damaged(format!("has a text of {len} bytes in its pickle")));
        }
        let bytes = self.input.take(len)?;
        self.text(&bytes);
        Ok(())
    }

    fn top(&self) -> Result<Value, Fault> {
        self.stack.last().copied().ok_or_else(short)
    }

    fn pop(&mut self) -> Result<Value, Fault> {
        self.stack.pop().ok_or_else(short)
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Value>, Fault> {
        let mark = self.marks.pop().filter(|mark| *mark <= self.stack.len());
        Ok(self.stack.split_off(mark.ok_or_else(short)?))
    }

    fn pairs(&self, items: &[Value]) -> Result<Vec<(Value, Value)>, Fault> {
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(short());
        }
        Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect())
    }

    fn extend(&mut self, items: Vec<Value>) -> Result<(), Fault> {
        let list = self.top()?;
        match self.objects.object_mut(list) {
            Some(Object::Items(list)) => list.extend(items),
            _ => return Err(short()),
        }
        Ok(())
    }

    fn update(&mut self, items: &[Value]) -> Result<(), Fault> {
        let pairs = self.pairs(items)?;
        let dict = self.top()?;
        match self.objects.object_mut(dict) {
            Some(Object::Dict(dict)) => dict.extend(pairs),
            _ => return Err(short()),
        }
        Ok(())
    }

    fn recall(&mut self, number: u64) -> Result<(), Fault> {
        let value = self.memo.get(&number).copied().ok_or_else(short)?;
        self.stack.push(value);
        Ok(())
    }

    fn remember(&mut self, number: u64) -> Result<(), Fault> {
        let value = self.top()?;
        self.memo.insert(number, value);
        Ok(())
    }

    fn global(&mut self, module: &str, name: &str) -> Result<(), Fault> {
        let global = globals::find(module, name);
        self.stack.push(Value::Global(global.ok_or_else(|| Fault::Call(shown(module, name)))?));
        Ok(())
    }

    /// A number in text.
    fn number(&mut self) -> Result<u64, Fault> {
        let line = self.input.line()?;
        str::from_utf8(&line).ok().and_then(|text| text.trim().parse().ok()).ok_or_else(short)
    }

    /// A number in text, or a truth value as `00` or `01`.
    fn decimal(&mut self) -> Result<Value, Fault> {
        let line = self.input.line()?;
        let text = str::from_utf8(&line).map_err(|_| short())?.trim();
        match text {
            "00" => Ok(Value::Bool(false)),
            "01" => Ok(Value::Bool(true)),
            _ => text.trim_end_matches('L').parse().map(Value::Int).map_err(|_| short()),
        }
    }

    /// A number of `len` bytes in two's complement.
    fn long(&mut self, len: u64) -> Result<(), Fault> {
        if len > 16 {
            return Err(Fault::Unknown(format!("a number of {len} bytes")));
        }
        let bytes = self.input.take(len)?;
        let negative = bytes.last().is_some_and(|byte| *byte >= 0x80);
        let mut whole = [if negative { 0xff } else { 0 }; 16];
        whole[..bytes.len()].copy_from_slice(&bytes);
        let number = i128::from_le_bytes(whole);
        match number.try_into() {
            Ok(number) => self.stack.push(Value::Int(number)),
            Err(_) => self.push(Object::Long(Box::new(number))),
        }
        Ok(())
    }

    /// What a call of one of the known names gives.
    fn call(&mut self, function: Global, arguments: Value) -> Result<Value, Fault> {
        let wrong = || Fault::Damaged(format!("calls {function:?} with arguments that do not fit"));
        let items = self.objects.items(arguments).ok_or_else(wrong)?;
        let made = match (function, items) {
            (Global::OrderedDict, []) => Object::Dict(Vec::new()),
            (Global::OrderedDict, &[pairs]) => {
                let len = self.objects.items(pairs).ok_or_else(wrong)?.len();
                self.objects.count_copied(len)?;
                let pair = |value: &Value| match self.objects.items(*value)? {
                    [key, value] => Some((*key, *value)),
                    _ => None,
                };
                let pairs = self.objects.items(pairs).unwrap_or_default().iter().map(pair);
                Object::Dict(pairs.collect::<Option<_>>().ok_or_else(wrong)?)
            }
            (Global::RebuildTensor, &[storage, offset, size, stride, ..]) => {
                let tensor = self.tensor(storage, offset, size, stride)?.ok_or_else(wrong)?;
                Object::Tensor(Box::new(tensor))
            }
            (Global::RebuildTensorV3, &[storage, offset, size, stride, _, _, dtype, ..]) => {
                let mut tensor = self.tensor(storage, offset, size, stride)?.ok_or_else(wrong)?;
                let Value::Global(Global::Dtype(dtype)) = dtype else { return Err(wrong()) };
                tensor.dtype = dtype;
                Object::Tensor(Box::new(tensor))
            }
            (Global::RebuildParameter, &[tensor, ..]) => return Ok(tensor),
            (Global::RebuildFromType, &[Value::Global(function), _, arguments, _])
                if function != Global::RebuildFromType =>
            {
                return self.call(function, arguments);
            }
            (Global::Size, []) => Object::Items(Vec::new()),
            (Global::Size, &[items]) => return Ok(items),
            (Global::Device, _) => return Ok(Value::Other),
            _ => return Err(wrong()),
        };
        Ok(self.objects.add(made))
    }

    /// `None` if that is no tensor.
    fn tensor(
        &self,
        storage: Value,
        offset: Value,
        size: Value,
        stride: Value,
    ) -> Result<Option<Tensor>, Fault> {
        self.objects.count_copied(self.objects.items(size).map_or(0, <[_]>::len))?;
        let read = || {
            let Object::Storage(storage) = self.objects.object(storage)? else { return None };
            let (size, stride) = (self.objects.items(size)?, self.objects.items(stride)?);
            (size.len() == stride.len()).then_some(())?;
            let dims = size.iter().zip(stride);
            let dims = dims.map(|(len, stride)| Some((unsigned(*len)?, unsigned(*stride)?)));
            Some(Tensor {
                storage: storage.clone(),
                dtype: storage.dtype,
                offset: unsigned(offset)?,
                dims: dims.collect::<Option<_>>()?,
            })
        };
        Ok(read())
    }

    /// `('storage', type, key, device, elements)`, and in old files a view
    /// `(key, first element, elements)`.
    fn storage(&self, id: Value) -> Result<Storage, Fault> {
        let read = || {
            let [kind, Value::Global(Global::Storage(dtype)), key, _, _, view @ ..] =
                self.objects.items(id)?
            else {
                return None;
            };
            (&**self.objects.text(*kind)? == "storage").then_some(())?;
            let start = match view {
                [] | [Value::None] => 0,
                [view] => unsigned(*self.objects.items(*view)?.get(1)?)?,
                _ => return None,
            };
            let key = self.objects.text(*key)?;
            (key.len() <= MAX_KEY).then_some(())?;
            Some(Storage { key: key.clone(), dtype: *dtype, start })
        };
        read().ok_or_else(|| Fault::Damaged("names a storage in a way that is not known".into()))
    }
}

fn unsigned(value: Value) -> Option<u64> {
    match value {
        Value::Int(number) => number.try_into().ok(),
        _ => None,
    }
}

fn short() -> Fault {
    Fault::Damaged("has a pickle whose instructions do not fit together".into())
}

/// A name for messages, whatever the file calls it.
fn shown(module: &str, name: &str) -> String {
    let name: String = format!("{module}.{name}").chars().take(100).collect();
    name.escape_debug().to_string()
}
