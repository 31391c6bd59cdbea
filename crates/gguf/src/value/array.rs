//! Array values: views of the encoded elements in a file.
//!
//! An array is one run of bytes, shared with its file or built in memory, so that reading a
//! vocabulary of 256k strings costs no allocation and building it costs one.

use std::fmt;

use bytes::Bytes;

use crate::encoding::{ByteOrder, Encoding};
use crate::value::{Value, ValueType};

/// Array value: elements of one type, in encoded form.
#[derive(Clone, Debug)]
pub struct Array {
    element_type: ValueType,
    len: u64,
    encoding: Encoding,
    /// The exact bytes of `len` elements: every constructor checks or builds them.
    bytes: Bytes,
}

impl Array {
    /// Returns a view of `len` encoded elements at the start of `bytes`, a part of `file`, and the
    /// number of bytes they take. Allocates nothing; each string costs one checked step.
    ///
    /// `depth` is the number of further nesting levels allowed.
    ///
    /// # Errors
    /// The fault and its position relative to the start of `bytes`.
    pub(crate) fn scan(
        element_type: ValueType,
        len: u64,
        file: &Bytes,
        bytes: &[u8],
        encoding: Encoding,
        depth: u32,
    ) -> Result<(Self, usize), ScanFault> {
        let end = scan_elements(element_type, len, file, bytes, encoding, depth)?;
        Ok((Self { element_type, len, encoding, bytes: file.slice_ref(&bytes[..end]) }, end))
    }

    /// Returns an array of strings.
    pub fn from_strings<S: AsRef<[u8]>>(strings: impl IntoIterator<Item = S>) -> Self {
        let (mut bytes, mut len) = (Vec::new(), 0);
        for string in strings {
            let string = string.as_ref();
            bytes.extend_from_slice(&(string.len() as u64).to_le_bytes());
            bytes.extend_from_slice(string);
            len += 1;
        }
        Self::owned(ValueType::String, len, bytes)
    }

    fn owned(element_type: ValueType, len: u64, bytes: Vec<u8>) -> Self {
        Self { element_type, len, encoding: Encoding::default(), bytes: bytes.into() }
    }

    /// Returns the type of the elements.
    pub fn element_type(&self) -> ValueType {
        self.element_type
    }

    /// Returns the number of elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the elements in order; each is decoded on demand.
    pub fn iter(&self) -> Elements<'_> {
        Elements { array: self, pos: 0, left: self.len }
    }

    /// Returns the bytes of each string; `None` if this is not an array of strings.
    pub fn strings(&self) -> Option<impl Iterator<Item = &[u8]>> {
        (self.element_type == ValueType::String).then(|| {
            let (mut pos, encoding) = (0, self.encoding);
            (0..self.len).map_while(move |_| {
                let bytes = self.bytes.get(pos..)?;
                let end = string_end(bytes, 0, encoding)?;
                pos += end;
                Some(string_text(bytes, end, encoding))
            })
        })
    }

    /// Returns the bytes of elements that are little-endian numbers; `None` for other elements and for big-endian files.
    pub fn little_endian(&self) -> Option<&[u8]> {
        use ValueType::{Array, Bool, String};
        let are_numbers = !matches!(self.element_type, Bool | String | Array);
        (are_numbers && self.encoding.order == ByteOrder::Little).then_some(&self.bytes)
    }

    /// Returns all elements as integers; `None` if one is not an integer that fits.
    pub fn to_i64s(&self) -> Option<Vec<i64>> {
        self.iter().map(|value| value.to_i64()).collect()
    }

    /// Returns all elements as floating-point numbers; `None` if the elements have another type.
    pub fn to_f64s(&self) -> Option<Vec<f64>> {
        self.iter().map(|value| value.to_f64()).collect()
    }

    /// Returns an array of the elements whose index `keep` accepts.
    pub fn filtered(&self, keep: impl Fn(u64) -> bool) -> Array {
        let (mut bytes, mut len) = (Vec::new(), 0);
        for (_, value) in (0..).zip(self.iter()).filter(|(i, _)| keep(*i)) {
            // Counts have 64 bits in this encoding: all fit.
            let _ = value.write(&mut bytes, Encoding::default());
            len += 1;
        }
        Array::owned(self.element_type, len, bytes)
    }

    /// Appends element type, count and elements in another encoding.
    ///
    /// `None` if a count does not fit (version 1 has 32 bits).
    pub(crate) fn write(&self, out: &mut Vec<u8>, encoding: Encoding) -> Option<()> {
        encoding.push(out, self.element_type.id().to_le_bytes());
        encoding.push_count(out, self.len)?;
        if self.encoding == encoding {
            out.extend_from_slice(&self.bytes);
            return Some(());
        }
        self.iter().try_for_each(|value| value.write(out, encoding))
    }
}

