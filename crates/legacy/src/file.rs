//! Parses a whole file by the header layout that fits it.
//!
//! A GGML file does not name its architecture, so every layout of its container is tried. The
//! layout fits if the hyperparameters are plausible, the vocabulary ends where the first tensor
//! begins, every tensor name belongs to the model family, and the last tensor ends with the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::Error;
use gguf_store::{LocalFile, Source};

use super::blocks::{Planar, QuantizationVersion, SuperBlock, is_planar};
use super::container::Container;
use super::cursor::{Cursor, ReadError};
use super::directory::{self, Record};
use super::header::{self, Header, HeaderLayout, LAYOUTS, ModelFamily};
use super::names::map_name;
use super::vocabulary::Vocabulary;

/// A parsed legacy file.
pub(super) struct LegacyFile {
    pub path: PathBuf,
    pub file: Arc<LocalFile>,
    pub container: Container,
    pub layout: &'static HeaderLayout,
    pub header: Header,
    pub vocabulary: Vocabulary,
    pub records: Vec<Record>,
    pub super_block: SuperBlock,
}

/// Reads the file at `path`, as one of `architecture` if it is given.
pub(super) fn read(path: &Path, architecture: Option<&str>) -> Result<LegacyFile, Error> {
    let layouts: Vec<&HeaderLayout> = LAYOUTS
        .iter()
        .filter(|layout| architecture.is_none_or(|name| layout.names.contains(&name)))
        .collect();
    if let (true, Some(name)) = (layouts.is_empty(), architecture) {
        let what = format!("no legacy files of architecture `{name}` are supported");
        let help = format!("supported architectures: {}", header::names().join(", "));
        return Err(Error::request("legacy-program-unknown", what, help));
    }
    let file = Arc::new(LocalFile::open(path)?);
    let container = Container::read(&mut Cursor::new(&*file)).map_err(|error| match error {
        ReadError::Malformed { offset, what } => {
            let help = "only models in GGML, GGMF, GGJT and GGCC files can be converted";
            Error::input("legacy-container", path, format!("byte {offset}: {what}"), help)
        }
        ReadError::Io(error) => error,
    })?;
    let mut found: Vec<LegacyFile> = Vec::new();
    let mut furthest: Option<(u64, String)> = None;
    for layout in layouts.into_iter().filter(|layout| layout.containers.contains(&container)) {
        for super_block in [SuperBlock::Elements256, SuperBlock::Elements64] {
            match parse(path, &file, container, layout, super_block) {
                Ok(candidate) => {
                    found.push(candidate);
                    break;
                }
                Err(ReadError::Io(error)) => return Err(error),
                Err(ReadError::Malformed { offset, what }) => {
                    let what = format!("read as {}, byte {offset}: {what}", layout.names[0]);
                    if furthest.as_ref().is_none_or(|(furthest, _)| offset > *furthest) {
                        furthest = Some((offset, what));
                    }
                }
            }
        }
    }
    let families: Vec<ModelFamily> = found.iter().map(|file| file.layout.family).collect();
    if families.windows(2).any(|pair| pair[0] != pair[1]) {
        let names: Vec<_> = found.iter().map(|file| file.layout.names[0]).collect();
        let what = format!("the architecture is ambiguous: {}", names.join(", "));
        let help = "specify it with --architecture";
        return Err(Error::input("legacy-ambiguous", path, what, help));
    }
    found.into_iter().next().ok_or_else(|| {
        let what = furthest.map_or_else(
            || {
                format!(
                    "no {} is stored in {container} files",
                    architecture.unwrap_or("known model")
                )
            },
            |(_, what)| what,
        );
        let help = "the file is truncated, damaged, or of an unsupported architecture";
        Error::input("legacy-damaged", path, what, help)
    })
}

/// Parses the file by one layout.
fn parse(
    path: &Path,
    file: &Arc<LocalFile>,
    container: Container,
    layout: &'static HeaderLayout,
    super_block: SuperBlock,
) -> Result<LegacyFile, ReadError> {
    let cursor = &mut Cursor::new(&**file);
    Container::read(cursor)?;
    let header = Header::read(cursor, layout)?;
    let vocabulary = Vocabulary::read(cursor, container, layout.vocabulary, &header)?;
    let version = quantization_version(container, layout, &header);
    let first = cursor.at();
    let records = directory::read(cursor, container, version, super_block)?;
    let is_known = |record: &Record| map_name(layout.family, &record.name).is_some();
    if let Some(record) = records.iter().find(|record| !is_known(record)) {
        // Reported at the first tensor, so that an error of a layout that knows the names takes
        // precedence.
        let what = format!("{} models have no tensor `{}`", layout.names[0], record.name);
        return Cursor::malformed(first, what);
    }
    Ok(LegacyFile {
        path: path.to_owned(),
        file: Arc::clone(file),
        container,
        layout,
        header,
        vocabulary,
        records,
        super_block,
    })
}

/// The quantization version of a file.
fn quantization_version(
    container: Container,
    layout: &HeaderLayout,
    header: &Header,
) -> QuantizationVersion {
    container.quantization_version().unwrap_or_else(|| match header.quantization_version() {
        // The first quantizers of MPT and Replit wrote version 1 blocks but no version.
        0 if matches!(layout.family, ModelFamily::Mpt | ModelFamily::Replit) => {
            QuantizationVersion::V1
        }
        0 => QuantizationVersion::V0,
        1 => QuantizationVersion::V1,
        _ => QuantizationVersion::V2,
    })
}

impl LegacyFile {
    /// The data of a tensor, in blocks.
    pub fn bytes(&self, record: &Record) -> Result<Arc<dyn Source>, Error> {
        let range = Arc::new(SourceRange {
            source: Arc::clone(&self.file) as Arc<dyn Source>,
            start: record.offset,
            len: record.len,
        });
        let Some(scales) = self.planar_scales(record) else { return Ok(range) };
        let rows: u64 = record.dims.iter().skip(1).product();
        let row_bytes = record.len / rows.max(1);
        if row_bytes > MAX_ROW_BYTES {
            return Ok(range);
        }
        let mut row = vec![0; row_bytes as usize];
        range.read_at(&mut row, 0)?;
        if is_planar(&row, scales) {
            return Ok(Arc::new(Planar::new(range, row_bytes, scales)));
        }
        Ok(range)
    }

    /// The number of scales per block, if some tool stored this tensor type in planes without
    /// marking it: llama.cpp on its first day, and bloomz.cpp.
    fn planar_scales(&self, record: &Record) -> Option<usize> {
        match (self.container, self.layout.family, record.type_id) {
            (Container::Ggml, ModelFamily::Llama, 2) => Some(1),
            (Container::Ggml, ModelFamily::Bloom, 3) => Some(2),
            _ => None,
        }
    }
}

/// Maximum row length that is checked, larger than that of any known model.
const MAX_ROW_BYTES: u64 = 1 << 24;

/// A byte range of another source.
pub(super) struct SourceRange {
    pub source: Arc<dyn Source>,
    pub start: u64,
    pub len: u64,
}

impl Source for SourceRange {
    fn byte_len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.source.read_at(buffer, self.start + offset)
    }
}
