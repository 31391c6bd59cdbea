//! Map of the bytes of a file.

use std::ops::Range;

use gguf::{Alignment, Gguf, HeaderFieldKind, TensorInfo};

/// A region of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Byte range.
    pub span: Range<u64>,
    /// Kind of the bytes.
    pub kind: RegionKind,
    /// Index of the tensor in the directory of the file.
    pub tensor: Option<usize>,
}

/// Kind of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// Magic, version and counts.
    Start,
    /// Metadata.
    Keys,
    /// Tensor directory.
    Directory,
    /// Padding to the alignment.
    Padding,
    /// Tensor data.
    Tensor,
    /// Unused bytes between tensors.
    Gap,
    /// Bytes after the last tensor.
    Beyond,
    /// The rest of a truncated header after its last complete entry, or the whole file if the header is invalid.
    Unreadable,
}

impl RegionKind {
    /// Returns the lowercase name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Keys => "keys",
            Self::Directory => "directory",
            Self::Padding => "padding",
            Self::Tensor => "tensor",
            Self::Gap => "gap",
            Self::Beyond => "beyond",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Returns the regions of a file of `file_len` bytes, in order and without gaps. `gguf` is its header, if valid.
pub fn regions(gguf: Option<&Gguf>, file_len: u64) -> Vec<Region> {
    let mut regions = Regions { file_len, end: 0, found: Vec::new() };
    let Some(gguf) = gguf else {
        regions.up_to(file_len, RegionKind::Unreadable, None);
        return regions.found;
    };
    let spans = gguf.spans();
    let directory = spans.tensors.first().copied().unwrap_or(spans.end);
    let keys = spans.entries.first().map_or(directory, |first| first.start);
    regions.up_to(keys, RegionKind::Start, None);
    regions.up_to(directory, RegionKind::Keys, None);
    regions.up_to(spans.end, RegionKind::Directory, None);
    if !gguf.header_complete() {
        regions.up_to(file_len, RegionKind::Unreadable, None);
    }
    regions.up_to(gguf.data_start(), RegionKind::Padding, None);
    let placed = |(n, tensor): (usize, &TensorInfo)| Some((gguf.data_range(tensor)?, n));
    let mut tensors: Vec<_> = gguf.tensors().iter().enumerate().filter_map(placed).collect();
    tensors.sort_by_key(|(range, n)| (range.start, *n));
    let alignment = gguf.header().alignment();
    for (range, n) in tensors {
        regions.pad(alignment, gguf.data_start(), range.start, RegionKind::Gap);
        regions.up_to(range.end, RegionKind::Tensor, Some(n));
    }
    regions.pad(alignment, gguf.data_start(), file_len, RegionKind::Beyond);
    regions.found
}

struct Regions {
    file_len: u64,
    /// End of the last region.
    end: u64,
    found: Vec<Region>,
}

impl Regions {
    /// Adds a region up to `end`.
    fn up_to(&mut self, end: u64, kind: RegionKind, tensor: Option<usize>) {
        let end = end.min(self.file_len);
        if end > self.end {
            self.found.push(Region { span: self.end..end, kind, tensor });
            self.end = end;
        }
    }

    /// Adds the regions before `start`: padding to the alignment, and other bytes.
    fn pad(&mut self, alignment: Alignment, data_start: u64, start: u64, kind: RegionKind) {
        let within = self.end.saturating_sub(data_start);
        let aligned = alignment.align_up(within).and_then(|within| data_start.checked_add(within));
        if self.end >= data_start {
            self.up_to(aligned.unwrap_or(start).min(start), RegionKind::Padding, None);
        }
        self.up_to(start, kind, None);
    }
}

/// Bytes of a file with a detailed description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Byte range, which can extend beyond the requested one.
    pub span: Range<u64>,
    /// Kind of the bytes.
    pub kind: NamedKind,
    /// Truncated content; may be empty.
    pub text: String,
    /// Index of the key in the file.
    pub entry: Option<usize>,
    /// Index of the tensor in the directory of the file.
    pub tensor: Option<usize>,
    /// Block of the tensor.
    pub block: Option<u64>,
}

/// Kind of described bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedKind {
    /// A field of the header.
    Header(HeaderFieldKind),
    /// A block of a tensor.
    Block,
    /// A row of a tensor without blocks.
    Numbers,
    /// Another region.
    Region(RegionKind),
}

impl NamedKind {
    /// Returns the lowercase name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Header(kind) => kind.name(),
            Self::Block => "block",
            Self::Numbers => "numbers",
            Self::Region(kind) => kind.name(),
        }
    }
}

