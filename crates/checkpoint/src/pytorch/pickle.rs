//! A safe pickle reader: executes nothing.
//!
//! The opcodes of protocols 0 to 5 build plain values; the few globals that describe tensors
//! (`globals.rs`) build records; any other global is an error. An opcode allocates memory only for
//! its own bytes (`objects.rs`). Python's `pickletools.py` describes the opcodes.

use std::collections::HashMap;
use std::rc::Rc;

use super::Fault;
use super::globals::{self, Global};
use super::input::Input;
use super::objects::{Object, Objects, Storage, Tensor, Value};

/// Maximum length of a pickle in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum length of a storage key; PyTorch numbers storages. Each use looks the key up.
const MAX_KEY: usize = 256;

/// Reads one pickle, up to its end.
pub(super) fn load(input: &mut Input, objects: &mut Objects) -> Result<Value, Fault> {
    let end = input.position().saturating_add(MAX_BYTES);
    let mut unpickler =
        Unpickler { input, objects, stack: Vec::new(), marks: Vec::new(), memo: HashMap::new() };
    loop {
        if unpickler.input.position() > end {
            return Err(Fault::Damaged("has a pickle too large for a pickle of tensors".into()));
        }
        unpickler.objects.count_opcode()?;
        let opcode = unpickler.input.byte()?;
        if opcode == b'.' {
            return unpickler.pop();
        }
        unpickler.step(opcode)?;
    }
}

struct Unpickler<'m> {
    input: &'m mut Input,
    objects: &'m mut Objects,
    stack: Vec<Value>,
    /// Stack positions of marks.
    marks: Vec<usize>,
    memo: HashMap<u64, Value>,
}

