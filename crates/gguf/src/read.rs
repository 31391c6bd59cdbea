//! Parser of headers, in one pass over shared bytes.
//!
//! [`write`](crate::write) is the inverse, with the same functions in the same order.

use std::ops::{ControlFlow, Range};

use bytes::Bytes;

use crate::encoding::{ByteOrder, Encoding};
use crate::error::Error;
use crate::finding::{Collector, Finding, Severity, Sink, Strict};
use crate::foreign_format;
use crate::header::Header;
use crate::metadata::Metadata;
use crate::raw_header::{EntrySpan, RawHeader, Spans};
use crate::rules::{self, Extent, Rules, Subject};
use crate::tensor::{MAX_DIMS, Shape, TensorInfo};
use crate::tensor_type::TensorType;
use crate::value::array::{ScanFault, ScanFaultKind, read_value};
use crate::value::{Value, ValueType};

/// Magic bytes of a GGUF file.
pub const MAGIC: [u8; 4] = *b"GGUF";

/// Maximum size of the tensors of a damaged file together: 72 petabytes.
const MAX_DAMAGED_BYTES: u64 = 1 << 56;

/// Resource limits of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum nesting depth of arrays.
    pub array_depth: u32,
    /// Maximum number of metadata and directory entries together. An entry takes about eight times
    /// its minimum file size in memory.
    pub entries: u64,
    /// Maximum header size that `gguf_store::fetch_header` requests from a source. Does not apply
    /// to files in memory.
    pub header_bytes: u64,
}

impl Default for Limits {
    /// Returns 8 levels, four million entries and 256 MiB: ten times the longest header of a model
    /// today.
    fn default() -> Self {
        Self { array_depth: 8, entries: 4 << 20, header_bytes: 256 << 20 }
    }
}

/// GGUF file in memory or memory-mapped: its header, and its bytes, which are shared and not
/// copied; or only the header of a remote file ([`Gguf::read_header`]).
///
/// ```
/// # fn main() -> Result<(), gguf::Error> {
/// let mut raw = gguf::RawHeader::default();
/// raw.metadata.set("general.architecture", "llama");
/// let bytes = gguf::write_header(&gguf::Header::new(raw)?)?.into();
///
/// let model = gguf::Gguf::read(&bytes)?;
/// assert_eq!(model.metadata().architecture(), Some("llama"));
/// assert_eq!(model.tensors().len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Gguf {
    header: Header,
    spans: Spans,
    data_start: u64,
    header_complete: bool,
    bytes: Bytes,
}

impl Gguf {
    /// Reads the bytes of a whole file strictly: rejects every violation of the format.
    ///
    /// Takes one pass over the header, and memory for its entries; strings and arrays are views.
    ///
    /// # Errors
    /// [`Error::File`] with the first rule that the file violates.
    pub fn read(bytes: &Bytes) -> Result<Self, Error> {
        Self::read_within(bytes, Limits::default())
    }

    /// Reads as [`Gguf::read`], with other limits.
    ///
    /// # Errors
    /// As [`Gguf::read`].
    pub fn read_within(bytes: &Bytes, limits: Limits) -> Result<Self, Error> {
        Self::read_header(bytes, bytes.len() as u64, limits)
    }

    /// Reads the header of a file of `file_len` bytes from its first `bytes` (see
    /// [`header_extent`]). All rules apply as for the whole file; [`Gguf::data`] returns nothing
    /// beyond `bytes`, [`Gguf::data_range`] returns the byte range.
    ///
    /// # Errors
    /// As [`Gguf::read`]; [`Error::Caller`] if the header is longer than `bytes`.
    pub fn read_header(bytes: &Bytes, file_len: u64, limits: Limits) -> Result<Self, Error> {
        let (raw, spans) = parse(bytes, file_len, limits).map_err(|stop| match stop {
            Stop::Fault(fault) => fault.into(),
            Stop::Short(needed) => Error::request("header-short", short(bytes, needed), ""),
        })?;
        let data_start = data_start(&raw, &spans);
        let file = Some(Extent { data_start, len: file_len });
        let mut sink = Strict::default();
        let subject = Subject { header: &raw, spans: Some(&spans), file };
        let _ = rules::header_rules(&subject, &mut sink);
        let header = Header::checked(raw, sink)?;
        Ok(Self { header, spans, data_start, header_complete: true, bytes: bytes.clone() })
    }

