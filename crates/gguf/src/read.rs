//! Bytes to header, in one pass over borrowed bytes.
//!
//! [`write`](crate::write) is the mirror image of this file: same parts, same order.

use std::borrow::Cow;
use std::ops::ControlFlow;

use crate::array::{ScanFault, ScanFaultKind, read_value};
use crate::encoding::{ByteOrder, Encoding};
use crate::error::Error;
use crate::finding::{Collector, Finding, Sink, Strict};
use crate::header::{Draft, EntrySpan, Header, Spans};
use crate::metadata::Metadata;
use crate::rules::{self, Extent, Subject};
use crate::tensor::{MAX_DIMS, Shape, TensorInfo};
use crate::tensor_type::TensorType;
use crate::value::{Value, ValueType};

/// The four bytes every GGUF file begins with.
pub const MAGIC: [u8; 4] = *b"GGUF";

/// What a reader is willing to spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Levels of arrays within arrays.
    pub array_depth: u32,
    /// Entries of the metadata plus entries of the directory. Each takes memory whatever its
    /// size in the file, about eight times the smallest one's bytes.
    pub entries: u64,
}

impl Default for Limits {
    /// 8 levels, four million entries.
    fn default() -> Self {
        Self { array_depth: 8, entries: 4 << 20 }
    }
}

/// A GGUF in memory or mapped: its header, and its bytes.
///
/// ```
/// # fn main() -> Result<(), gguf::Error> {
/// let mut draft = gguf::Draft::default();
/// draft.metadata.set("general.architecture", "llama");
/// let bytes = gguf::write_header(&gguf::Header::new(draft)?)?;
///
/// let model = gguf::Gguf::read(&bytes)?;
/// assert_eq!(model.metadata().architecture(), Some("llama"));
/// assert_eq!(model.tensors().len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Gguf<'a> {
    header: Header<'a>,
    spans: Spans,
    data_start: u64,
    bytes: &'a [u8],
}

impl<'a> Gguf<'a> {
    /// Reads a whole file's bytes strictly: nothing that breaks the format gets through.
    ///
    /// Costs one pass over the header and memory for its entries; strings and arrays are views.
    ///
    /// # Errors
    /// [`Error::File`] with the first rule that the file breaks.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::read_within(bytes, Limits::default())
    }

    /// As [`Gguf::read`], with other limits.
    ///
    /// # Errors
    /// As [`Gguf::read`].
    pub fn read_within(bytes: &'a [u8], limits: Limits) -> Result<Self, Error> {
        let (draft, spans) = parse(bytes, limits).map_err(|fault| Error::File(Box::new(fault)))?;
        let data_start = data_start(&draft, &spans);
        let file = Some(Extent { data_start, len: bytes.len() as u64 });
        let mut sink = Strict::default();
        let subject = Subject { draft: &draft, spans: Some(&spans), file };
        let _ = rules::header_rules(&subject, &mut sink);
        let header = Header::checked(draft, sink)?;
        Ok(Self { header, spans, data_start, bytes })
    }

    /// The checked header.
    pub fn header(&self) -> &Header<'a> {
        &self.header
    }

    /// Keys and values.
    pub fn metadata(&self) -> &Metadata<'a> {
        self.header.metadata()
    }

    /// The tensor directory, in file order.
    pub fn tensors(&self) -> &[TensorInfo<'a>] {
        self.header.tensors()
    }

    /// Where the header's fields stand in the file.
    pub fn spans(&self) -> &Spans {
        &self.spans
    }

    /// Where the data section begins, in bytes from the start of the file.
    pub fn data_start(&self) -> u64 {
        self.data_start
    }

    /// The bytes of a tensor of this file.
    ///
    /// `None` if its size is not known (see [`TensorInfo::byte_len`]) or if it does not lie
    /// within the file, which cannot be for an entry of this directory.
    pub fn data(&self, tensor: &TensorInfo) -> Option<&'a [u8]> {
        let start = self.data_start.checked_add(tensor.offset)?;
        let end = start.checked_add(tensor.byte_len()?)?;
        self.bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// The header alone.
    pub fn into_header(self) -> Header<'a> {
        self.header
    }
}

/// Everything the rules find in a file's bytes, most of it no reason to refuse the file, and its
/// header as far as it can be read.
///
/// Tensor data are not looked at.
pub fn check<'a>(bytes: &'a [u8]) -> (Vec<Finding>, Option<Draft<'a>>) {
    let mut sink = Collector::new();
    let (draft, spans) = match parse(bytes, Limits::default()) {
        Ok(parsed) => parsed,
        Err(fault) => {
            // The collector never breaks.
            let _ = sink.report(fault);
            return (sink.into_findings(), None);
        }
    };
    let file = Some(Extent { data_start: data_start(&draft, &spans), len: bytes.len() as u64 });
    let _: ControlFlow<()> =
        rules::all(&Subject { draft: &draft, spans: Some(&spans), file }, &mut sink);
    (sink.into_findings(), Some(draft))
}

