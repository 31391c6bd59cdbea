//! A whole file: the form of header under which everything up to its last byte makes sense.
//!
//! A file without version does not say which program it is of. So every form that its container
//! allows is tried: the one by which hyper-parameters are plausible, the vocabulary ends where the
//! first tensor begins, every tensor has a name of that program, and the last one ends with the
//! file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::Error;
use gguf_store::{LocalFile, Source};

use super::blocks::{Generation, Planar, SuperBlock, is_planar};
use super::container::Container;
use super::cursor::{Cursor, Fault};
use super::directory::{self, Record};
use super::header::{self, Header, LAYOUTS, Layout, Program};
use super::names::meaning;
use super::vocabulary::Vocabulary;

/// An old file, taken apart.
pub(super) struct OldFile {
    pub path: PathBuf,
    pub file: Arc<LocalFile>,
    pub container: Container,
    pub layout: &'static Layout,
    pub header: Header,
    pub vocabulary: Vocabulary,
    pub records: Vec<Record>,
    pub super_block: SuperBlock,
}

/// Reads the file at `path`, as one of `architecture` if that is said.
pub(super) fn read(path: &Path, architecture: Option<&str>) -> Result<OldFile, Error> {
    let layouts: Vec<&Layout> = LAYOUTS
        .iter()
        .filter(|layout| architecture.is_none_or(|name| layout.names.contains(&name)))
        .collect();
    if let (true, Some(name)) = (layouts.is_empty(), architecture) {
        let what = format!("no files of `{name}` from before GGUF are known");
        let help = format!("known are {}", header::names().join(", "));
        return Err(Error::request("legacy-program-unknown", what, help));
    }
    let file = Arc::new(LocalFile::open(path)?);
    let container = Container::read(&mut Cursor::new(&*file)).map_err(|fault| match fault {
        Fault::At { offset, what } => {
            let help = "only models in GGML, GGMF, GGJT and GGCC files are converted";
            Error::input("legacy-container", path, format!("byte {offset}: {what}"), help)
        }
        Fault::Failed(error) => error,
    })?;
    let mut found: Vec<OldFile> = Vec::new();
    let mut furthest: Option<(u64, String)> = None;
    for layout in layouts.into_iter().filter(|layout| layout.containers.contains(&container)) {
        for super_block in [SuperBlock::Of256, SuperBlock::Of64] {
            match attempt(path, &file, container, layout, super_block) {
                Ok(old) => {
                    found.push(old);
                    break;
                }
                Err(Fault::Failed(error)) => return Err(error),
                Err(Fault::At { offset, what }) => {
                    let what = format!("read as {}, byte {offset}: {what}", layout.names[0]);
                    if furthest.as_ref().is_none_or(|(furthest, _)| offset > *furthest) {
                        furthest = Some((offset, what));
                    }
                }
            }
        }
    }
    let programs: Vec<Program> = found.iter().map(|old| old.layout.program).collect();
    if programs.windows(2).any(|pair| pair[0] != pair[1]) {
        let names: Vec<_> = found.iter().map(|old| old.layout.names[0]).collect();
        let what = format!("could be a file of any of {}", names.join(", "));
        let help = "say which with --architecture";
        return Err(Error::input("legacy-ambiguous", path, what, help));
    }
    found.into_iter().next().ok_or_else(|| {
        let what = furthest.map_or_else(
            || format!("{container} files are of no {}", architecture.unwrap_or("known program")),
            |(_, what)| what,
        );
        let help = "the file is cut off or damaged, or of a program not known here";
        Error::input("legacy-damaged", path, what, help)
    })
}

/// Reads the file as one of a program.
fn attempt(
    path: &Path,
    file: &Arc<LocalFile>,
    container: Container,
    layout: &'static Layout,
    super_block: SuperBlock,
) -> Result<OldFile, Fault> {
    let cursor = &mut Cursor::new(&**file);
    Container::read(cursor)?;
    let header = Header::read(cursor, layout)?;
    let vocabulary = Vocabulary::read(cursor, container, layout.vocabulary, &header)?;
    let generation = generation(container, layout, &header);
    let first = cursor.at();
    let records = directory::read(cursor, container, generation, super_block)?;
    let known = |record: &Record| meaning(layout.program, &record.name).is_some();
    if let Some(record) = records.iter().find(|record| !known(record)) {
        // As far as the first tensor: a form that knows the names has come further.
        let what = format!("tensor `{}` is of no {} model", record.name, layout.names[0]);
        return Cursor::fault(first, what);
    }
    Ok(OldFile {
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

/// The generation of a file's blocks.
fn generation(container: Container, layout: &Layout, header: &Header) -> Generation {
    container.generation().unwrap_or_else(|| match header.stated_generation() {
        // The first quantizers of these wrote no generation, and blocks of the second one.
        0 if matches!(layout.program, Program::Mpt | Program::Replit) => Generation::Halves,
        0 => Generation::Pairs,
        1 => Generation::Halves,
        _ => Generation::Today,
    })
}

impl OldFile {
    /// The bytes of a tensor and nothing else, in blocks.
    pub fn bytes(&self, record: &Record) -> Result<Arc<dyn Source>, Error> {
        let span = Arc::new(Span {
            source: Arc::clone(&self.file) as Arc<dyn Source>,
            start: record.offset,
            len: record.len,
        });
        let Some(scales) = self.planes(record) else { return Ok(span) };
        let rows: u64 = record.dims.iter().skip(1).product();
        let row_bytes = record.len / rows.max(1);
        if row_bytes > LONGEST_ROW {
            return Ok(span);
        }
        let mut row = vec![0; row_bytes as usize];
        span.read_at(&mut row, 0)?;
        if is_planar(&row, scales) {
            return Ok(Arc::new(Planar::new(span, row_bytes, scales)));
        }
        Ok(span)
    }

    /// How many scales each block has, if some program wrote this tensor's type in planes without
    /// a mark: llama.cpp on its first day, bloomz.cpp always.
    fn planes(&self, record: &Record) -> Option<usize> {
        match (self.container, self.layout.program, record.type_id) {
            (Container::Ggml, Program::Llama, 2) => Some(1),
            (Container::Ggml, Program::Bloom, 3) => Some(2),
            _ => None,
        }
    }
}

/// Bytes of a row: more than any model has, and little enough to hold.
const LONGEST_ROW: u64 = 1 << 24;

/// A part of another source.
pub(super) struct Span {
    pub source: Arc<dyn Source>,
    pub start: u64,
    pub len: u64,
}

impl Source for Span {
    fn byte_len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.source.read_at(buffer, self.start + offset)
    }
}
