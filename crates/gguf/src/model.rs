//! A model as a whole, in however many files it is stored.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::encoding::ByteOrder;
use crate::error::Error;
use crate::finding::Strict;
use crate::header::{Draft, Header};
use crate::map::Map;
use crate::metadata::Metadata;
use crate::output::Overwrite;
use crate::read::Gguf;
use crate::rules;
use crate::shard::{self, ShardSet};
use crate::source::{LocalFile, Source};
use crate::tensor::TensorInfo;

/// The open files of one model; [`ModelFiles::model`] is what is in them.
///
/// Headers are mapped, tensor data are read by position: memory stays at what callers buffer.
///
/// ```no_run
/// # fn main() -> Result<(), gguf::Error> {
/// let files = gguf::ModelFiles::open("model-00002-of-00003.gguf".as_ref())?;
/// let model = files.model()?;
/// for tensor in model.tensors() {
///     println!("{} {} in shard {}", tensor.info.name, tensor.info.shape, tensor.shard);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ModelFiles {
    set: ShardSet,
    files: Vec<(LocalFile, Map)>,
}

impl ModelFiles {
    /// Opens all files of the model that `path` stands for, as [`ShardSet::find`] sees it.
    ///
    /// # Errors
    /// As [`ShardSet::find`], and [`Error::Environment`] if a file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let set = ShardSet::find(path)?;
        // Opened once: header and data are of the same file, also if another one takes its name.
        let open = |path: &PathBuf| {
            let file = LocalFile::open(path)?;
            let map = Map::of(&file)?;
            Ok((file, map))
        };
        let files = set.paths().iter().map(open).collect::<Result<_, Error>>()?;
        Ok(Self { set, files })
    }

    /// The files, the first shard first.
    pub fn paths(&self) -> &[PathBuf] {
        self.set.paths()
    }

    /// A text that is another one when a file is another one or has been written to; see
    /// [`LocalFile::identity`].
    ///
    /// # Errors
    /// As [`LocalFile::identity`].
    pub fn identity(&self) -> Result<String, Error> {
        self.files.iter().map(|(file, _)| Ok(file.identity()? + "\n")).collect()
    }

    /// Reads the headers strictly and puts the shards together.
    ///
    /// # Errors
    /// [`Error::InFile`] with the first rule that a file breaks; else as [`Model::new`].
    pub fn model(&self) -> Result<Model<'_>, Error> {
        let mut parts = Vec::with_capacity(self.files.len());
        for (source, map) in &self.files {
            let path = source.path();
            let gguf = Gguf::read(map).map_err(|error| error.in_file(path))?;
            let data_start = gguf.data_start();
            parts.push(Part { path, header: gguf.into_header(), data_start, source });
        }
        Model::new(parts)
    }
}

/// One file of a model: its header, and where its bytes are.
#[derive(Clone)]
pub struct Part<'a> {
    /// The name under which messages speak of it.
    pub path: &'a Path,
    /// Its header.
    pub header: Header<'a>,
    /// First byte of its data section.
    pub data_start: u64,
    /// The bytes of the whole file.
    pub source: &'a dyn Source,
}

/// A tensor of a [`Model`], and where its bytes are.
#[derive(Clone)]
pub struct ModelTensor<'a> {
    /// Its entry in the directory of the file it is in.
    pub info: TensorInfo<'a>,
    /// The shard it is in, from 0.
    pub shard: usize,
    /// The bytes of that file.
    pub source: &'a dyn Source,
    /// Where its data begin in that file.
    pub offset: u64,
}

impl ModelTensor<'_> {
    /// Fills `buffer` with its data from byte `first` on.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    pub fn read_at(&self, buffer: &mut [u8], first: u64) -> Result<(), Error> {
        self.source.read_at(buffer, self.offset.saturating_add(first))
    }
}

/// What the files of one model hold together.
#[derive(Clone)]
pub struct Model<'a> {
    parts: Vec<Part<'a>>,
    metadata: Metadata<'a>,
    tensors: Vec<ModelTensor<'a>>,
}

impl<'a> Model<'a> {
    /// Puts the files of a model together, the first shard first; a model in one file is one part.
    ///
    /// # Errors
    /// [`Error::File`] with the first rule on shards that is broken.
    pub fn new(parts: Vec<Part<'a>>) -> Result<Self, Error> {
        let shards: Vec<_> = parts.iter().map(|part| (part.path, part.header.draft())).collect();
        let mut sink = Strict::default();
        let _ = rules::shards::check(&shards, &mut sink);
        if let Some(finding) = sink.error {
            return Err(Error::File(Box::new(finding)));
        }
        let Some(first) = parts.first() else {
            return Err(Error::Caller("a model has at least one file".into()));
        };
        let mut metadata = first.header.metadata().clone();
        shard::remove_keys(&mut metadata);
        let tensors = parts
            .iter()
            .enumerate()
            .flat_map(|(shard, part)| {
                part.header.tensors().iter().map(move |info| ModelTensor {
                    info: info.clone(),
                    shard,
                    source: part.source,
                    offset: part.data_start.saturating_add(info.offset),
                })
            })
            .collect();
        Ok(Self { parts, metadata, tensors })
    }

    /// Keys and values: those of the first file, without the `split.` ones.
    pub fn metadata(&self) -> &Metadata<'a> {
        &self.metadata
    }

    /// The tensors of all files, in order of shard and directory.
    pub fn tensors(&self) -> &[ModelTensor<'a>] {
        &self.tensors
    }

    /// All tensors by name.
    pub fn index(&self) -> HashMap<&str, &ModelTensor<'a>> {
        self.tensors.iter().map(|tensor| (&*tensor.info.name, tensor)).collect()
    }

    /// The files, the first shard first.
    pub fn parts(&self) -> &[Part<'a>] {
        &self.parts
    }

    /// Bytes of all files together.
    pub fn byte_len(&self) -> u64 {
        self.parts.iter().map(|part| part.source.byte_len()).sum()
    }

    /// Order of bytes, in headers and data.
    pub fn order(&self) -> ByteOrder {
        self.parts.first().map_or_else(ByteOrder::default, |part| part.header.order())
    }

    /// The header of the same model in one file of the newest version, laid out.
    ///
    /// # Errors
    /// [`Error::File`] if the size of a tensor is not known.
    pub fn to_draft(&self) -> Result<Draft<'a>, Error> {
        let mut draft = Draft {
            order: self.order(),
            metadata: self.metadata.clone(),
            tensors: self.tensors.iter().map(|tensor| tensor.info.clone()).collect(),
            ..Draft::default()
        };
        draft.lay_out()?;
        Ok(draft)
    }

    /// What an output of this model may replace: none of its files.
    pub(crate) fn spared(&self, overwrite: &Overwrite) -> Overwrite {
        overwrite.clone().sparing(self.parts.iter().map(|part| part.path))
    }
}