/// Where the data section of a parsed header begins.
fn data_start(draft: &Draft, spans: &Spans) -> u64 {
    let alignment = draft.alignment().unwrap_or_default();
    // A position within a file does not overflow when it is aligned.
    alignment.align_up(spans.end).unwrap_or(spans.end)
}

/// Parses a header without judging it: only what makes going on impossible is a fault.
///
/// # Errors
/// The finding that ended the parse.
pub(crate) fn parse<'a>(bytes: &'a [u8], limits: Limits) -> Result<(Draft<'a>, Spans), Finding> {
    let (version, order) = magic(bytes)?;
    let encoding = Encoding { order, narrow: version == 1 };
    let mut cursor = Cursor { bytes, pos: 8, encoding };
    let n_tensors = cursor.count("tensor count")?;
    let n_entries = cursor.count("metadata count")?;
    // Smallest entry: an empty key, a type, one byte; an empty name, no dimension, type, offset.
    let count_bytes = encoding.count_bytes() as u64;
    let least = (n_entries.checked_mul(count_bytes + 5))
        .zip(n_tensors.checked_mul(count_bytes + 16))
        .and_then(|(entries, tensors)| entries.checked_add(tensors));
    if least.is_none_or(|least| least > cursor.left()) {
        return Err(truncated(format!(
            "{n_entries} keys and {n_tensors} tensors do not fit the {} bytes that follow",
            cursor.left()
        ))
        .at(8));
    }
    // Both fit the file now, so their sum fits 64 bits.
    if n_entries + n_tensors > limits.entries {
        let message = format!(
            "{n_entries} keys and {n_tensors} tensors are more than the limit of {}",
            limits.entries
        );
        return Err(Finding::error("limit-entries", message)
            .at(8)
            .help("raise the limit if you trust the file"));
    }
    let mut spans = Spans::default();
    let metadata = entries(&mut cursor, n_entries, limits, &mut spans)?;
    let tensors = directory(&mut cursor, n_tensors, &mut spans)?;
    spans.end = cursor.pos as u64;
    Ok((Draft { version, order, metadata, tensors }, spans))
}

/// Version and byte order, told from the first eight bytes.
fn magic(bytes: &[u8]) -> Result<(u32, ByteOrder), Finding> {
    let not_gguf = |message: &str, help| Err(Finding::error("magic", message).at(0).help(help));
    let Some(magic) = bytes.first_chunk::<4>() else {
        return not_gguf("the file has less than four bytes", "copy or download it again");
    };
    match magic {
        _ if *magic == MAGIC => {}
        b"lmgg" | b"fmgg" | b"tjgg" | b"algg" | b"ccgg" => {
            return not_gguf(
                "this is a GGML file from before GGUF",
                "convert it with `gguf convert`",
            );
        }
        b"vers" => {
            return not_gguf(
                "this is a Git LFS pointer, not the file it stands for",
                "fetch the real file with `git lfs pull`",
            );
        }
        b"PK\x03\x04" => {
            return not_gguf(
                "this is a zip archive, perhaps a PyTorch checkpoint",
                "convert its directory with `gguf convert`",
            );
        }
        _ => {
            return not_gguf(
                "the file does not begin with GGUF",
                "it is another kind of file, or its start was overwritten",
            );
        }
    }
    let Some(raw) = bytes[4..].first_chunk::<4>() else {
        return Err(truncated("the version is cut off".into()).at(4));
    };
    // A version is a small number: in the wrong byte order its low half is empty.
    let little = u32::from_le_bytes(*raw);
    let (version, order) = if little & 0xffff == 0 && little != 0 {
        (little.swap_bytes(), ByteOrder::Big)
    } else {
        (little, ByteOrder::Little)
    };
    if !rules::header::VERSIONS.contains(&version) {
        return Err(rules::header::version_unknown(version));
    }
    Ok((version, order))
}

fn entries<'a>(
    cursor: &mut Cursor<'a>,
    n: u64,
    limits: Limits,
    spans: &mut Spans,
) -> Result<Metadata<'a>, Finding> {
    let mut metadata = Vec::with_capacity(n as usize);
    spans.entries.reserve_exact(n as usize);
    for i in 0..n {
        let start = cursor.pos as u64;
        let key = cursor.text("key").map_err(|fault| in_entry(fault, i, None))?;
        let named = |fault| in_entry(fault, i, Some(key));
        let type_at = cursor.pos as u64;
        let id = cursor.u32("value type").map_err(named)?;
        let value_type =
            ValueType::from_id(id).ok_or_else(|| named(unknown_value_type(id).at(type_at)))?;
        let value = cursor.pos as u64;
        spans.entries.push(EntrySpan { start, value });
        metadata.push((Cow::Borrowed(key), cursor.value(value_type, limits).map_err(named)?));
    }
    Ok(metadata.into_iter().collect())
}

