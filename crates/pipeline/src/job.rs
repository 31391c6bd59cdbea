//! What is to be written: the tensors of an output and their types.

use std::sync::Arc;

use gguf::{ByteOrder, Error, Header, Metadata, RawHeader, TensorInfo, TensorType, write_header};
use gguf_quant::CodecError;
use gguf_store::{Model, Progress};

use crate::parallel;
use crate::tensor::Tensor;

/// A tensor and the type that it is to have.
#[derive(Clone)]
pub struct Item {
    /// Where it comes from.
    pub tensor: Tensor,
    /// The type in the output.
    pub target: TensorType,
    /// How much the error of each column counts in encoding: one finite weight per column, or for
    /// tensors of experts (the third dimension) one per column of each.
    pub importance: Option<Arc<[f32]>>,
}

impl Item {
    /// A tensor that is to have a type, all columns counting alike.
    pub fn new(tensor: Tensor, target: TensorType) -> Self {
        Self { tensor, target, importance: None }
    }

    /// The weights that guide the encoder of a row: those of its expert, if there are several. And
    /// how many rows from this one on have the same.
    pub fn importance_of_row(&self, row: u64) -> (Option<&[f32]>, u64) {
        let Some(importance) = self.importance.as_deref() else { return (None, u64::MAX) };
        let shape = &self.tensor.shape;
        let rows_per_expert = shape.get(1).copied().unwrap_or(1).max(1);
        let mut experts = importance.chunks_exact((shape.row_len() as usize).max(1));
        match experts.len() {
            1 => (Some(importance), u64::MAX),
            // Too few are as none: the encoder refuses weights that are not one per column.
            _ => {
                let of_expert = experts.nth((row / rows_per_expert) as usize).unwrap_or_default();
                (Some(of_expert), rows_per_expert - row % rows_per_expert)
            }
        }
    }

    /// Encodes whole rows as `target`, the first of them row `first` of the tensor, each guided by its
    /// weights.
    ///
    /// # Errors
    /// As [`gguf_quant::Codec::encode_rows`].
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

    /// The whole tensor encoded as `target`, in memory. `progress` may end the work, and is told nothing.
    ///
    /// # Errors
    /// If it cannot be read, decoded or encoded.
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

/// Elements that one thread encodes at a time, about.
const CHUNK: u64 = 128 * 1024;

/// Everything that one output file is to hold.
#[derive(Clone)]
pub struct Job {
    /// Keys and values.
    pub metadata: Metadata,
    /// The tensors, in file order.
    pub items: Vec<Item>,
    /// Refuse weights that are no finite numbers, also in tensors that are only copied.
    pub check_finite: bool,
    /// Order of bytes in the file, header and data. Tensors are read in little-endian order whatever
    /// that of their files is.
    pub order: ByteOrder,
}

impl Job {
    /// The model's tensors, unchanged, under the same names, in its order of bytes.
    pub fn copy(model: &Model) -> Job {
        let items = model
            .tensors()
            .iter()
            .map(|tensor| Item::new(Tensor::of_model(tensor), tensor.info.tensor_type));
        let (metadata, order) = (model.metadata().clone(), model.order());
        Job { metadata, items: items.collect(), check_finite: false, order }
    }

    /// The header of the output, offsets laid out.
    ///
    /// # Errors
    /// If it breaks a rule of the format: a tensor name twice, a row that is no whole number of
    /// blocks.
    pub fn header(&self) -> Result<Header, Error> {
        let tensors = self.items.iter().map(|item| TensorInfo {
            name: item.tensor.name.as_str().into(),
            shape: item.tensor.shape,
            tensor_type: item.target,
            offset: 0,
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

    /// Bytes of the whole file.
    ///
    /// # Errors
    /// As [`Job::header`].
    pub fn file_len(&self) -> Result<u64, Error> {
        let header = self.header()?;
        header.file_len(write_header(&header)?.len())
    }
}