    /// Reads the header of a damaged file, for programs that show what is intact: keys or tensors may
    /// occur twice, tensor data may overlap, be misaligned or be missing, and the file may end within the
    /// header. Returns what can be read with the violations, the end of the file first; `None` if the header
    /// has no complete entry or breaks other rules.
    ///
    /// The header is not for writing: [`Header::new`] rejects it.
    pub fn read_damaged(
        bytes: &Bytes,
        file_len: u64,
        limits: Limits,
    ) -> Option<(Self, Vec<Finding>)> {
        const TOLERATED: [&str; 6] = [
            "key-duplicate",
            "tensor-duplicate",
            "tensor-overlap",
            "tensor-offset-misaligned",
            "tensor-past-end",
            "truncated",
        ];
        let (raw, spans, end_of_file) = parse_truncated(bytes, file_len, limits).ok()?;
        if raw.metadata.is_empty() && raw.tensors.is_empty() && end_of_file.is_some() {
            return None;
        }
        // Without the end of the file, nothing else bounds the sizes: sums must not overflow.
        let sizes = raw.tensors.iter().map(|tensor| tensor.byte_len().unwrap_or(0));
        if sizes.fold(0, u64::saturating_add) > MAX_DAMAGED_BYTES {
            return None;
        }
        let header_complete = end_of_file.is_none();
        // The data of a file that ends within the header would begin after its end.
        let data_start = match header_complete {
            true => data_start(&raw, &spans),
            false => file_len.max(data_start(&raw, &spans)),
        };
        let mut sink = Collector::new();
        let file = Some(Extent { data_start, len: file_len });
        let subject = Subject { header: &raw, spans: Some(&spans), file };
        // The collector never breaks.
        let _ = rules::header_rules(&subject, &mut sink);
        let mut violations: Vec<_> = end_of_file.into_iter().chain(sink.into_findings()).collect();
        violations.retain(|finding| finding.severity == Severity::Error);
        if !violations.iter().all(|finding| TOLERATED.contains(&finding.code)) {
            return None;
        }
        let header = Header::damaged(raw);
        let gguf = Self { header, spans, data_start, header_complete, bytes: bytes.clone() };
        Some((gguf, violations))
    }

    /// Returns the header, valid unless [`Gguf::read_damaged`] read it.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns keys and values.
    pub fn metadata(&self) -> &Metadata {
        self.header.metadata()
    }

    /// Returns the tensor directory, in file order.
    pub fn tensors(&self) -> &[TensorInfo] {
        self.header.tensors()
    }

    /// Returns the byte offsets of the header's fields.
    pub fn spans(&self) -> &Spans {
        &self.spans
    }

    /// Whether the file has its whole header; `false` only for a file that [`Gguf::read_damaged`] read, which then
    /// has the complete entries.
    pub fn header_complete(&self) -> bool {
        self.header_complete
    }

    /// Returns the byte offset of the data section: of an incomplete header, the end of the file or later.
    pub fn data_start(&self) -> u64 {
        self.data_start
    }

