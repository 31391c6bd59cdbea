//! Fields of an encoded header with their byte ranges, for hex views.

use std::ops::Range;

use crate::encoding::Encoding;
use crate::read::Gguf;
use crate::value::ValueType;

/// Field of an encoded header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// Byte range in the file.
    pub span: Range<u64>,
    /// Kind of the field.
    pub kind: HeaderFieldKind,
    /// Decoded value, abbreviated.
    pub text: String,
    /// Index of the metadata entry that has the field.
    pub entry: Option<usize>,
    /// Index of the directory entry that has the field.
    pub tensor: Option<usize>,
}

/// Kind of a field of an encoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFieldKind {
    /// Magic bytes `GGUF`.
    Magic,
    /// Version of the format.
    Version,
    /// Number of tensors.
    TensorCount,
    /// Number of keys.
    KeyCount,
    /// Length of a key.
    KeyLength,
    /// Key.
    Key,
    /// Type of a value.
    ValueType,
    /// Number or boolean.
    Value,
    /// Length of a string.
    StringLength,
    /// String.
    String,
    /// Element type of an array.
    ElementType,
    /// Number of elements of an array.
    ElementCount,
    /// Length of an element of an array of strings.
    ElementLength,
    /// Element of an array of strings.
    Element,
    /// All numbers of an array.
    Elements,
    /// Length of a tensor name.
    NameLength,
    /// Tensor name.
    Name,
    /// Number of dimensions of a tensor.
    DimensionCount,
    /// Dimension of a tensor.
    Dimension,
    /// Type of a tensor.
    TensorType,
    /// Offset of tensor data, relative to the data section.
    TensorOffset,
}

impl HeaderFieldKind {
    /// Returns the name in kebab case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Magic => "magic",
            Self::Version => "version",
            Self::TensorCount => "tensor-count",
            Self::KeyCount => "key-count",
            Self::KeyLength => "key-length",
            Self::Key => "key",
            Self::ValueType => "value-type",
            Self::Value => "value",
            Self::StringLength => "string-length",
            Self::String => "string",
            Self::ElementType => "element-type",
            Self::ElementCount => "element-count",
            Self::ElementLength => "element-length",
            Self::Element => "element",
            Self::Elements => "elements",
            Self::NameLength => "name-length",
            Self::Name => "name",
            Self::DimensionCount => "dimension-count",
            Self::Dimension => "dimension",
            Self::TensorType => "tensor-type",
            Self::TensorOffset => "tensor-offset",
        }
    }
}

impl Gguf {
    /// Returns the fields of the header that overlap `range`, in file order. Fields that cross its
    /// bounds are returned whole; the padding after the directory has no fields.
    ///
    /// ```
    /// # fn main() -> Result<(), gguf::Error> {
    /// let mut raw = gguf::RawHeader::default();
    /// raw.metadata.set("general.architecture", "llama");
    /// let bytes = gguf::write_header(&gguf::Header::new(raw)?)?.into();
    /// let model = gguf::Gguf::read(&bytes)?;
    /// let fields = model.header_fields(24..60);
    /// let shown: Vec<_> = fields.iter().map(|field| (field.kind.name(), &*field.text)).collect();
    /// assert_eq!(shown[..3], [
    ///     ("key-length", "20"), ("key", "general.architecture"), ("value-type", "STRING"),
    /// ]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn header_fields(&self, range: Range<u64>) -> Vec<HeaderField> {
        let mut walk = Walk {
            bytes: self.bytes(),
            encoding: self.header().encoding(),
            range,
            at: 0,
            entry: None,
            tensor: None,
            found: Vec::new(),
        };
        // The walk ends at the end of a checked header.
        let _ = walk.header(self);
        walk.found
    }
}

/// Position in a header, and the fields found so far.
struct Walk<'b> {
    bytes: &'b [u8],
    encoding: Encoding,
    range: Range<u64>,
    at: usize,
    entry: Option<usize>,
    tensor: Option<usize>,
    found: Vec<HeaderField>,
}

