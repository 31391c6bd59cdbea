//! Output jobs: the tensors of an output file and their types.

use std::sync::Arc;

use gguf::{
    ByteOrder, Error, Finding, Header, Metadata, RawHeader, TensorInfo, TensorType, write_header,
};
use gguf_quant::CodecError;
use gguf_store::{Model, Progress};

use crate::parallel;
use crate::tensor::Tensor;

/// A tensor and its type in the output.
#[derive(Clone)]
pub struct Item {
    /// Source tensor.
    pub tensor: Tensor,
    /// Type in the output.
    pub target: TensorType,
    /// Importance weights of the columns: one finite weight per column, or for expert tensors
    /// (three dimensions) one per column of each expert.
    pub importance: Option<Arc<[f32]>>,
}

impl Item {
    /// Creates an item without importance weights.
    pub fn new(tensor: Tensor, target: TensorType) -> Self {
        Self { tensor, target, importance: None }
    }

    /// Returns the importance weights for a row (those of its expert, if there are several), and
    /// the number of rows from this one on that share them.
    pub fn importance_of_row(&self, row: u64) -> (Option<&[f32]>, u64) {
        let Some(importance) = self.importance.as_deref() else { return (None, u64::MAX) };
        let shape = &self.tensor.shape;
        let rows_per_expert = shape.get(1).copied().unwrap_or(1).max(1);
        let mut experts = importance.chunks_exact((shape.row_len() as usize).max(1));
        match experts.len() {
            1 => (Some(importance), u64::MAX),
            // Too few weights count as none: the encoder rejects any other number than one per
            // column.
            _ => {
                let expert_weights =
                    experts.nth((row / rows_per_expert) as usize).unwrap_or_default();
                (Some(expert_weights), rows_per_expert - row % rows_per_expert)
            }
        }
    }

    /// Encodes whole rows as `target`, starting at row `first` of the tensor, with the importance
    /// weights of each.
    ///
    /// # Errors
    /// See [`gguf_quant::Codec::encode_rows`].
    pub fn encode(
        &self,
        target: TensorType,
        first: u64,
        values: &[f32],
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        let codec = gguf_quant::codec(target).ok_or(CodecError::NoCodec(target))?;
        let row_len = (self.tensor.shape.row_len() as usize).max(1);
        let rows = (values.len() / row_len) as u64;
        let row_bytes = out.len() / (rows as usize).max(1);
        let mut row = 0;
        while row < rows {
            let (importance, count) = self.importance_of_row(first + row);
            let end = rows.min(row.saturating_add(count));
            let part = |size: usize| row as usize * size..end as usize * size;
            codec.encode_rows(&values[part(row_len)], importance, &mut out[part(row_bytes)])?;
            row = end;
        }
        Ok(())
    }

    /// Encodes the whole tensor as `target` in memory. `progress` can cancel the work; no bytes are
    /// reported to it.
    ///
    /// # Errors
    /// Returns an error if the tensor cannot be read, decoded or encoded.
    pub fn encoded(&self, target: TensorType, progress: &dyn Progress) -> Result<Vec<u8>, Error> {
        let tensor = &self.tensor;
        let (row_len, rows) = (tensor.shape.row_len(), tensor.rows());
        let step = CHUNK.checked_div(row_len).unwrap_or(1).max(1);
        let failed = |fault: CodecError| Error::weights(&tensor.name, fault.to_string());
        let chunks = parallel::map(rows.div_ceil(step) as usize, |chunk| {
            progress.step(0)?;
            let first = chunk as u64 * step;
            let count = step.min(rows - first);
            let values = tensor.decode_rows(first, count)?;
            let row_bytes = target.byte_len(&[row_len]).unwrap_or(0);
            let mut bytes = vec![0; (count * row_bytes) as usize];
            self.encode(target, first, &values, &mut bytes).map_err(failed)?;
            Ok(bytes)
        })?;
        Ok(chunks.concat())
    }
}

/// Approximate number of elements that one thread encodes at a time.
const CHUNK: u64 = 128 * 1024;

/// Content of one output file.
#[derive(Clone)]
pub struct Job {
    /// Metadata.
    pub metadata: Metadata,
    /// Tensors in file order.
    pub items: Vec<Item>,
    /// Whether to reject NaN and infinity, even in tensors that are only copied.
    pub check_finite: bool,
    /// Byte order of the file, header and data. Sources yield little-endian data whatever the byte
    /// order of their files.
    pub order: ByteOrder,
}

impl Job {
    /// Creates a job that copies the tensors of a model under the same names and in the same byte
    /// order.
    pub fn copy(model: &Model) -> Job {
        let items = model
            .tensors()
            .iter()
            .map(|tensor| Item::new(Tensor::of_model(tensor), tensor.info.tensor_type));
        let (metadata, order) = (model.metadata().clone(), model.order());
        Job { metadata, items: items.collect(), check_finite: false, order }
    }

    /// Builds the header of the output with all offsets.
    ///
    /// # Errors
    /// Returns an error if the header violates the format: a duplicate tensor name, or a row size
    /// that is not a multiple of the block size.
    pub fn header(&self) -> Result<Header, Error> {
        let is_unknown = |item: &&Item| {
            item.tensor.opaque_len().is_some() && item.target != item.tensor.stored_type
        };
        if let Some(item) = self.items.iter().find(is_unknown) {
            let (from, to) = (item.tensor.stored_type, item.target);
            let message = format!("{from} cannot be decoded, and so not be converted to {to}");
            let finding = Finding::error("tensor-type-unknown", message);
            return Err(finding.tensor(item.tensor.name.as_str()).help("keep its type").into());
        }
        let tensors = self.items.iter().map(|item| TensorInfo {
            name: item.tensor.name.as_str().into(),
            shape: item.tensor.shape,
            tensor_type: item.target,
            offset: 0,
            opaque_len: item.tensor.opaque_len(),
        });
        let mut draft = RawHeader {
            order: self.order,
            metadata: self.metadata.clone(),
            tensors: tensors.collect(),
            ..RawHeader::default()
        };
        draft.lay_out()?;
        Header::new(draft)
    }

    /// Returns the size of the output file in bytes.
    ///
    /// # Errors
    /// See [`Job::header`].
    pub fn file_len(&self) -> Result<u64, Error> {
        let header = self.header()?;
        header.file_len(write_header(&header)?.len())
    }
}