    /// Returns the bytes of a tensor of this file.
    ///
    /// `None` if its size is unknown (see [`TensorInfo::byte_len`]) or the data are not within the
    /// available bytes; neither happens for a directory entry of a file that was read whole.
    pub fn data(&self, tensor: &TensorInfo) -> Option<&[u8]> {
        let Range { start, end } = self.data_range(tensor)?;
        // A file may end before the padding that precedes an empty tensor.
        if start == end {
            return Some(&[]);
        }
        self.bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// Returns the byte range of a tensor in the file.
    ///
    /// `None` if its size is unknown (see [`TensorInfo::byte_len`]).
    pub fn data_range(&self, tensor: &TensorInfo) -> Option<Range<u64>> {
        let start = self.data_start.checked_add(tensor.offset)?;
        Some(start..start.checked_add(tensor.byte_len()?)?)
    }

    /// Returns the available bytes.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the header.
    pub fn into_header(self) -> Header {
        self.header
    }
}

/// Checks a file's bytes by the rules of the format: returns all findings, and the header if it can be
/// parsed.
///
/// Tensor data is not read.
pub fn check(bytes: &Bytes) -> (Vec<Finding>, Option<RawHeader>) {
    check_header(bytes, bytes.len() as u64)
}

/// Checks a header that is not in a file by the rules of the format, then by `more`.
pub fn check_raw_header_with(raw: &RawHeader, more: Rules) -> Vec<Finding> {
    let mut sink = Collector::new();
    let subject = Subject::header_only(raw);
    // The collector never breaks.
    let _ = rules::format_rules(&subject, &mut sink);
    let _ = more(&subject, &mut sink);
    sink.into_findings()
}

/// Checks a file of `file_len` bytes, of which `bytes` are the first (see [`header_extent`]), by the
/// rules of the format: returns all findings, and the header if it can be parsed.
///
/// A header that is longer than `bytes` is an error among the findings.
pub fn check_header(bytes: &Bytes, file_len: u64) -> (Vec<Finding>, Option<RawHeader>) {
    check_header_with(bytes, file_len, |_, _| ControlFlow::Continue(()))
}

/// Checks a file as [`check_header`] does, then by the rules `more`.
pub fn check_header_with(
    bytes: &Bytes,
    file_len: u64,
    more: Rules,
) -> (Vec<Finding>, Option<RawHeader>) {
    let mut sink = Collector::new();
    let (raw, spans) = match parse(bytes, file_len, Limits::default()) {
        Ok(parsed) => parsed,
        Err(stop) => {
            // The collector never breaks.
            let _ = sink.report(match stop {
                Stop::Fault(fault) => fault,
                Stop::Short(needed) => truncated(short(bytes, needed)).at(bytes.len() as u64),
            });
            return (sink.into_findings(), None);
        }
    };
    let file = Some(Extent { data_start: data_start(&raw, &spans), len: file_len });
    let subject = Subject { header: &raw, spans: Some(&spans), file };
    let _ = rules::format_rules(&subject, &mut sink);
    let _ = more(&subject, &mut sink);
    (sink.into_findings(), Some(raw))
}

/// Extent of a header in its file, as far as the available bytes show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderExtent {
    /// The header is complete; the data section starts at this byte.
    Complete(u64),
    /// The header is longer: at least this many bytes from the start of the file are required,
    /// never more than the file has.
    Short(u64),
    /// The header is invalid; [`Gguf::read_header`] and [`check_header`] report the fault.
    Faulty,
}

/// Returns the extent of the header of a file of `file_len` bytes that starts with `bytes`. Readers
/// of remote files fetch more bytes until it is complete.
pub fn header_extent(bytes: &Bytes, file_len: u64, limits: Limits) -> HeaderExtent {
    match parse(bytes, file_len, limits) {
        Ok((raw, spans)) => HeaderExtent::Complete(data_start(&raw, &spans)),
        Err(Stop::Short(needed)) => HeaderExtent::Short(needed),
        Err(Stop::Fault(_)) => HeaderExtent::Faulty,
    }
}

/// Returns the offset of the data section of a parsed header.
fn data_start(raw: &RawHeader, spans: &Spans) -> u64 {
    let alignment = raw.alignment().unwrap_or_default();
    // Aligning a position within a file does not overflow.
    alignment.align_up(spans.end).unwrap_or(spans.end)
}

/// Reason why parsing stopped.
#[derive(Debug)]
enum Stop {
    /// The file is invalid.
    Fault(Finding),
    /// The header is longer than the available bytes: at least this many from the start of the file
    /// are required. Never more than the file has.
    Short(u64),
}

impl Stop {
    /// Adds the place of a fault.
    fn map(self, tell: impl FnOnce(Finding) -> Finding) -> Self {
        match self {
            Self::Fault(fault) => Self::Fault(tell(fault)),
            short => short,
        }
    }
}

impl From<Finding> for Stop {
    fn from(fault: Finding) -> Self {
        Self::Fault(fault)
    }
}

fn short(bytes: &[u8], needed: u64) -> String {
    format!("the header has {needed} bytes or more, of which {} are at hand", bytes.len())
}

/// Parses a header without checking it: only faults that prevent further parsing are reported.
///
/// `bytes` are the start of a file of `file_len` bytes, or all of it. Allocations are bounded by
/// `bytes`.
///
/// # Errors
/// The finding that stopped the parser, or the number of required bytes.
fn parse(bytes: &Bytes, file_len: u64, limits: Limits) -> Result<(RawHeader, Spans), Stop> {
    let (mut cursor, start) = start(bytes, file_len)?;
    start.check(&cursor, limits)?;
    let (raw, spans, stop) = entries_and_directory(&mut cursor, &start, limits);
    stop.map_or(Ok((raw, spans)), Err)
}