impl PartialEq for Array {
    /// Equal if element type and elements are equal, whatever the encoding.
    fn eq(&self, other: &Self) -> bool {
        if self.element_type != other.element_type || self.len != other.len {
            return false;
        }
        if self.encoding == other.encoding {
            return self.bytes == other.bytes;
        }
        self.iter().eq(other.iter())
    }
}

macro_rules! array_from {
    ($($ty:ty => $variant:ident,)*) => {
        $(impl From<&[$ty]> for Array {
            fn from(elements: &[$ty]) -> Self {
                let bytes = elements.iter().flat_map(|v| v.to_le_bytes()).collect();
                Self::owned(ValueType::$variant, elements.len() as u64, bytes)
            }
        })*
    };
}
array_from! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32,
    u64 => U64, i64 => I64, f64 => F64,
}

impl From<&[bool]> for Array {
    fn from(elements: &[bool]) -> Self {
        let bytes = elements.iter().map(|&v| v.into()).collect();
        Self::owned(ValueType::Bool, elements.len() as u64, bytes)
    }
}

/// Formats the first elements, then their number.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        f.write_str("[")?;
        for (i, value) in self.iter().take(SHOWN).enumerate() {
            write!(f, "{}{value}", if i > 0 { ", " } else { "" })?;
        }
        if self.len > SHOWN as u64 {
            write!(f, ", ... {} in total", self.len)?;
        }
        f.write_str("]")
    }
}

/// Iterator over the elements of an [`Array`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    array: &'a Array,
    pos: usize,
    left: u64,
}

impl Iterator for Elements<'_> {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        let Array { element_type, encoding, bytes, .. } = self.array;
        // The constructor has checked these bytes with the same rules, including the nesting depth.
        let (value, used) =
            read_value(*element_type, bytes, bytes.get(self.pos..)?, *encoding, u32::MAX).ok()?;
        self.pos += used;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

/// Fault in a scan of encoded values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanFault {
    /// Kind of fault.
    pub kind: ScanFaultKind,
    /// Position relative to the first scanned byte.
    pub at: usize,
}

/// Kind of fault in encoded values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanFaultKind {
    /// A length or count exceeds the bytes: at least this many bytes from the fault on are
    /// required.
    PastEnd(u64),
    /// The element type is unknown.
    UnknownType(u32),
    /// A boolean is neither 0 nor 1.
    NotBool(u8),
    /// Arrays are nested deeper than allowed.
    TooDeep,
}

impl ScanFault {
    fn new(kind: ScanFaultKind, at: usize) -> Self {
        Self { kind, at }
    }

    fn past_end(at: usize, needed: u64) -> Self {
        Self::new(ScanFaultKind::PastEnd(needed), at)
    }

    fn shifted(self, by: usize) -> Self {
        Self { at: self.at + by, ..self }
    }
}

/// Reads one value at the start of `bytes`, a part of `file`, and returns it with its length in
/// bytes.
pub(crate) fn read_value(
    value_type: ValueType,
    file: &Bytes,
    bytes: &[u8],
    encoding: Encoding,
    depth: u32,
) -> Result<(Value, usize), ScanFault> {
    // Used only by types of a fixed size.
    let past_end = ScanFault::past_end(0, value_type.byte_len().unwrap_or(0) as u64);
    macro_rules! number {
        ($variant:ident, $ty:ty) => {{
            let raw = encoding.number(bytes, 0).ok_or(past_end)?;
            Value::$variant(<$ty>::from_le_bytes(raw))
        }};
    }
    let value = match value_type {
        ValueType::U8 => number!(U8, u8),
        ValueType::I8 => number!(I8, i8),
        ValueType::U16 => number!(U16, u16),
        ValueType::I16 => number!(I16, i16),
        ValueType::U32 => number!(U32, u32),
        ValueType::I32 => number!(I32, i32),
        ValueType::F32 => number!(F32, f32),
        ValueType::U64 => number!(U64, u64),
        ValueType::I64 => number!(I64, i64),
        ValueType::F64 => number!(F64, f64),
        ValueType::Bool => match bytes.first() {
            Some(&byte @ 0..=1) => Value::Bool(byte == 1),
            Some(&byte) => return Err(ScanFault::new(ScanFaultKind::NotBool(byte), 0)),
            None => return Err(past_end),
        },
        ValueType::String => {
            let end = string_end(bytes, 0, encoding)
                .ok_or_else(|| ScanFault::past_end(0, string_needs(bytes, 0, encoding)))?;
            let text = file.slice_ref(string_text(bytes, end, encoding));
            return Ok((Value::String(text), end));
        }
        ValueType::Array => {
            let (element_type, len, start) = array_head(bytes, encoding)?;
            let depth = depth.checked_sub(1).ok_or(ScanFault::new(ScanFaultKind::TooDeep, 0))?;
            let (array, used) =
                Array::scan(element_type, len, file, &bytes[start..], encoding, depth)
                    .map_err(|fault| fault.shifted(start))?;
            return Ok((Value::Array(array), start + used));
        }
    };
    // Only types of a fixed size get here.
    Ok((value, value_type.byte_len().unwrap_or(0)))
}

