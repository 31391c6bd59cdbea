//! A model in one or several files.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{
    ByteOrder, Error, Gguf, Header, Metadata, RawHeader, TensorInfo, require_shards, shard_keys,
};

use crate::advice::Advice;
use crate::byte_parts;
use crate::little_endian::LittleEndian;
use crate::output::Overwrite;
use crate::shard_set::ShardSet;
use crate::source::{LocalFile, Source};

/// One file of a model: its header and its bytes.
#[derive(Clone)]
pub struct ModelFile {
    /// Path or URL shown in messages.
    pub path: PathBuf,
    /// Header of the file.
    pub header: Header,
    /// Start of the data section.
    pub data_start: u64,
    /// Bytes of the whole file.
    pub source: Arc<dyn Source>,
}

/// A tensor of a [`Model`] and the location of its data.
#[derive(Clone)]
pub struct ModelTensor {
    /// Entry in the tensor directory of its file.
    pub info: TensorInfo,
    /// Index of its shard, from 0.
    pub shard: usize,
    /// Bytes of its file, with the data of this tensor in little-endian order regardless of the
    /// byte order of the file.
    pub source: Arc<dyn Source>,
    /// Start of its data in that file.
    pub offset: u64,
    /// Bytes of its file in stored byte order.
    stored: Arc<dyn Source>,
}

impl ModelTensor {
    fn new(info: &TensorInfo, shard: usize, part: &ModelFile) -> Self {
        let offset = part.data_start.saturating_add(info.offset);
        let stored = part.source.clone();
        let source = match part.header.order() {
            ByteOrder::Little => stored.clone(),
            ByteOrder::Big => {
                let (stored, tensor_type) = (stored.clone(), info.tensor_type);
                Arc::new(LittleEndian { stored, start: offset, tensor_type })
            }
        };
        Self { info: info.clone(), shard, source, offset, stored }
    }

    /// Fills `buffer` with tensor data from byte `first` on, in little-endian order.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    pub fn read_at(&self, buffer: &mut [u8], first: u64) -> Result<(), Error> {
        self.source.read_at(buffer, self.offset.saturating_add(first))
    }

    /// Fills `buffer` with tensor data from byte `first` on, in the byte order of the file, to copy
    /// or hash the stored bytes.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    pub fn read_stored_at(&self, buffer: &mut [u8], first: u64) -> Result<(), Error> {
        self.stored.read_at(buffer, self.offset.saturating_add(first))
    }

    /// Returns the mapped data without a copy; `None` if the file is remote or big-endian, or the
    /// size of the tensor is unknown.
    pub fn data(&self) -> Option<&[u8]> {
        let start = usize::try_from(self.offset).ok()?;
        let len = usize::try_from(self.info.byte_len()?).ok()?;
        self.source.as_slice()?.get(start..start.checked_add(len)?)
    }

    /// Tells the system what the caller does next with a range of the tensor data, counted from its first byte.
    pub fn advise(&self, range: Range<u64>, advice: Advice) {
        let place = |at: u64| self.offset.saturating_add(at);
        self.source.advise(place(range.start)..place(range.end), advice);
    }
}

/// All files of a model, which stay open as long as the value lives.
///
/// ```no_run
/// # fn main() -> Result<(), gguf::Error> {
/// let model = gguf_store::Model::open("model-00002-of-00003.gguf".as_ref())?;
/// for tensor in model.tensors() {
///     println!("{} {} in shard {}", tensor.info.name, tensor.info.shape, tensor.shard);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Model {
    parts: Vec<ModelFile>,
    metadata: Metadata,
    tensors: Vec<ModelTensor>,
}

/// Opens a file, and reads its header.
fn part(path: &Path) -> Result<ModelFile, Error> {
    let source = LocalFile::open(path)?;
    let gguf = Gguf::read(source.mapped())
        .map_err(|error| byte_parts::explain_error(error, path).in_file(path))?;
    let data_start = gguf.data_start();
    let (path, source) = (path.to_owned(), Arc::new(source));
    Ok(ModelFile { path, header: gguf.into_header(), data_start, source })
}