impl Walk<'_> {
    fn header(&mut self, gguf: &Gguf) -> Option<()> {
        let spans = gguf.spans();
        if self.range.start < 24 {
            self.part(4, HeaderFieldKind::Magic, || "GGUF".to_owned());
            self.u32(HeaderFieldKind::Version, |number| number.to_string())?;
            self.count(HeaderFieldKind::TensorCount)?;
            self.count(HeaderFieldKind::KeyCount)?;
        }
        // The last entry that starts before the range may reach into it.
        let first = |starts: usize, start: &dyn Fn(usize) -> u64| {
            let (mut low, mut high) = (0, starts);
            while low < high {
                let middle = low.midpoint(high);
                if start(middle) <= self.range.start { low = middle + 1 } else { high = middle }
            }
            low.saturating_sub(1)
        };
        let entries = &spans.entries;
        let (end, from) = (self.range.end, first(entries.len(), &|i| entries[i].start));
        let tensors = &spans.tensors;
        let from_tensor = first(tensors.len(), &|i| tensors[i]);
        for (i, entry) in entries.iter().enumerate().skip(from).take_while(|(_, e)| e.start < end) {
            (self.at, self.entry) = (entry.start as usize, Some(i));
            self.entry()?;
        }
        self.entry = None;
        for (i, start) in
            tensors.iter().enumerate().skip(from_tensor).take_while(|(_, s)| **s < end)
        {
            (self.at, self.tensor) = (*start as usize, Some(i));
            self.tensor()?;
        }
        Some(())
    }

    fn entry(&mut self) -> Option<()> {
        self.string(HeaderFieldKind::KeyLength, HeaderFieldKind::Key)?;
        let value_type = self.value_type(HeaderFieldKind::ValueType)?;
        self.value(value_type)
    }

    fn value(&mut self, value_type: ValueType) -> Option<()> {
        match value_type {
            ValueType::String => {
                self.string(HeaderFieldKind::StringLength, HeaderFieldKind::String)
            }
            ValueType::Array => self.array(),
            number => {
                let len = number.byte_len()?;
                let shown = self.shown_number(number);
                self.part(len, HeaderFieldKind::Value, || shown);
                Some(())
            }
        }
    }

    fn array(&mut self) -> Option<()> {
        let of = self.value_type(HeaderFieldKind::ElementType)?;
        let count = self.count(HeaderFieldKind::ElementCount)?;
        if let Some(len) = of.byte_len() {
            let len = usize::try_from(count).ok()?.checked_mul(len)?;
            self.part(len, HeaderFieldKind::Elements, || format!("{count} of {of}"));
            return Some(());
        }
        for _ in 0..count {
            if self.at as u64 >= self.range.end {
                break;
            }
            match of {
                ValueType::Array => self.array()?,
                _ => self.string(HeaderFieldKind::ElementLength, HeaderFieldKind::Element)?,
            }
        }
        Some(())
    }

    fn tensor(&mut self) -> Option<()> {
        self.string(HeaderFieldKind::NameLength, HeaderFieldKind::Name)?;
        let dimensions = self.u32(HeaderFieldKind::DimensionCount, |number| number.to_string())?;
        for _ in 0..dimensions {
            self.count(HeaderFieldKind::Dimension)?;
        }
        self.u32(HeaderFieldKind::TensorType, |id| crate::TensorType::from_id(id).to_string())?;
        let offset = self.encoding.u64(self.bytes, self.at)?;
        self.part(8, HeaderFieldKind::TensorOffset, || offset.to_string());
        Some(())
    }

    fn string(&mut self, length: HeaderFieldKind, text: HeaderFieldKind) -> Option<()> {
        const SHOWN: usize = 100;
        let len = usize::try_from(self.count(length)?).ok()?;
        let bytes = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        // A character has at most four bytes.
        let shown = &bytes[..bytes.len().min(4 * SHOWN)];
        self.part(len, text, || String::from_utf8_lossy(shown).chars().take(SHOWN).collect());
        Some(())
    }

    fn value_type(&mut self, kind: HeaderFieldKind) -> Option<ValueType> {
        let of = |id| ValueType::from_id(id);
        let shown = |id| of(id).map_or_else(String::new, |of| of.to_string());
        of(self.u32(kind, shown)?)
    }

    fn u32(&mut self, kind: HeaderFieldKind, shown: impl Fn(u32) -> String) -> Option<u32> {
        let number = self.encoding.u32(self.bytes, self.at)?;
        self.part(4, kind, || shown(number));
        Some(number)
    }

    fn count(&mut self, kind: HeaderFieldKind) -> Option<u64> {
        let number = self.encoding.count(self.bytes, self.at)?;
        self.part(self.encoding.count_bytes(), kind, || number.to_string());
        Some(number)
    }

    fn shown_number(&self, of: ValueType) -> String {
        let bytes = &self.bytes.get(self.at..).unwrap_or_default();
        let bytes = bytes::Bytes::copy_from_slice(&bytes[..bytes.len().min(8)]);
        let read = crate::value::array::read_value(of, &bytes, &bytes, self.encoding, 0);
        read.map_or_else(|_| String::new(), |(value, _)| value.to_string())
    }

    /// Advances by `len` bytes, and records them as a field if they overlap the range. Calls
    /// `shown` only then.
    fn part(&mut self, len: usize, kind: HeaderFieldKind, shown: impl FnOnce() -> String) {
        let span = self.at as u64..(self.at + len) as u64;
        self.at += len;
        if span.start < self.range.end && span.end > self.range.start {
            let (entry, tensor) = (self.entry, self.tensor);
            self.found.push(HeaderField { span, kind, text: shown(), entry, tensor });
        }
    }
}