impl Unpickler<'_> {
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
                self.sized_text(len.into())?;
            }
            // BINSTRING, BINBYTES, BINUNICODE
            b'T' | b'B' | b'X' => {
                let len = u32::from_le_bytes(self.input.array()?);
                self.sized_text(len.into())?;
            }
            // BINUNICODE8, BINBYTES8, BYTEARRAY8
            0x8d | 0x8e | 0x96 => {
                let len = u64::from_le_bytes(self.input.array()?);
                self.sized_text(len)?;
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
                let first = first.ok_or_else(malformed)?;
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
                self.memo_get(number)?;
            }
            b'h' => {
                let number = self.input.byte()?;
                self.memo_get(number.into())?;
            }
            b'j' => {
                let number = u32::from_le_bytes(self.input.array()?);
                self.memo_get(number.into())?;
            }
            // PUT, BINPUT, LONG_BINPUT, MEMOIZE
            b'p' => {
                let number = self.number()?;
                self.memo_put(number)?;
            }
            b'q' => {
                let number = self.input.byte()?;
                self.memo_put(number.into())?;
            }
            b'r' => {
                let number = u32::from_le_bytes(self.input.array()?);
                self.memo_put(number.into())?;
            }
            0x94 => self.memo_put(self.memo.len() as u64)?,
            // GLOBAL, STACK_GLOBAL, INST
            b'c' => {
                let (module, name) = (self.input.line()?, self.input.line()?);
                self.global(&String::from_utf8_lossy(&module), &String::from_utf8_lossy(&name))?;
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let text = |value| self.objects.text(value).cloned().ok_or_else(malformed);
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
                    return Err(Fault::Unknown(
                        "a call of something that is not a function".into(),
                    ));
                };
                let value = self.call(function, arguments)?;
                self.stack.push(value);
            }
            // BUILD: attributes, which tensors do not need.
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

    fn sized_text(&mut self, len: u64) -> Result<(), Fault> {
        if len > MAX_BYTES {
            return Err(Fault::Damaged(format!("has a string of {len} bytes in its pickle")));
        }
        let bytes = self.input.take(len)?;
        self.text(&bytes);
        Ok(())
    }

    fn top(&self) -> Result<Value, Fault> {
        self.stack.last().copied().ok_or_else(malformed)
    }

    fn pop(&mut self) -> Result<Value, Fault> {
        self.stack.pop().ok_or_else(malformed)
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Value>, Fault> {
        let mark = self.marks.pop().filter(|mark| *mark <= self.stack.len());
        Ok(self.stack.split_off(mark.ok_or_else(malformed)?))
    }

    fn pairs(&self, items: &[Value]) -> Result<Vec<(Value, Value)>, Fault> {
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(malformed());
        }
        Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect())
    }

    fn extend(&mut self, items: Vec<Value>) -> Result<(), Fault> {
        let list = self.top()?;
        match self.objects.object_mut(list) {
            Some(Object::Items(list)) => list.extend(items),
            _ => return Err(malformed()),
        }
        Ok(())
    }

    fn update(&mut self, items: &[Value]) -> Result<(), Fault> {
        let pairs = self.pairs(items)?;
        let dict = self.top()?;
        match self.objects.object_mut(dict) {
            Some(Object::Dict(dict)) => dict.extend(pairs),
            _ => return Err(malformed()),
        }
        Ok(())
    }

    fn memo_get(&mut self, number: u64) -> Result<(), Fault> {
        let value = self.memo.get(&number).copied().ok_or_else(malformed)?;
        self.stack.push(value);
        Ok(())
    }

    fn memo_put(&mut self, number: u64) -> Result<(), Fault> {
        let value = self.top()?;
        self.memo.insert(number, value);
        Ok(())
    }

    fn global(&mut self, module: &str, name: &str) -> Result<(), Fault> {
        let global = globals::find(module, name);
        self.stack.push(Value::Global(global.ok_or_else(|| Fault::Call(shown(module, name)))?));
        Ok(())
    }

    /// Reads an integer in text.
    fn number(&mut self) -> Result<u64, Fault> {
        let line = self.input.line()?;
        str::from_utf8(&line).ok().and_then(|text| text.trim().parse().ok()).ok_or_else(malformed)
    }

    /// Reads an integer in text, or a boolean as `00` or `01`.
    fn decimal(&mut self) -> Result<Value, Fault> {
        let line = self.input.line()?;
        let text = str::from_utf8(&line).map_err(|_| malformed())?.trim();
        match text {
            "00" => Ok(Value::Bool(false)),
            "01" => Ok(Value::Bool(true)),
            _ => text.trim_end_matches('L').parse().map(Value::Int).map_err(|_| malformed()),
        }
    }

    /// Reads an integer of `len` bytes in two's complement.
    fn long(&mut self, len: u64) -> Result<(), Fault> {
        if len > 16 {
            return Err(Fault::Unknown(format!("an integer of {len} bytes")));
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

    /// Evaluates a call of an allowed global.
    fn call(&mut self, function: Global, arguments: Value) -> Result<Value, Fault> {
        let invalid = || Fault::Damaged(format!("calls {function:?} with invalid arguments"));
        let items = self.objects.items(arguments).ok_or_else(invalid)?;
        let object = match (function, items) {
            (Global::OrderedDict, []) => Object::Dict(Vec::new()),
            (Global::OrderedDict, &[pairs]) => {
                let len = self.objects.items(pairs).ok_or_else(invalid)?.len();
                self.objects.count_copied(len)?;
                let pair = |value: &Value| match self.objects.items(*value)? {
                    [key, value] => Some((*key, *value)),
                    _ => None,
                };
                let pairs = self.objects.items(pairs).unwrap_or_default().iter().map(pair);
                Object::Dict(pairs.collect::<Option<_>>().ok_or_else(invalid)?)
            }
            (Global::RebuildTensor, &[storage, offset, size, stride, ..]) => {
                let tensor = self.tensor(storage, offset, size, stride)?.ok_or_else(invalid)?;
                Object::Tensor(Box::new(tensor))
            }
            (Global::RebuildTensorV3, &[storage, offset, size, stride, _, _, dtype, ..]) => {
                let mut tensor = self.tensor(storage, offset, size, stride)?.ok_or_else(invalid)?;
                let Value::Global(Global::Dtype(dtype)) = dtype else { return Err(invalid()) };
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
            _ => return Err(invalid()),
        };
        Ok(self.objects.add(object))
    }

    /// Builds a tensor; `None` if the arguments are invalid.
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

    /// Parses a persistent id `('storage', type, key, device, elements)`, in old files with a view
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
        read().ok_or_else(|| Fault::Damaged("names a storage in an unknown form".into()))
    }
}

fn unsigned(value: Value) -> Option<u64> {
    match value {
        Value::Int(number) => number.try_into().ok(),
        _ => None,
    }
}

fn malformed() -> Fault {
    Fault::Damaged("has a pickle whose opcodes are inconsistent".into())
}

/// Formats the name of a global, which is untrusted, for a message.
fn shown(module: &str, name: &str) -> String {
    let name: String = format!("{module}.{name}").chars().take(100).collect();
    name.escape_debug().to_string()
}
