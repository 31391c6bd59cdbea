//! Tensors as matrices that are read and decoded in parts.

use std::ops::Range;

use gguf::{Error, Finding, Shape};
use gguf_quant::decode_row;
use gguf_store::ModelTensor;

/// A matrix of numbers: a tensor, or a function of tensors.
pub trait Numbers: Sync {
    /// Returns the number of rows: the product of all dimensions but the first.
    fn rows(&self) -> u64;

    /// Returns the number of columns.
    fn columns(&self) -> u64;

    /// Returns the block size, by which columns are read efficiently.
    fn block_len(&self) -> u64;

    /// Replaces `out` by the numbers of `columns` of a row, which must be within the shape.
    ///
    /// # Errors
    /// If the data cannot be read.
    fn read(&self, row: u64, columns: Range<u64>, out: &mut Vec<f32>) -> Result<(), Error>;

    /// Replaces `out` by all numbers of several rows.
    ///
    /// # Errors
    /// As [`Numbers::read`].
    fn read_rows(&self, rows: Range<u64>, out: &mut Vec<f32>) -> Result<(), Error> {
        let mut all = Vec::new();
        for row in rows {
            self.read(row, 0..self.columns(), out)?;
            all.append(out);
        }
        *out = all;
        Ok(())
    }
}

/// Target size of joint reads of short rows, to reduce system calls.
pub(super) const JOINT_READ: u64 = 4096;

/// A tensor as a matrix whose rows are the first dimension.
#[derive(Clone, Copy)]
pub struct Matrix<'t> {
    tensor: &'t ModelTensor,
    rows: u64,
    columns: u64,
    row_bytes: u64,
    block: (u64, u64),
}

impl<'t> Matrix<'t> {
    /// Creates the matrix of a tensor.
    ///
    /// # Errors
    /// `codec-missing` if its type cannot be decoded.
    pub fn of(tensor: &'t ModelTensor) -> Result<Self, Error> {
        let info = &tensor.info;
        let columns = info.shape.row_len();
        let row_bytes = Shape::new(&[columns]).and_then(|row| info.tensor_type.byte_len(&row));
        let block =
            info.tensor_type.block().filter(|_| gguf_quant::codec(info.tensor_type).is_some());
        let Some((row_bytes, block)) = row_bytes.zip(block) else {
            let what = format!("{} data cannot be decoded", info.tensor_type);
            let finding = Finding::error("codec-missing", what).tensor(&*info.name);
            return Err(finding.help("only their bytes can be copied").into());
        };
        let rows = info.shape.elements().unwrap_or(0).checked_div(columns).unwrap_or(0);
        Ok(Self { tensor, rows, columns, row_bytes, block })
    }

    /// Returns the tensor.
    pub fn tensor(&self) -> &'t ModelTensor {
        self.tensor
    }

    /// Returns the number of weights and bytes of a block.
    pub fn block(&self) -> (u64, u64) {
        self.block
    }

    /// Returns the number of blocks per row.
    pub fn blocks_per_row(&self) -> u64 {
        self.columns / self.block.0
    }

    /// Reads blocks of a row, in little-endian byte order.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn blocks(&self, row: u64, blocks: Range<u64>) -> Result<Vec<u8>, Error> {
        let (_, bytes) = self.block;
        let mut buffer = vec![0; ((blocks.end - blocks.start) * bytes) as usize];
        self.tensor.read_at(&mut buffer, row * self.row_bytes + blocks.start * bytes)?;
        Ok(buffer)
    }
}

impl Numbers for Matrix<'_> {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn columns(&self) -> u64 {
        self.columns
    }

    fn block_len(&self) -> u64 {
        self.block.0
    }

    fn read(&self, row: u64, columns: Range<u64>, out: &mut Vec<f32>) -> Result<(), Error> {
        let (len, _) = self.block;
        let blocks = columns.start / len..columns.end.div_ceil(len);
        let bytes = self.blocks(row, blocks.clone())?;
        out.clear();
        out.resize(((blocks.end - blocks.start) * len) as usize, 0.0);
        let info = &self.tensor.info;
        decode_row(info.tensor_type, &bytes, out)
            .map_err(|fault| Error::weights(&info.name, fault.to_string()))?;
        out.truncate((columns.end - blocks.start * len) as usize);
        out.drain(..(columns.start - blocks.start * len) as usize);
        Ok(())
    }

    /// Rows are contiguous: reads several like one.
    fn read_rows(&self, rows: Range<u64>, out: &mut Vec<f32>) -> Result<(), Error> {
        self.read(rows.start, 0..(rows.end - rows.start) * self.columns, out)
    }
}

/// Difference of two tensors of the same shape: the second minus the first.
pub struct Differences<'t> {
    a: Matrix<'t>,
    b: Matrix<'t>,
}

impl<'t> Differences<'t> {
    /// Creates the difference of two tensors.
    ///
    /// # Errors
    /// `shapes-differ` if the shapes differ; `codec-missing` if a type cannot be decoded.
    pub fn of(a: &'t ModelTensor, b: &'t ModelTensor) -> Result<Self, Error> {
        if a.info.shape != b.info.shape {
            let what = format!("the shapes are {} and {}", a.info.shape, b.info.shape);
            let finding = Finding::error("shapes-differ", what).tensor(&*a.info.name);
            return Err(finding.into());
        }
        Ok(Self { a: Matrix::of(a)?, b: Matrix::of(b)? })
    }

    /// Returns both tensors.
    pub fn sides(&self) -> (&Matrix<'t>, &Matrix<'t>) {
        (&self.a, &self.b)
    }
}

impl Numbers for Differences<'_> {
    fn rows(&self) -> u64 {
        self.a.rows
    }

    fn columns(&self) -> u64 {
        self.a.columns
    }

    fn block_len(&self) -> u64 {
        self.a.block_len().max(self.b.block_len())
    }

    fn read(&self, row: u64, columns: Range<u64>, out: &mut Vec<f32>) -> Result<(), Error> {
        let mut original = Vec::new();
        self.a.read(row, columns.clone(), &mut original)?;
        self.b.read(row, columns, out)?;
        out.iter_mut().zip(&original).for_each(|(b, a)| *b -= a);
        Ok(())
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Vec<f32>) -> Result<(), Error> {
        let mut original = Vec::new();
        self.a.read_rows(rows.clone(), &mut original)?;
        self.b.read_rows(rows, out)?;
        out.iter_mut().zip(&original).for_each(|(b, a)| *b -= a);
        Ok(())
    }
}
