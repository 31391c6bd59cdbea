//! Conversion of byte order and format version.

use std::path::Path;

use gguf::{ByteOrder, Error, Finding, Header, endian, write_header};

use crate::edit::EditLock;
use crate::model::Model;
use crate::output::{AtomicFile, Existing, Overwrite};
use crate::progress::Progress;
use crate::shard_set::ShardSet;

/// Byte order and version of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndianOptions {
    /// Byte order.
    pub order: ByteOrder,
    /// Version of the format, 2 or 3.
    pub version: u32,
}

/// A planned conversion.
pub struct Plan {
    model: Model,
    header: Header,
    swaps: bool,
}

/// Approximate number of bytes copied at a time.
const CHUNK: u64 = 4 << 20;

impl Plan {
    /// Plans the conversion of `model` to one file.
    ///
    /// # Errors
    /// If the block layout or size of a tensor is not known.
    pub fn new(model: Model, options: EndianOptions) -> Result<Self, Error> {
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

    /// Returns the header of the output.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether tensor data is swapped.
    pub fn swaps(&self) -> bool {
        self.swaps
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If the model cannot be read, the file cannot be written, or `progress` stopped the work.
    pub fn write(
        &self,
        path: &Path,
        overwrite: &Overwrite,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        self.fill(path, overwrite, progress)?.commit()
    }

    /// Writes the file, without renaming it.
    fn fill(
        &self,
        path: &Path,
        overwrite: &Overwrite,
        progress: &dyn Progress,
    ) -> Result<AtomicFile, Error> {
        let header = &self.header;
        let start = write_header(header)?;
        let output = AtomicFile::create(path, overwrite)?;
        let data_start = start.len() as u64;
        output.set_len(header.file_len(start.len())?)?;
        output.write_at(&start, 0)?;
        progress.begin("converting", header.data_len());
        let mut buffer = Vec::new();
        for (from, to) in self.model.tensors().iter().zip(header.tensors()) {
            // The checked header has no tensors of unknown size.
            let len = to.byte_len().unwrap_or(0);
            let (_, block) = to.tensor_type.block().unwrap_or((1, 1));
            let chunk = (CHUNK / block).max(1) * block;
            for first in (0..len).step_by(chunk as usize) {
                buffer.resize(chunk.min(len - first) as usize, 0);
                from.read_stored_at(&mut buffer, first)?;
                if self.swaps && !endian::swap_blocks(to.tensor_type, &mut buffer) {
                    let finding =
                        Finding::error("tensor-row-not-blocks", "does not consist of whole blocks");
                    return Err(finding.tensor(&*to.name).into());
                }
                output.write_at(&buffer, data_start + to.offset + first)?;
                progress.step(buffer.len() as u64)?;
            }
        }
        Ok(output)
    }
}

/// Replaces the file at `path`.
///
/// # Errors
/// If the file is one of several shards, or another process edits it; as [`Plan::new`] and
/// [`Plan::write`].
pub fn in_place(path: &Path, options: EndianOptions, progress: &dyn Progress) -> Result<(), Error> {
    let file = ShardSet::single_file(path, "replaced")?;
    // Locked from before the file is read until it is replaced.
    let _lock = EditLock::take(&file)?;
    let plan = Plan::new(Model::open(&file)?, options)?;
    let output = plan.fill(&file, &Overwrite::new(Existing::Replace), progress)?;
    // Windows replaces no open file.
    drop(plan);
    output.commit()
}
