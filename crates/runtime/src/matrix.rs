//! Matrices of weights, quantized as in the file.

use gguf::{Bytes, Error, Finding, TensorType};
use gguf_quant::Codec;
use gguf_store::{Advice, ModelTensor};

#[cfg(target_arch = "x86_64")]
use crate::repack::LazyRepack;

/// A tensor as rows of quantized blocks, memory-mapped or owned.
pub(crate) struct Matrix {
    pub name: Box<str>,
    pub codec: &'static Codec,
    /// Elements of a row.
    pub row_len: usize,
    /// Elements of a block.
    pub block_len: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Rows of all matrices of the tensor.
    pub rows: usize,
    /// Rows of one matrix: the extent of the second dimension.
    pub rows_per_matrix: usize,
    data: Data,
    /// Repacked copy for token generation.
    #[cfg(target_arch = "x86_64")]
    pub repacked: LazyRepack,
}

enum Data {
    Mapped(ModelTensor),
    Owned(Bytes),
}

impl Matrix {
    /// Returns the matrix of a tensor; data of a memory-mapped tensor are not copied.
    pub fn new(tensor: &ModelTensor) -> Result<Self, Error> {
        let info = &tensor.info;
        let place = |finding: Finding| finding.tensor(info.name.clone());
        let Some(codec) = gguf_quant::codec(info.tensor_type) else {
            let message = format!("no kernel supports {}", info.tensor_type);
            return Err(place(
                Finding::error("tensor-type-unknown", message)
                    .help("convert the tensor to another type"),
            )
            .into());
        };
        let too_large =
            || place(Finding::error("tensor-size-overflow", "is too large for this machine"));
        let size = |n: u64| usize::try_from(n).map_err(|_| too_large());
        let elements = size(info.shape.elements().ok_or_else(too_large)?)?;
        let row_len = size(info.shape.row_len())?;
        let bytes = size(info.byte_len().ok_or_else(too_large)?)?;
        let rows = elements.checked_div(row_len).unwrap_or(0);
        if rows == 0 {
            return Err(place(
                Finding::error("tensor-empty", "has no elements").help("convert the model again"),
            )
            .into());
        }
        let data = if tensor.data().is_some() {
            Data::Mapped(tensor.clone())
        } else {
            let mut owned = vec![0; bytes];
            tensor.read_at(&mut owned, 0)?;
            Data::Owned(owned.into())
        };
        Ok(Self {
            name: info.name.to_string().into(),
            codec,
            row_len,
            block_len: info.tensor_type.block().map_or(1, |(len, _)| len as usize),
            row_bytes: bytes / rows,
            rows,
            rows_per_matrix: size(info.shape.get(1).copied().unwrap_or(1))?,
            data,
            #[cfg(target_arch = "x86_64")]
            repacked: LazyRepack::default(),
        })
    }

    /// Returns a matrix of bytes in the layout of the file.
    pub fn from_bytes(
        name: &str,
        shape: &[u64],
        ty: TensorType,
        bytes: Bytes,
    ) -> Result<Self, Error> {
        let error = |message: String| {
            Error::from(Finding::error("tensor-shape", message).tensor(name).help("pass all rows"))
        };
        let Some(codec) = gguf_quant::codec(ty) else {
            return Err(error(format!("no kernel supports {ty}")));
        };
        if ty.byte_len(shape) != Some(bytes.len() as u64) {
            return Err(error(format!(
                "the data have {} bytes, which is not the size of {shape:?} in {ty}",
                bytes.len()
            )));
        }
        let row_len = shape.first().copied().unwrap_or(1) as usize;
        let rows: usize = shape.iter().skip(1).map(|extent| *extent as usize).product();
        Ok(Self {
            name: name.into(),
            codec,
            row_len,
            block_len: ty.block().map_or(1, |(len, _)| len as usize),
            row_bytes: bytes.len() / rows.max(1),
            rows,
            rows_per_matrix: shape.get(1).map_or(1, |extent| *extent as usize),
            data: Data::Owned(bytes),
            #[cfg(target_arch = "x86_64")]
            repacked: LazyRepack::default(),
        })
    }

    /// Returns a matrix of unquantized floats.
    #[cfg(test)]
    pub fn from_floats(ty: TensorType, row_len: usize, rows: usize, data: Vec<u8>) -> Self {
        Self {
            name: "floats".into(),
            codec: gguf_quant::codec(ty).expect("floats have a codec"),
            row_len,
            block_len: 1,
            row_bytes: data.len() / rows,
            rows,
            rows_per_matrix: rows,
            data: Data::Owned(data.into()),
            #[cfg(target_arch = "x86_64")]
            repacked: LazyRepack::default(),
        }
    }

    /// Returns the bytes of all rows.
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Mapped(tensor) => tensor.data().unwrap_or_default(),
            Data::Owned(bytes) => bytes,
        }
    }

    /// Returns the bytes of `count` rows.
    pub fn rows(&self, first: usize, count: usize) -> &[u8] {
        let start = first * self.row_bytes;
        self.bytes().get(start..start + count * self.row_bytes).unwrap_or_default()
    }

    /// Whether the data are those of a mapped file.
    pub fn is_mapped(&self) -> bool {
        matches!(self.data, Data::Mapped(_))
    }

    /// Tells the system what happens next to `count` rows of a mapped file.
    pub fn advise(&self, first: usize, count: usize, advice: Advice) {
        if let Data::Mapped(tensor) = &self.data {
            let place = |row: usize| (row * self.row_bytes) as u64;
            tensor.advise(place(first)..place(first + count), advice);
        }
    }

    /// Dequantizes rows from `first` on, as many as `out` holds.
    pub fn decode(&self, first: usize, out: &mut [f32]) {
        let count = out.len() / self.row_len;
        // The lengths fit: they follow from the shape and the type.
        let decoded = self.codec.decode_row(self.rows(first, count), out);
        debug_assert!(decoded.is_ok(), "{}", self.name);
    }
}