/// Parses a header up to where the file ends: entries that are not complete are left out. Returns the
/// fault, if there is one.
///
/// # Errors
/// As [`parse`], if the header has other faults.
fn parse_truncated(
    bytes: &Bytes,
    file_len: u64,
    limits: Limits,
) -> Result<(RawHeader, Spans, Option<Finding>), Stop> {
    let end_of_file = |stop| match stop {
        Stop::Fault(fault) if fault.code == "truncated" => Ok(fault),
        other => Err(other),
    };
    let (mut cursor, start) = start(bytes, file_len)?;
    let misfit = start.check(&cursor, limits).err().map(end_of_file).transpose()?;
    let (raw, spans, stop) = entries_and_directory(&mut cursor, &start, limits);
    let stop = stop.map(end_of_file).transpose()?;
    Ok((raw, spans, stop.or(misfit)))
}

/// The first fields of a header.
struct Start {
    version: u32,
    n_tensors: u64,
    n_entries: u64,
}

/// Parses the first fields, and returns the position after them.
fn start(bytes: &Bytes, file_len: u64) -> Result<(Cursor<'_>, Start), Stop> {
    let file_len = file_len.max(bytes.len() as u64);
    let (version, order) = magic(bytes, file_len)?;
    let encoding = Encoding { order, counts_32bit: version == 1 };
    let mut cursor = Cursor { bytes, file_len, pos: 8, encoding };
    let n_tensors = cursor.count("tensor count")?;
    let n_entries = cursor.count("metadata count")?;
    Ok((cursor, Start { version, n_tensors, n_entries }))
}

/// Size of the smallest metadata entry: an empty key, a type, one byte.
fn least_entry(encoding: Encoding) -> u64 {
    encoding.count_bytes() as u64 + 5
}

/// Size of the smallest directory entry: an empty name, no dimension, a type, an offset.
fn least_tensor(encoding: Encoding) -> u64 {
    encoding.count_bytes() as u64 + 16
}

impl Start {
    /// Checks that the file has room for all entries, and that the limits allow them.
    fn check(&self, cursor: &Cursor, limits: Limits) -> Result<(), Stop> {
        let &Self { n_tensors, n_entries, .. } = self;
        let least = (n_entries.checked_mul(least_entry(cursor.encoding)))
            .zip(n_tensors.checked_mul(least_tensor(cursor.encoding)))
            .and_then(|(entries, tensors)| entries.checked_add(tensors));
        let left = cursor.file_len - cursor.pos as u64;
        let Some(least) = least.filter(|&least| least <= left) else {
            return Err(truncated(format!(
                "{n_entries} keys and {n_tensors} tensors do not fit the {left} bytes that follow"
            ))
            .at(8)
            .into());
        };
        // Both counts fit the file, so their sum fits 64 bits.
        if n_entries + n_tensors > limits.entries {
            let message = format!(
                "{n_entries} keys and {n_tensors} tensors are more than the limit of {}",
                limits.entries
            );
            return Err(Finding::error("limit-entries", message)
                .at(8)
                .help("raise the limit if you trust the file")
                .into());
        }
        if least > cursor.left() {
            return Err(Stop::Short(cursor.pos as u64 + least));
        }
        Ok(())
    }
}

/// Parses what follows the counts, up to the first fault. The spans end with the last complete entry.
fn entries_and_directory(
    cursor: &mut Cursor,
    start: &Start,
    limits: Limits,
) -> (RawHeader, Spans, Option<Stop>) {
    let mut spans = Spans { end: cursor.pos as u64, ..Spans::default() };
    let (metadata, stop) = entries(cursor, start.n_entries, limits, &mut spans);
    let (tensors, stop) = match stop {
        None => directory(cursor, start.n_tensors, &mut spans),
        stop => (Vec::new(), stop),
    };
    let order = cursor.encoding.order;
    let mut raw = RawHeader { version: start.version, order, metadata, tensors };
    let data_len = cursor.file_len.saturating_sub(data_start(&raw, &spans));
    set_opaque_lens(&mut raw.tensors, data_len);
    (raw, spans, stop)
}

/// Sets the sizes of tensors of unknown types: up to the next tensor, or to the end of the data section.
fn set_opaque_lens(tensors: &mut [TensorInfo], data_len: u64) {
    if tensors.iter().all(|tensor| tensor.tensor_type.block().is_some()) {
        return;
    }
    let mut starts: Vec<u64> = tensors.iter().map(|tensor| tensor.offset).collect();
    starts.sort_unstable();
    for tensor in tensors.iter_mut().filter(|tensor| tensor.tensor_type.block().is_none()) {
        let next = starts.partition_point(|start| *start <= tensor.offset);
        let end = starts.get(next).copied().unwrap_or(data_len);
        tensor.opaque_len = end.checked_sub(tensor.offset);
    }
}

