//! Entry of the tensor directory.

use std::fmt;

use crate::finding::Finding;
use crate::tensor_type::TensorType;

/// Maximum number of dimensions of a tensor.
pub const MAX_DIMS: usize = 4;

/// Shape of a tensor: up to four dimensions in elements, fastest-varying first.
///
/// Dereferences to a slice of the stored dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [u64; MAX_DIMS],
    len: u8,
}

impl Shape {
    /// Returns the shape; `None` if there are more than four dimensions.
    pub fn new(dims: &[u64]) -> Option<Self> {
        let mut shape = Self { dims: [1; MAX_DIMS], len: 0 };
        shape.dims.get_mut(..dims.len())?.copy_from_slice(dims);
        shape.len = dims.len() as u8;
        Some(shape)
    }

    /// Returns the number of elements; `None` on overflow of 64 bits.
    pub fn elements(&self) -> Option<u64> {
        self.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim))
    }

    /// Returns the number of elements in a row: the first dimension, 1 for the empty shape.
    pub fn row_len(&self) -> u64 {
        self.first().copied().unwrap_or(1)
    }
}

impl std::ops::Deref for Shape {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.dims[..self.len as usize]
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Formats the shape as in `[4096, 32000]`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}"))
    }
}

/// Directory entry of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name, such as `blk.0.attn_q.weight`.
    pub name: String,
    /// Elements per dimension, fastest first.
    pub shape: Shape,
    /// Storage type of the elements.
    pub tensor_type: TensorType,
    /// Offset of the data, relative to the data section.
    pub offset: u64,
    /// Size in bytes of data of an unknown type, up to the next tensor or the end of its file; `None` if the type is
    /// known or the tensor is in no file. Readers set it, so that such data can be copied.
    pub opaque_len: Option<u64>,
}

impl TensorInfo {
    /// Returns the size of the data in bytes; `None` as for [`TensorType::byte_len`], unless the size of an unknown type
    /// is known from its file.
    pub fn byte_len(&self) -> Option<u64> {
        match self.tensor_type.block() {
            Some(_) => self.tensor_type.byte_len(&self.shape),
            None => self.opaque_len,
        }
    }

    /// Returns the reason why [`TensorInfo::byte_len`] is `None`.
    pub(crate) fn size_fault(&self) -> Finding {
        let finding = match self.tensor_type.block() {
            None => Finding::error(
                "tensor-size-unknown",
                format!("the size of {} data is unknown", self.tensor_type),
            ),
            Some((block, _)) if !self.shape.row_len().is_multiple_of(block) => Finding::error(
                "tensor-row-not-blocks",
                format!(
                    "row size {} is not a multiple of the {} block size {block}",
                    self.shape.row_len(),
                    self.tensor_type
                ),
            ),
            Some(_) => Finding::error(
                "tensor-size-overflow",
                format!("the size of shape {} does not fit 64 bits", self.shape),
            ),
        };
        finding.tensor(&*self.name)
    }
}
