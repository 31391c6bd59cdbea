//! What each byte of a header is: for those who show files byte by byte.

use std::ops::Range;

use crate::encoding::Encoding;
use crate::read::Gguf;
use crate::value::ValueType;

/// Bytes of a header that mean one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderPart {
    /// Where they stand in the file.
    pub span: Range<u64>,
    /// What they are.
    pub kind: PartKind,
    /// What they say, shortened.
    pub text: String,
    /// The entry of the metadata that they are of, from 0.
    pub entry: Option<usize>,
    /// The entry of the directory that they are of, from 0.
    pub tensor: Option<usize>,
}

/// What bytes of a header are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// The four bytes that every file begins with.
    Magic,
    /// The version of the format.
    Version,
    /// How many tensors there are.
    TensorCount,
    /// How many keys there are.
    KeyCount,
    /// How long a key is.
    KeyLength,
    /// A key.
    Key,
    /// The type of a value.
    ValueType,
    /// A number or a truth value.
    Value,
    /// How long a string is.
    StringLength,
    /// A string.
    String,
    /// The type of the elements of an array.
    ElementType,
    /// How many elements an array has.
    ElementCount,
    /// How long an element is, of an array of strings.
    ElementLength,
    /// An element, of an array of strings.
    Element,
    /// All numbers of an array.
    Elements,
    /// How long the name of a tensor is.
    NameLength,
    /// The name of a tensor.
    Name,
    /// How many dimensions a tensor has.
    DimensionCount,
    /// A dimension.
    Dimension,
    /// The type of a tensor.
    TensorType,
    /// Where the data of a tensor begin, counted from the start of the data section.
    TensorOffset,
}

impl PartKind {
    /// A name in small letters, with `-` between words.
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
    /// What the bytes of the header in `range` are, in their order. Parts that begin before it or end after it
    /// are told as they are; bytes beyond the directory are not told.
    ///
    /// ```
    /// # fn main() -> Result<(), gguf::Error> {
    /// let mut draft = gguf::RawHeader::default();
    /// draft.metadata.set("general.architecture", "llama");
    /// let bytes = gguf::write_header(&gguf::Header::new(draft)?)?.into();
    /// let model = gguf::Gguf::read(&bytes)?;
    /// let parts = model.parts(24..60);
    /// let shown: Vec<_> = parts.iter().map(|part| (part.kind.name(), &*part.text)).collect();
    /// assert_eq!(shown[..3], [
    ///     ("key-length", "20"), ("key", "general.architecture"), ("value-type", "STRING"),
    /// ]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn parts(&self, range: Range<u64>) -> Vec<HeaderPart> {
        let mut walk = Walk {
            bytes: self.bytes(),
            encoding: self.header().encoding(),
            range,
            at: 0,
            entry: None,
            tensor: None,
            found: Vec::new(),
        };
        // Where a header that was checked ends, the walk does.
        let _ = walk.header(self);
        walk.found
    }
}

/// A place in a header, and what was found on the way there.
struct Walk<'b> {
    bytes: &'b [u8],
    encoding: Encoding,
    range: Range<u64>,
    at: usize,
    entry: Option<usize>,
    tensor: Option<usize>,
    found: Vec<HeaderPart>,
}

impl Walk<'_> {
    fn header(&mut self, gguf: &Gguf) -> Option<()> {
        let spans = gguf.spans();
        if self.range.start < 24 {
            self.part(4, PartKind::Magic, || "GGUF".to_owned());
            self.u32(PartKind::Version, |number| number.to_string())?;
            self.count(PartKind::TensorCount)?;
            self.count(PartKind::KeyCount)?;
        }
        // The last one that begins before the range may reach into it.
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
        self.string(PartKind::KeyLength, PartKind::Key)?;
        let value_type = self.value_type(PartKind::ValueType)?;
        self.value(value_type)
    }

    fn value(&mut self, value_type: ValueType) -> Option<()> {
        match value_type {
            ValueType::String => self.string(PartKind::StringLength, PartKind::String),
            ValueType::Array => self.array(),
            number => {
                let len = number.byte_len()?;
                let shown = self.shown_number(number);
                self.part(len, PartKind::Value, || shown);
                Some(())
            }
        }
    }

    fn array(&mut self) -> Option<()> {
        let of = self.value_type(PartKind::ElementType)?;
        let count = self.count(PartKind::ElementCount)?;
        if let Some(len) = of.byte_len() {
            let len = usize::try_from(count).ok()?.checked_mul(len)?;
            self.part(len, PartKind::Elements, || format!("{count} of {of}"));
            return Some(());
        }
        for _ in 0..count {
            if self.at as u64 >= self.range.end {
                break;
            }
            match of {
                ValueType::Array => self.array()?,
                _ => self.string(PartKind::ElementLength, PartKind::Element)?,
            }
        }
        Some(())
    }

    fn tensor(&mut self) -> Option<()> {
        self.string(PartKind::NameLength, PartKind::Name)?;
        let dimensions = self.u32(PartKind::DimensionCount, |number| number.to_string())?;
        for _ in 0..dimensions {
            self.count(PartKind::Dimension)?;
        }
        self.u32(PartKind::TensorType, |id| crate::TensorType::from_id(id).to_string())?;
        let offset = self.encoding.u64(self.bytes, self.at)?;
        self.part(8, PartKind::TensorOffset, || offset.to_string());
        Some(())
    }

    fn string(&mut self, length: PartKind, text: PartKind) -> Option<()> {
        const SHOWN: usize = 100;
        let len = usize::try_from(self.count(length)?).ok()?;
        let bytes = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        // No character has more than four bytes.
        let shown = &bytes[..bytes.len().min(4 * SHOWN)];
        self.part(len, text, || String::from_utf8_lossy(shown).chars().take(SHOWN).collect());
        Some(())
    }

    fn value_type(&mut self, kind: PartKind) -> Option<ValueType> {
        let of = |id| ValueType::from_id(id);
        let shown = |id| of(id).map_or_else(String::new, |of| of.to_string());
        of(self.u32(kind, shown)?)
    }

    fn u32(&mut self, kind: PartKind, shown: impl Fn(u32) -> String) -> Option<u32> {
        let number = self.encoding.u32(self.bytes, self.at)?;
        self.part(4, kind, || shown(number));
        Some(number)
    }

    fn count(&mut self, kind: PartKind) -> Option<u64> {
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

    /// Goes on by `len` bytes, and remembers what they are if they are asked for. `shown` is called then only.
    fn part(&mut self, len: usize, kind: PartKind, shown: impl FnOnce() -> String) {
        let span = self.at as u64..(self.at + len) as u64;
        self.at += len;
        if span.start < self.range.end && span.end > self.range.start {
            let (entry, tensor) = (self.entry, self.tensor);
            self.found.push(HeaderPart { span, kind, text: shown(), entry, tensor });
        }
    }
}