/// Detects version and byte order from the first eight bytes.
fn magic(bytes: &[u8], file_len: u64) -> Result<(u32, ByteOrder), Stop> {
    match bytes.first_chunk::<4>() {
        Some(magic) if *magic == MAGIC => {}
        None if file_len >= 4 => return Err(Stop::Short(4)),
        _ => return Err(foreign_format::finding(bytes).into()),
    }
    let Some(raw) = bytes[4..].first_chunk::<4>() else {
        if file_len >= 8 {
            return Err(Stop::Short(8));
        }
        return Err(truncated("the version is truncated".into()).at(4).into());
    };
    // Versions are small: in the wrong byte order the low half of the number is 0.
    let little = u32::from_le_bytes(*raw);
    let (version, order) = if little & 0xffff == 0 && little != 0 {
        (little.swap_bytes(), ByteOrder::Big)
    } else {
        (little, ByteOrder::Little)
    };
    if !rules::header::VERSIONS.contains(&version) {
        return Err(rules::header::version_unknown(version).into());
    }
    Ok((version, order))
}

/// Parses `n` metadata entries, or those before the first fault.
fn entries(
    cursor: &mut Cursor,
    n: u64,
    limits: Limits,
    spans: &mut Spans,
) -> (Metadata, Option<Stop>) {
    let room = n.min(cursor.left() / least_entry(cursor.encoding)) as usize;
    let mut metadata = Vec::with_capacity(room);
    spans.entries.reserve_exact(room);
    let stop = (0..n).try_for_each(|i| {
        let start = cursor.pos as u64;
        let key = cursor.text("key").map_err(|stop| in_entry(stop, i, None))?;
        let named = |stop| in_entry(stop, i, Some(key));
        let type_at = cursor.pos as u64;
        let id = cursor.u32("value type").map_err(named)?;
        let value_type = ValueType::from_id(id)
            .ok_or_else(|| named(unknown_value_type(id).at(type_at).into()))?;
        let value = cursor.pos as u64;
        metadata.push((key, cursor.value(value_type, limits).map_err(named)?));
        spans.entries.push(EntrySpan { start, value });
        spans.end = cursor.pos as u64;
        Ok(())
    });
    (metadata.into_iter().collect(), stop.err())
}

/// Parses `n` entries of the tensor directory, or those before the first fault.
fn directory(cursor: &mut Cursor, n: u64, spans: &mut Spans) -> (Vec<TensorInfo>, Option<Stop>) {
    let room = n.min(cursor.left() / least_tensor(cursor.encoding)) as usize;
    let mut tensors = Vec::with_capacity(room);
    spans.tensors.reserve_exact(room);
    let stop = (0..n).try_for_each(|i| {
        let start = cursor.pos as u64;
        let unnamed = |fault: Finding| Finding {
            message: format!("entry {i} of the tensor directory: {}", fault.message).into(),
            ..fault
        };
        let name = cursor.text("tensor name").map_err(|stop| stop.map(unnamed))?;
        tensors.push(tensor(cursor, name).map_err(|stop| stop.map(|fault| fault.tensor(name)))?);
        spans.tensors.push(start);
        spans.end = cursor.pos as u64;
        Ok(())
    });
    (tensors, stop.err())
}

fn tensor(cursor: &mut Cursor, name: &str) -> Result<TensorInfo, Stop> {
    let dims_at = cursor.pos as u64;
    let n_dims = cursor.u32("dimension count")?;
    let mut dims = [0; MAX_DIMS];
    let Some(dims) = dims.get_mut(..n_dims as usize) else {
        let message = format!("{n_dims} dimensions, at most {MAX_DIMS} are allowed");
        return Err(Finding::error("tensor-dimensions", message).at(dims_at).into());
    };
    for dim in &mut *dims {
        *dim = cursor.count("dimension")?;
    }
    // The shape has at most this many dimensions.
    let shape = Shape::new(dims).unwrap_or_else(|| unreachable!());
    Ok(TensorInfo {
        name: name.to_owned(),
        shape,
        tensor_type: TensorType::from_id(cursor.u32("tensor type")?),
        offset: cursor.u64("tensor offset")?,
        opaque_len: None,
    })
}