fn array_head(bytes: &[u8], encoding: Encoding) -> Result<(ValueType, u64, usize), ScanFault> {
    let past_end = ScanFault::past_end(0, array_head_bytes(encoding));
    let id = encoding.u32(bytes, 0).ok_or(past_end)?;
    let element_type =
        ValueType::from_id(id).ok_or(ScanFault::new(ScanFaultKind::UnknownType(id), 0))?;
    let len = encoding.count(bytes, 4).ok_or(past_end)?;
    Ok((element_type, len, 4 + encoding.count_bytes()))
}

/// Size of an array's element type and count in bytes.
fn array_head_bytes(encoding: Encoding) -> u64 {
    4 + encoding.count_bytes() as u64
}

/// Returns the minimum number of bytes from `pos` on that the string there takes.
fn string_needs(bytes: &[u8], pos: usize, encoding: Encoding) -> u64 {
    let len = encoding.count(bytes, pos).unwrap_or(0);
    len.saturating_add(encoding.count_bytes() as u64)
}

/// Returns the end of the string at `pos`; `None` if it exceeds `bytes`.
#[inline(always)]
fn string_end(bytes: &[u8], pos: usize, encoding: Encoding) -> Option<usize> {
    let len = encoding.count(bytes, pos)?;
    let start = pos + encoding.count_bytes();
    (len <= (bytes.len() - start) as u64).then(|| start + len as usize)
}

/// Returns the text of the string at the start of `bytes`, which ends at `end`.
fn string_text(bytes: &[u8], end: usize, encoding: Encoding) -> &[u8] {
    let text = &bytes[encoding.count_bytes()..end];
    // The C++ tools of version 1 wrote and counted a final NUL in every string.
    if encoding.counts_32bit { text.strip_suffix(&[0]).unwrap_or(text) } else { text }
}

/// Checks `len` encoded elements at the start of `bytes` and returns their end.
fn scan_elements(
    element_type: ValueType,
    len: u64,
    file: &Bytes,
    bytes: &[u8],
    encoding: Encoding,
    depth: u32,
) -> Result<usize, ScanFault> {
    // A count is forged if its smallest elements do not fit: nothing below may loop on it.
    let least = least_bytes(element_type, len, encoding);
    if least > bytes.len() as u64 {
        return Err(ScanFault::past_end(0, least));
    }
    if element_type.byte_len().is_some() {
        let end = least as usize;
        if element_type == ValueType::Bool
            && let Some(at) = bytes[..end].iter().position(|&byte| byte > 1)
        {
            return Err(ScanFault::new(ScanFaultKind::NotBool(bytes[at]), at));
        }
        return Ok(end);
    }
    if element_type == ValueType::String {
        return match encoding {
            // Fast path: the loop has only load, compare and add.
            Encoding { order: ByteOrder::Little, counts_32bit: false } => {
                hop_strings(len, bytes, Encoding::default())
            }
            other => hop_strings(len, bytes, other),
        };
    }
    let mut pos = 0;
    for _ in 0..len {
        // The previous elements were complete, so `pos` is within the bytes.
        let (_, used) = read_value(element_type, file, &bytes[pos..], encoding, depth)
            .map_err(|fault| fault.shifted(pos))?;
        pos += used;
    }
    Ok(pos)
}

#[inline(always)]
fn hop_strings(len: u64, bytes: &[u8], encoding: Encoding) -> Result<usize, ScanFault> {
    let mut pos = 0;
    for i in 0..len {
        pos = string_end(bytes, pos, encoding).ok_or_else(|| {
            let after = least_bytes(ValueType::String, len - i - 1, encoding);
            ScanFault::past_end(pos, string_needs(bytes, pos, encoding).saturating_add(after))
        })?;
    }
    Ok(pos)
}

/// Returns the minimum number of bytes that `len` elements take; exact for types of a fixed size.
fn least_bytes(element_type: ValueType, len: u64, encoding: Encoding) -> u64 {
    let each = match element_type {
        ValueType::Array => array_head_bytes(encoding),
        _ => element_type.byte_len().unwrap_or(encoding.count_bytes()) as u64,
    };
    len.saturating_mul(each)
}