/// Describes the bytes of `range`: fields of the header, blocks and rows of tensors. The result is proportional to the
/// length of the range.
pub fn named(gguf: Option<&Gguf>, file_len: u64, range: Range<u64>) -> Vec<Named> {
    let mut found = Vec::new();
    let regions = regions(gguf, file_len);
    let from = regions.partition_point(|region| region.span.end <= range.start);
    for region in regions[from..].iter().take_while(|region| region.span.start < range.end) {
        let tensor = region.tensor;
        let of_gguf = gguf.and_then(|gguf| Some((gguf, gguf.tensors().get(tensor?)?)));
        match (region.kind, gguf, of_gguf) {
            (RegionKind::Start | RegionKind::Keys | RegionKind::Directory, Some(gguf), _) => {
                let start = range.start.max(region.span.start);
                let parts = gguf.header_fields(start..range.end.min(region.span.end));
                found.extend(parts.into_iter().map(|part| Named {
                    span: part.span,
                    kind: NamedKind::Header(part.kind),
                    text: part.text,
                    entry: part.entry,
                    tensor: part.tensor,
                    block: None,
                }));
            }
            (RegionKind::Tensor, Some(gguf), Some((_, info))) => {
                in_tensor(gguf, info, tensor, &region.span, &range, &mut found);
            }
            (kind, ..) => found.push(Named {
                span: region.span.clone(),
                kind: NamedKind::Region(kind),
                text: String::new(),
                entry: None,
                tensor,
                block: None,
            }),
        }
    }
    found
}

/// Describes the blocks of a tensor, or the rows of a tensor without blocks.
fn in_tensor(
    gguf: &Gguf,
    info: &TensorInfo,
    tensor: Option<usize>,
    region: &Range<u64>,
    range: &Range<u64>,
    found: &mut Vec<Named>,
) {
    let (Some(data), Some((weights, bytes))) = (gguf.data_range(info), info.tensor_type.block())
    else {
        return;
    };
    let row = (info.shape.row_len() / weights).saturating_mul(bytes).max(1);
    let (kind, unit) = match weights {
        1 => (NamedKind::Numbers, row),
        _ => (NamedKind::Block, bytes),
    };
    let start = range.start.max(region.start).saturating_sub(data.start) / unit;
    let mut at = data.start + start * unit;
    while at < range.end.min(region.end) {
        let first = (at - data.start) / bytes;
        let text = format!("row {}", (at - data.start) / row);
        let block = (weights > 1).then_some(first);
        let span = at..at.saturating_add(unit).min(data.end);
        found.push(Named { span, kind, text, entry: None, tensor, block });
        at = at.saturating_add(unit);
    }
}

#[cfg(test)]
mod tests {
    use gguf::{Header, RawHeader, Shape, TensorType, write_header};

    use super::*;

    /// Two tensors with a gap between them, and bytes after the last.
    fn file() -> (Gguf, u64) {
        let mut draft = RawHeader::default();
        draft.metadata.set("general.architecture", "llama");
        draft.metadata.set("tokenizer.ggml.tokens", gguf::Array::from_strings(["a", "bc"]));
        for (name, shape, tensor_type, offset) in [
            ("a.weight", &[2, 2][..], TensorType::F32, 0),
            ("b.weight", &[64][..], TensorType::Q4_0, 64),
        ] {
            let shape = Shape::new(shape).unwrap();
            draft.tensors.push(TensorInfo {
                name: name.into(),
                shape,
                tensor_type,
                offset,
                opaque_len: None,
            });
        }
        let mut bytes = write_header(&Header::new(draft).unwrap()).unwrap();
        bytes.resize(bytes.len() + 64 + 36 + 28 + 9, 7);
        let len = bytes.len() as u64;
        (Gguf::read(&bytes.into()).unwrap(), len)
    }

    #[test]
    fn regions_cover_the_file() {
        let (gguf, len) = file();
        let regions = regions(Some(&gguf), len);
        assert_eq!(regions[0].span.start, 0);
        assert!(regions.windows(2).all(|pair| pair[0].span.end == pair[1].span.start));
        assert_eq!(regions.last().unwrap().span.end, len);
        let start = gguf.data_start();
        let shown: Vec<_> = regions[3..]
            .iter()
            .map(|region| (region.kind.name(), region.span.start as i64 - start as i64))
            .collect();
        let header = gguf.spans().end as i64 - start as i64;
        assert_eq!(
            shown,
            [
                ("padding", header),
                ("tensor", 0),
                ("padding", 16),
                ("gap", 32),
                ("tensor", 64),
                ("padding", 100),
                ("beyond", 128),
            ]
        );
        assert_eq!(super::regions(None, 7)[0].kind, RegionKind::Unreadable);
    }

    /// Each byte has exactly one description, independent of the requested range.
    #[test]
    fn every_byte_has_one_description() {
        let (gguf, len) = file();
        let all = named(Some(&gguf), len, 0..len);
        assert_eq!(all[0].span.start, 0);
        assert!(all.windows(2).all(|pair| pair[0].span.end == pair[1].span.start), "{all:#?}");
        assert_eq!(all.last().unwrap().span.end, len);
        for start in 0..len {
            let window = start..(start + 5).min(len);
            let found = named(Some(&gguf), len, window.clone());
            let expected: Vec<_> = all
                .iter()
                .filter(|one| one.span.start < window.end && one.span.end > window.start)
                .cloned()
                .collect();
            assert_eq!(found, expected, "{window:?}");
        }
        let blocks: Vec<_> = all.iter().filter(|one| one.kind == NamedKind::Block).collect();
        assert_eq!((blocks.len(), blocks[1].block, blocks[1].tensor), (2, Some(1), Some(1)));
        let rows = all.iter().filter(|one| one.kind == NamedKind::Numbers).count();
        assert_eq!(rows, 2);
        let elements: Vec<_> = all.iter().filter(|one| one.kind.name() == "element").collect();
        assert_eq!((&*elements[1].text, elements[1].entry), ("bc", Some(1)));
    }
}
