//! FP8 with scales.
//!
//! ```text
//! X        F8 [..., out, in]
//! scales   one for all, one per row, or one per block of rows and columns
//!
//! w[out][in] = X[out][in] * scale[out / block rows][in / block columns]
//! ```
//!
//! Scales are named `X_scale_inv` (DeepSeek), `X_scale` (compressed-tensors, ModelOpt),
//! `qscale_weight` (Mistral) or `scale` (DeepSeek 4, with experts in MXFP4). Experts, the
//! dimensions before the last two, have separate scales.

use gguf::TensorType;
use serde_json::Value;

use super::method::Method;
use super::{Content, Matrix, MatrixError, TensorSet, mxfp4, put_floats, rows_and_columns};
use crate::dtype::Dtype;
use crate::raw::Raw;
use crate::rows::Rows;

pub(super) const METHOD: Method = Method {
    name: "FP8",
    names: &["fp8", "fbgemm_fp8"],
    file: None,
    read: |fields| {
        let block_size = BlockSize::parse(fields);
        Ok(Box::new(move |set, main| match block_size.matrix(set, main)? {
            None => mxfp4::scaled_matrix(set, main),
            found => Ok(found),
        }))
    },
};

/// ScaleBlock size, if the configuration states it.
#[derive(Default)]
pub(super) struct BlockSize(Option<[u64; 2]>);

impl BlockSize {
    /// Parses `weight_block_size` or, in compressed-tensors, `block_structure`.
    pub fn parse(fields: &Value) -> Self {
        let field = ["weight_block_size", "block_structure"];
        let sizes = field.iter().find_map(|field| fields.get(field)?.as_array());
        Self(sizes.and_then(|sizes| match &sizes[..] {
            [rows, columns] => Some([rows.as_u64()?, columns.as_u64()?]),
            _ => None,
        }))
    }

    /// Reads the matrix of `main` and its scales.
    pub fn matrix(&self, set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
        if !matches!(main.dtype, Dtype::F8E4M3 | Dtype::F8E5M2) {
            return Ok(None);
        }
        let name = &main.name;
        let sibling = |end: &str| Some(format!("{}{end}", name.strip_suffix("weight")?));
        let names = [
            Some(format!("{name}_scale_inv")),
            Some(format!("{name}_scale")),
            sibling("qscale_weight"),
            sibling("scale"),
        ];
        let Some(scales) = names.into_iter().flatten().find_map(|name| set.take(&name)) else {
            return Ok(None);
        };
        let (rows, columns) = rows_and_columns(&main.shape)?;
        let block = self.block(&main.shape, &scales.shape).ok_or_else(|| {
            let (shape, scales) = (&main.shape, &scales.shape);
            MatrixError::Parts(format!(
                "has the shape {shape:?}, which does not match scales of shape {scales:?}"
            ))
        })?;
        let rows =
            Fp8Rows { weight: main.clone(), scales: scales.clone(), block, shape: (rows, columns) };
        Ok(Some(Matrix {
            name: name.clone(),
            shape: main.shape.clone(),
            content: Content::Rows(TensorType::F32, Box::new(rows)),
        }))
    }

    /// Determines the block of each scale.
    fn block(&self, shape: &[u64], scales: &[u64]) -> Option<ScaleBlock> {
        let [experts @ .., rows, columns] = shape else { return None };
        let count: u64 = experts.iter().product();
        let (rows, columns) = (*rows, *columns);
        let block =
            |block_rows, block_columns| ScaleBlock { rows, block_rows, block_columns, columns };
        let all: u64 = scales.iter().product();
        if all == 1 {
            return Some(ScaleBlock { rows: count * rows, ..block(count * rows, columns) });
        }
        if let Some([block_rows, block_columns]) = self.0.filter(|size| !size.contains(&0)) {
            let expected = [rows.div_ceil(block_rows), columns.div_ceil(block_columns)];
            if all == count * expected[0] * expected[1] {
                return Some(block(block_rows, block_columns));
            }
        }
        if all == count * rows {
            return Some(block(1, columns));
        }
        if !experts.is_empty() && all == count {
            return Some(block(rows, columns));
        }
        // Without a stated size, blocks must divide the matrix evenly.
        let [.., scale_rows, scale_columns] = scales else { return None };
        let fits = all > 0
            && rows.is_multiple_of(*scale_rows)
            && columns.is_multiple_of(*scale_columns)
            && all == count * scale_rows * scale_columns;
        fits.then(|| block(rows / scale_rows, columns / scale_columns))
    }
}

/// Layout of scales: by rows of blocks, expert by expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ScaleBlock {
    /// Rows per expert.
    rows: u64,
    columns: u64,
    block_rows: u64,
    block_columns: u64,
}

impl ScaleBlock {
    /// Returns the number of scales per row of blocks.
    fn scales_per_row(self) -> u64 {
        self.columns.div_ceil(self.block_columns)
    }

    /// Returns the index of the first scale of a row.
    fn first_scale(self, row: u64) -> u64 {
        let (expert, row) = (row / self.rows, row % self.rows);
        let block_row = expert * self.rows.div_ceil(self.block_rows) + row / self.block_rows;
        block_row * self.scales_per_row()
    }
}

struct Fp8Rows {
    weight: Raw,
    scales: Raw,
    block: ScaleBlock,
    shape: (u64, u64),
}

impl Rows for Fp8Rows {
    fn count(&self) -> u64 {
        self.shape.0
    }

    fn row_bytes(&self) -> u64 {
        self.shape.1 * 4
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
        let columns = self.shape.1;
        let n = out.len() as u64 / self.row_bytes();
        let weights = self.weight.floats(first * columns, n * columns)?;
        let mut known = None;
        let mut scales = Vec::new();
        let rows = weights.chunks_exact(columns as usize).zip(first..);
        for ((weights, row), out) in rows.zip(out.chunks_exact_mut(self.row_bytes() as usize)) {
            let at = self.block.first_scale(row);
            if known != Some(at) {
                scales = self.scales.floats(at, self.block.scales_per_row())?;
                known = Some(at);
            }
            let blocks = weights.chunks(self.block.block_columns as usize).zip(&scales);
            put_floats(out, blocks.flat_map(|(xs, scale)| xs.iter().map(move |x| x * scale)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_layouts() {
        let sized = BlockSize(Some([128, 128]));
        let block = |rows, columns, block_rows, block_columns| {
            Some(ScaleBlock { rows, columns, block_rows, block_columns })
        };
        assert_eq!(sized.block(&[300, 200], &[3, 2]), block(300, 200, 128, 128));
        assert_eq!(sized.block(&[300, 200], &[1]), block(300, 200, 300, 200));
        assert_eq!(sized.block(&[300, 200], &[300, 1]), block(300, 200, 1, 200));
        assert_eq!(sized.block(&[300, 200], &[4, 2]), block(300, 200, 75, 100));
        assert_eq!(sized.block(&[4, 300, 200], &[4, 3, 2]), block(300, 200, 128, 128));
        assert_eq!(sized.block(&[4, 300, 200], &[4, 1, 1]), block(300, 200, 300, 200));
        assert_eq!(sized.block(&[300, 200], &[7, 2]), None);
        let experts = sized.block(&[4, 300, 200], &[4, 3, 2]).unwrap();
        assert_eq!([0, 127, 128, 299, 300].map(|row| experts.first_scale(row)), [0, 0, 2, 4, 6]);
    }
}
