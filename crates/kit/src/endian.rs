//! A model in the other byte order.

use std::path::Path;

use gguf::{ByteOrder, Finding, Header, endian, write_header};
use gguf_store::edit::EditLock;
use gguf_store::{AtomicFile, Existing, Model, Overwrite, Progress};

use crate::Error;
use crate::model::single_file;

/// What the output is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its byte order.
    pub order: ByteOrder,
    /// Version of the format, 2 or 3.
    pub version: u32,
}

/// A model that is ready to be written.
pub struct Plan {
    model: Model,
    header: Header,
    swaps: bool,
}

/// Bytes copied at a time; cut to whole blocks.
const CHUNK: u64 = 4 << 20;

impl Plan {
    /// Plans `model` as one file.
    ///
    /// # Errors
    /// If the layout of a tensor's type is not known, or its size.
    pub fn new(model: Model, options: Options) -> Result<Self, Error> {
        let swaps = options.order != model.order();
        let mut draft = model.to_raw_header()?;
        draft.order = options.order;
        draft.version = options.version;
        let unknown = |tensor: &&gguf::TensorInfo| swaps && !endian::can_swap(tensor.tensor_type);
        if let Some(tensor) = draft.tensors.iter().find(unknown) {
            return Err(endian::cannot_swap(tensor.tensor_type).tensor(&*tensor.name).into());
        }
        Ok(Self { model, header: Header::new(draft)?, swaps })
    }

    /// The header of the output.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether the data change, and are not only copied.
    pub fn swaps(&self) -> bool {
        self.swaps
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If the model cannot be read or the file not be written, or `progress` ended the work.
    pub fn write(
        &self,
        path: &Path,
        overwrite: &Overwrite,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let header = &self.header;
        let start = write_header(header)?;
        let output = AtomicFile::create(path, overwrite)?;
        let data_start = start.len() as u64;
        output.set_len(header.file_len(start.len())?)?;
        output.write_at(&start, 0)?;
        progress.begin("converting", header.data_len());
        let mut buffer = Vec::new();
        for (from, to) in self.model.tensors().iter().zip(header.tensors()) {
            // The header has been checked: a tensor without a size is none of ours.
            let len = to.byte_len().unwrap_or(0);
            let (_, block) = to.tensor_type.block().unwrap_or((1, 1));
            let chunk = (CHUNK / block).max(1) * block;
            for first in (0..len).step_by(chunk as usize) {
                buffer.resize(chunk.min(len - first) as usize, 0);
                from.read_stored_at(&mut buffer, first)?;
                if self.swaps && !endian::swap_blocks(to.tensor_type, &mut buffer) {
                    let finding = Finding::error("tensor-row-not-blocks", "is no whole blocks");
                    return Err(finding.tensor(&*to.name).into());
                }
                output.write_at(&buffer, data_start + to.offset + first)?;
                progress.step(buffer.len() as u64)?;
            }
        }
        output.commit()
    }
}

/// Replaces the file at `path` itself.
///
/// # Errors
/// If it is one of several files of a model, or somebody edits it; as [`Plan::new`] and
/// [`Plan::write`].
pub fn in_place(path: &Path, options: Options, progress: &dyn Progress) -> Result<(), Error> {
    let file = single_file(path, "replaced")?;
    // Before the file is read, until the new one has its name.
    let _lock = EditLock::take(&file)?;
    let plan = Plan::new(Model::open(&file)?, options)?;
    plan.write(&file, &Overwrite::new(Existing::Replace), progress)
}