impl Model {
    /// Opens all files of the model that [`ShardSet::find`] finds for `path`, and reads their
    /// headers strictly. Each file is opened once, so header and data are consistent even if
    /// another file is renamed over it.
    ///
    /// # Errors
    /// As [`ShardSet::find`]; [`Error::Environment`] if a file cannot be opened,
    /// [`Error::InFile`] with the first rule that a file breaks; otherwise as [`Model::new`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let set = ShardSet::find(path)?;
        Self::new(set.paths().iter().map(|path| part(path)).collect::<Result<_, Error>>()?)
    }

    /// Opens one shard as a model of its own, whose other tensors are missing. The first shard has the metadata.
    ///
    /// # Errors
    /// [`Error::Environment`] if the file cannot be opened, [`Error::InFile`] with the first rule that it breaks.
    pub fn open_shard(path: &Path) -> Result<Self, Error> {
        Ok(Self::of(vec![part(path)?]))
    }

    /// Combines the files of a model, in shard order.
    ///
    /// # Errors
    /// [`Error::File`] with the first rule about shards that is broken.
    pub fn new(parts: Vec<ModelFile>) -> Result<Self, Error> {
        let shards: Vec<_> =
            parts.iter().map(|part| (part.path.as_path(), part.header.raw())).collect();
        require_shards(&shards)?;
        if parts.is_empty() {
            return Err(Error::request("model-missing", "a model needs at least one file", ""));
        }
        Ok(Self::of(parts))
    }

    fn of(parts: Vec<ModelFile>) -> Self {
        let first = parts.first().map(|part| part.header.metadata().clone());
        let mut metadata = first.unwrap_or_default();
        shard_keys::remove(&mut metadata);
        let tensors = parts
            .iter()
            .enumerate()
            .flat_map(|(shard, part)| {
                let tensors = part.header.tensors().iter();
                tensors.map(move |info| ModelTensor::new(info, shard, part))
            })
            .collect();
        Self { parts, metadata, tensors }
    }

    /// Returns the metadata of the first file without the `split.` keys.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the tensors of all files, in order of shard and directory.
    pub fn tensors(&self) -> &[ModelTensor] {
        &self.tensors
    }

    /// Returns all tensors by name.
    pub fn index(&self) -> HashMap<&str, &ModelTensor> {
        self.tensors.iter().map(|tensor| (&*tensor.info.name, tensor)).collect()
    }

    /// Returns the files in shard order.
    pub fn parts(&self) -> &[ModelFile] {
        &self.parts
    }

    /// Returns the paths or URLs of the files in shard order.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.parts.iter().map(|part| &*part.path)
    }

    /// Returns a string that changes when the content of a file does; see [`Source::identity`].
    pub fn identity(&self) -> Option<String> {
        self.parts.iter().map(|part| Some(part.source.identity()? + "\n")).collect()
    }

    /// Returns the total length of all files in bytes.
    pub fn byte_len(&self) -> u64 {
        self.parts.iter().map(|part| part.source.byte_len()).sum()
    }

    /// Returns the byte order of the files.
    pub fn order(&self) -> ByteOrder {
        self.parts.first().map_or_else(ByteOrder::default, |part| part.header.order())
    }

    /// Returns the header of the model as a single file of the newest version, laid out.
    ///
    /// # Errors
    /// [`Error::File`] if the size of a tensor is unknown.
    pub fn to_raw_header(&self) -> Result<RawHeader, Error> {
        let mut draft = RawHeader {
            order: self.order(),
            metadata: self.metadata.clone(),
            tensors: self.tensors.iter().map(|tensor| tensor.info.clone()).collect(),
            ..RawHeader::default()
        };
        draft.lay_out()?;
        Ok(draft)
    }

    /// Returns the paths of local files and the URLs of remote files, to compare outputs with.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(|part| match part.source.as_slice() {
            Some(_) => Some(part.path.as_path()),
            None => part.source.file(),
        })
    }

    /// Adds the files of this model to the inputs that an output must not replace.
    pub(crate) fn protecting_inputs(&self, overwrite: &Overwrite) -> Overwrite {
        overwrite.clone().protecting(self.files())
    }
}