fn directory<'a>(
    cursor: &mut Cursor<'a>,
    n: u64,
    spans: &mut Spans,
) -> Result<Vec<TensorInfo<'a>>, Finding> {
    let mut tensors = Vec::with_capacity(n as usize);
    spans.tensors.reserve_exact(n as usize);
    for i in 0..n {
        spans.tensors.push(cursor.pos as u64);
        let unnamed = |fault: Finding| Finding {
            message: format!("entry {i} of the tensor directory: {}", fault.message).into(),
            ..fault
        };
        let name = cursor.text("tensor name").map_err(unnamed)?;
        tensors.push(tensor(cursor, name).map_err(|fault| fault.tensor(name))?);
    }
    Ok(tensors)
}

fn tensor<'a>(cursor: &mut Cursor<'a>, name: &'a str) -> Result<TensorInfo<'a>, Finding> {
    let dims_at = cursor.pos as u64;
    let n_dims = cursor.u32("dimension count")?;
    let mut dims = [0; MAX_DIMS];
    let Some(dims) = dims.get_mut(..n_dims as usize) else {
        let message = format!("{n_dims} dimensions, at most {MAX_DIMS} are allowed");
        return Err(Finding::error("tensor-dimensions", message).at(dims_at));
    };
    for dim in &mut *dims {
        *dim = cursor.count("dimension")?;
    }
    // There are no more than the dimensions a shape can have.
    let shape = Shape::new(dims).unwrap_or_else(|| unreachable!());
    Ok(TensorInfo {
        name: Cow::Borrowed(name),
        shape,
        tensor_type: TensorType::from_id(cursor.u32("tensor type")?),
        offset: cursor.u64("tensor offset")?,
    })
}

/// A position in the header's bytes.
struct Cursor<'a> {
    bytes: &'a [u8],
    pos: usize,
    encoding: Encoding,
}

impl<'a> Cursor<'a> {
    fn left(&self) -> u64 {
        (self.bytes.len() - self.pos.min(self.bytes.len())) as u64
    }

    fn cut(&self, what: &str) -> Finding {
        truncated(format!("the file ends within a {what}")).at(self.pos as u64)
    }

    fn u32(&mut self, what: &str) -> Result<u32, Finding> {
        let value = self.encoding.u32(self.bytes, self.pos).ok_or_else(|| self.cut(what))?;
        self.pos += 4;
        Ok(value)
    }

    fn u64(&mut self, what: &str) -> Result<u64, Finding> {
        let value = self.encoding.u64(self.bytes, self.pos).ok_or_else(|| self.cut(what))?;
        self.pos += 8;
        Ok(value)
    }

    fn count(&mut self, what: &str) -> Result<u64, Finding> {
        let value = self.encoding.count(self.bytes, self.pos).ok_or_else(|| self.cut(what))?;
        self.pos += self.encoding.count_bytes();
        Ok(value)
    }

    /// A name: must be UTF-8. In files of the first months a NUL ends it, which is dropped.
    fn text(&mut self, what: &str) -> Result<&'a str, Finding> {
        let at = self.pos as u64;
        let len = self.count(what)?;
        if len > self.left() {
            let message = format!("a {what} of {len} bytes reaches past the end of the file");
            return Err(truncated(message).at(at));
        }
        let bytes = &self.bytes[self.pos..][..len as usize];
        self.pos += len as usize;
        let text = std::str::from_utf8(bytes).map_err(|_| {
            Finding::error("name-not-utf8", format!("a {what} is not UTF-8")).at(at)
        })?;
        Ok(if self.encoding.narrow { text.strip_suffix('\0').unwrap_or(text) } else { text })
    }

    fn value(&mut self, value_type: ValueType, limits: Limits) -> Result<Value<'a>, Finding> {
        // `pos` is within the file: the value type before it was read.
        let bytes = &self.bytes[self.pos..];
        let (value, used) = read_value(value_type, bytes, self.encoding, limits.array_depth)
            .map_err(|fault| describe(fault, self.pos))?;
        self.pos += used;
        Ok(value)
    }
}

fn describe(fault: ScanFault, pos: usize) -> Finding {
    let finding = match fault.kind {
        ScanFaultKind::PastEnd => truncated("the value reaches past the end of the file".into()),
        ScanFaultKind::UnknownType(id) => unknown_value_type(id),
        ScanFaultKind::NotBool(byte) => {
            Finding::error("value-not-bool", format!("a truth value is {byte}, not 0 or 1"))
        }
        ScanFaultKind::TooDeep => {
            Finding::error("array-too-deep", "arrays are nested deeper than the limit")
        }
    };
    finding.at((pos + fault.at) as u64)
}

fn truncated(message: String) -> Finding {
    Finding::error("truncated", message)
        .help("the file is cut off or a length in it is wrong: copy or download it again")
}

fn unknown_value_type(id: u32) -> Finding {
    Finding::error("value-type-unknown", format!("{id} is not a value type; 0 to 12 exist"))
}

fn in_entry(fault: Finding, i: u64, key: Option<&str>) -> Finding {
    match key {
        Some(key) => fault.key(key),
        None => {
            let message = format!("metadata entry {i}: {}", fault.message).into();
            Finding { message, ..fault }
        }
    }
}