impl Value {
    /// Appends the value without its type; `None` if a count does not fit.
    pub(crate) fn write(&self, out: &mut Vec<u8>, encoding: Encoding) -> Option<()> {
        match self {
            Self::U8(v) => encoding.push(out, v.to_le_bytes()),
            Self::I8(v) => encoding.push(out, v.to_le_bytes()),
            Self::U16(v) => encoding.push(out, v.to_le_bytes()),
            Self::I16(v) => encoding.push(out, v.to_le_bytes()),
            Self::U32(v) => encoding.push(out, v.to_le_bytes()),
            Self::I32(v) => encoding.push(out, v.to_le_bytes()),
            Self::F32(v) => encoding.push(out, v.to_le_bytes()),
            Self::U64(v) => encoding.push(out, v.to_le_bytes()),
            Self::I64(v) => encoding.push(out, v.to_le_bytes()),
            Self::F64(v) => encoding.push(out, v.to_le_bytes()),
            Self::Bool(v) => out.push((*v).into()),
            Self::String(bytes) => encoding.push_text(out, bytes)?,
            Self::Array(array) => array.write(out, encoding)?,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIG: Encoding = Encoding { order: ByteOrder::Big, counts_32bit: false };
    const COUNTS_32BIT: Encoding = Encoding { order: ByteOrder::Little, counts_32bit: true };

    #[test]
    fn numbers_have_little_endian_bytes() {
        assert_eq!(Array::from(&[1u16, 515][..]).little_endian(), Some(&[1, 0, 3, 2][..]));
        assert_eq!(Array::from(&[true][..]).little_endian(), None);
        assert_eq!(Array::from_strings(["a"]).little_endian(), None);
        let mut bytes = Vec::new();
        Array::from(&[1u16][..]).write(&mut bytes, BIG).unwrap();
        let file = Bytes::from(bytes);
        let (value, _) = read_value(ValueType::Array, &file, &file, BIG, 1).unwrap();
        assert_eq!(value.as_array().unwrap().little_endian(), None);
    }

    #[test]
    fn every_encoding_round_trips() {
        let nested = [Array::from(&[1u16, 2][..]), Array::from_strings(["a", ""])];
        let mut bytes = Vec::new();
        for array in &nested {
            array.write(&mut bytes, Encoding::default()).unwrap();
        }
        let nested = Array::owned(ValueType::Array, 2, bytes);
        let arrays =
            [Array::from_strings(["x", "", "héllo"]), Array::from(&[1.5f32, -2.0][..]), nested];
        for array in arrays {
            for encoding in [Encoding::default(), BIG, COUNTS_32BIT] {
                let mut out = Vec::new();
                array.write(&mut out, encoding).unwrap();
                let out = Bytes::from(out);
                let (back, used) = read_value(ValueType::Array, &out, &out, encoding, 2).unwrap();
                assert_eq!(used, out.len());
                assert_eq!(back, Value::Array(array.clone()));
            }
        }
    }

    #[test]
    fn filtering_keeps_order_and_type() {
        let strings = Array::from_strings(["a", "bc", "", "d"]);
        assert_eq!(strings.filtered(|i| i != 1), Array::from_strings(["a", "", "d"]));
        let mut big = Vec::new();
        Array::from(&[1u16, 2, 3][..]).write(&mut big, BIG).unwrap();
        let big = Bytes::from(big);
        let Value::Array(read) = read_value(ValueType::Array, &big, &big, BIG, 1).unwrap().0 else {
            unreachable!("an array was written")
        };
        assert_eq!(read.filtered(|i| i > 0), Array::from(&[2u16, 3][..]));
    }

    #[test]
    fn forged_counts_allocate_nothing() {
        let scan = |ty, len, bytes: &[u8]| {
            let bytes = Bytes::copy_from_slice(bytes);
            scan_elements(ty, len, &bytes, &bytes, Encoding::default(), 4)
        };
        let past_end = |at, needed| Err(ScanFault::past_end(at, needed));
        assert_eq!(scan(ValueType::U64, u64::MAX, &[0; 64]), past_end(0, u64::MAX));
        assert_eq!(scan(ValueType::U64, 1 << 61, &[0; 64]), past_end(0, u64::MAX));
        assert_eq!(scan(ValueType::U64, 9, &[0; 64]), past_end(0, 72));
        assert_eq!(scan(ValueType::String, 60, &[0; 64]), past_end(0, 480));
        assert_eq!(scan(ValueType::String, 1, &[0xff; 64]), past_end(0, u64::MAX));
        // The second string lacks 4 of its 20 bytes, and two more strings must follow.
        let strings = [&[0; 8][..], &[20, 0, 0, 0, 0, 0, 0, 0], &[0; 16]].concat();
        assert_eq!(scan(ValueType::String, 4, &strings), past_end(8, 28 + 16));
        let bools = Err(ScanFault::new(ScanFaultKind::NotBool(2), 2));
        assert_eq!(scan(ValueType::Bool, 3, &[0, 1, 2]), bools);
    }
}