/// A position in the header's bytes.
struct Cursor<'a> {
    bytes: &'a Bytes,
    file_len: u64,
    /// Never past the end of `bytes`.
    pos: usize,
    encoding: Encoding,
}

impl<'a> Cursor<'a> {
    /// Bytes at hand from here on.
    fn left(&self) -> u64 {
        (self.bytes.len() - self.pos) as u64
    }

    /// Why the next `needed` bytes are not at hand: the file ends, or more must be fetched.
    fn past_end(&self, needed: u64, fault: impl FnOnce() -> Finding) -> Stop {
        match (self.pos as u64).checked_add(needed) {
            Some(end) if end <= self.file_len => Stop::Short(end),
            _ => Stop::Fault(fault()),
        }
    }

    fn cut(&self, needed: usize, what: &str) -> Stop {
        self.past_end(needed as u64, || {
            truncated(format!("the file ends within a {what}")).at(self.pos as u64)
        })
    }

    fn u32(&mut self, what: &str) -> Result<u32, Stop> {
        let value = self.encoding.u32(self.bytes, self.pos).ok_or_else(|| self.cut(4, what))?;
        self.pos += 4;
        Ok(value)
    }

    fn u64(&mut self, what: &str) -> Result<u64, Stop> {
        let value = self.encoding.u64(self.bytes, self.pos).ok_or_else(|| self.cut(8, what))?;
        self.pos += 8;
        Ok(value)
    }

    fn count(&mut self, what: &str) -> Result<u64, Stop> {
        let width = self.encoding.count_bytes();
        let value =
            self.encoding.count(self.bytes, self.pos).ok_or_else(|| self.cut(width, what))?;
        self.pos += width;
        Ok(value)
    }

    /// A name: must be UTF-8. In files of the first months a NUL ends it, which is dropped.
    fn text(&mut self, what: &str) -> Result<&'a str, Stop> {
        let at = self.pos as u64;
        let len = self.count(what)?;
        if len > self.left() {
            let message = format!("a {what} of {len} bytes reaches past the end of the file");
            return Err(self.past_end(len, || truncated(message).at(at)));
        }
        let bytes = &self.bytes[self.pos..][..len as usize];
        self.pos += len as usize;
        let text = std::str::from_utf8(bytes).map_err(|_| {
            Finding::error("name-not-utf8", format!("a {what} is not UTF-8")).at(at)
        })?;
        Ok(if self.encoding.counts_32bit { text.strip_suffix('\0').unwrap_or(text) } else { text })
    }

    fn value(&mut self, value_type: ValueType, limits: Limits) -> Result<Value, Stop> {
        let bytes = &self.bytes[self.pos..];
        let (value, used) =
            read_value(value_type, self.bytes, bytes, self.encoding, limits.array_depth).map_err(
                |fault| match fault.kind {
                    ScanFaultKind::PastEnd(needed) => {
                        let needed = (fault.at as u64).saturating_add(needed);
                        self.past_end(needed, || describe(fault, self.pos))
                    }
                    _ => Stop::Fault(describe(fault, self.pos)),
                },
            )?;
        self.pos += used;
        Ok(value)
    }
}

fn describe(fault: ScanFault, pos: usize) -> Finding {
    let finding = match fault.kind {
        ScanFaultKind::PastEnd(_) => truncated("the value reaches past the end of the file".into()),
        ScanFaultKind::UnknownType(id) => unknown_value_type(id),
        ScanFaultKind::NotBool(byte) => {
            Finding::error("value-not-bool", format!("a boolean is {byte}, not 0 or 1"))
        }
        ScanFaultKind::TooDeep => {
            Finding::error("array-too-deep", "arrays are nested deeper than the limit")
        }
    };
    finding.at((pos + fault.at) as u64)
}

fn truncated(message: String) -> Finding {
    Finding::error("truncated", message)
        .help(
            "the file is truncated or a length in it is wrong: copy or download it again; `gguf check FILE --against \
             hf:org/repo --repair` repairs a copy",
        )
}

fn unknown_value_type(id: u32) -> Finding {
    Finding::error("value-type-unknown", format!("{id} is not a value type; 0 to 12 exist"))
}

fn in_entry(stop: Stop, i: u64, key: Option<&str>) -> Stop {
    stop.map(|fault| match key {
        Some(key) => fault.key(key),
        None => {
            let message = format!("metadata entry {i}: {}", fault.message).into();
            Finding { message, ..fault }
        }
    })
}
