//! A model as a whole, in however many files it is stored.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{
    ByteOrder, Error, Gguf, Header, Metadata, RawHeader, TensorInfo, require_shards, shard_keys,
};

use crate::little_endian::LittleEndian;
use crate::output::Overwrite;
use crate::shard::ShardSet;
use crate::source::{LocalFile, Source};

/// One file of a model: its header, and where its bytes are.
#[derive(Clone)]
pub struct Part {
    /// The name under which messages speak of it.
    pub path: PathBuf,
    /// Its header.
    pub header: Header,
    /// First byte of its data section.
    pub data_start: u64,
    /// The bytes of the whole file.
    pub source: Arc<dyn Source>,
}

/// A tensor of a [`Model`], and where its bytes are.
#[derive(Clone)]
pub struct ModelTensor {
    /// Its entry in the directory of the file it is in.
    pub info: TensorInfo,
    /// The shard it is in, from 0.
    pub shard: usize,
    /// The bytes of that file, those of this tensor in little-endian order whatever the order of
    /// the file is. Nobody who reads here needs to know.
    pub source: Arc<dyn Source>,
    /// Where its data begin in that file.
    pub offset: u64,
    /// The bytes of that file as they are.
    stored: Arc<dyn Source>,
}

impl ModelTensor {
    fn new(info: &TensorInfo, shard: usize, part: &Part) -> Self {
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

    /// Fills `buffer` with its data from byte `first` on, in little-endian order.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    pub fn read_at(&self, buffer: &mut [u8], first: u64) -> Result<(), Error> {
        self.source.read_at(buffer, self.offset.saturating_add(first))
    }

    /// Fills `buffer` with its data from byte `first` on, in the order of the file: for those who
    /// copy or hash what is stored.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    pub fn read_stored_at(&self, buffer: &mut [u8], first: u64) -> Result<(), Error> {
        self.stored.read_at(buffer, self.offset.saturating_add(first))
    }

    /// Its data where they lie, without a copy; `None` if the file is far away or big-endian, or the
    /// size of the tensor is not known.
    pub fn data(&self) -> Option<&[u8]> {
        let start = usize::try_from(self.offset).ok()?;
        let len = usize::try_from(self.info.byte_len()?).ok()?;
        self.source.as_slice()?.get(start..start.checked_add(len)?)
    }
}

/// What the files of one model hold together. It keeps them open, and is not tied to anything else.
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
    parts: Vec<Part>,
    metadata: Metadata,
    tensors: Vec<ModelTensor>,
}

impl Model {
    /// Opens all files of the model that `path` stands for, as [`ShardSet::find`] sees it, and
    /// reads their headers strictly. Each is opened once: header and data are of the same file, also
    /// if another one takes its name.
    ///
    /// # Errors
    /// As [`ShardSet::find`]; [`Error::Environment`] if a file cannot be opened,
    /// [`Error::InFile`] with the first rule that one breaks; else as [`Model::new`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let set = ShardSet::find(path)?;
        let part = |path: &PathBuf| {
            let source = LocalFile::open(path)?;
            let gguf = Gguf::read(source.mapped()).map_err(|error| error.in_file(path))?;
            let data_start = gguf.data_start();
            let (path, source) = (path.clone(), Arc::new(source));
            Ok(Part { path, header: gguf.into_header(), data_start, source })
        };
        Self::new(set.paths().iter().map(part).collect::<Result<_, Error>>()?)
    }

    /// Puts the files of a model together, the first shard first; a model in one file is one part.
    ///
    /// # Errors
    /// [`Error::File`] with the first rule on shards that is broken.
    pub fn new(parts: Vec<Part>) -> Result<Self, Error> {
        let shards: Vec<_> =
            parts.iter().map(|part| (part.path.as_path(), part.header.raw())).collect();
        require_shards(&shards)?;
        let Some(first) = parts.first() else {
            return Err(Error::request("model-missing", "a model has at least one file", ""));
        };
        let mut metadata = first.header.metadata().clone();
        shard_keys::remove(&mut metadata);
        let tensors = parts
            .iter()
            .enumerate()
            .flat_map(|(shard, part)| {
                let tensors = part.header.tensors().iter();
                tensors.map(move |info| ModelTensor::new(info, shard, part))
            })
            .collect();
        Ok(Self { parts, metadata, tensors })
    }

    /// Keys and values: those of the first file, without the `split.` ones.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The tensors of all files, in order of shard and directory.
    pub fn tensors(&self) -> &[ModelTensor] {
        &self.tensors
    }

    /// All tensors by name.
    pub fn index(&self) -> HashMap<&str, &ModelTensor> {
        self.tensors.iter().map(|tensor| (&*tensor.info.name, tensor)).collect()
    }

    /// The files, the first shard first.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The paths or names of the files, the first shard first.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.parts.iter().map(|part| &*part.path)
    }

    /// A text that is another one when the content of a file is; see [`Source::identity`].
    pub fn identity(&self) -> Option<String> {
        self.parts.iter().map(|part| Some(part.source.identity()? + "\n")).collect()
    }

    /// Bytes of all files together.
    pub fn byte_len(&self) -> u64 {
        self.parts.iter().map(|part| part.source.byte_len()).sum()
    }

    /// Order of bytes in the files, in headers and data.
    pub fn order(&self) -> ByteOrder {
        self.parts.first().map_or_else(ByteOrder::default, |part| part.header.order())
    }

    /// The header of the same model in one file of the newest version, laid out.
    ///
    /// # Errors
    /// [`Error::File`] if the size of a tensor is not known.
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

    /// Its files as an output would be named that is one of them: paths, and addresses of far ones. A far file's
    /// name is that of no file here.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(|part| match part.source.as_slice() {
            Some(_) => Some(part.path.as_path()),
            None => part.source.file(),
        })
    }

    /// What an output of this model may replace: none of its files.
    pub(crate) fn spared(&self, overwrite: &Overwrite) -> Overwrite {
        overwrite.clone().sparing(self.files())
    }
}
