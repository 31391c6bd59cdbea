//! Matrix of the block scales of a tensor.

use std::ops::Range;

use gguf::{Error, Finding};
use gguf_quant::{BlockLayout, Field, block_layout};

use super::numbers::{Matrix, Numbers};

/// A scale field of all blocks of a tensor as a matrix: a row has the values of the field of each block.
pub struct Scales<'t> {
    matrix: Matrix<'t>,
    layout: &'static BlockLayout,
    field: usize,
}

impl<'t> Scales<'t> {
    /// Creates the matrix of a scale field.
    ///
    /// # Errors
    /// `name-not-found` if blocks have no scale of this name.
    pub fn of(matrix: Matrix<'t>, name: &str) -> Result<Self, Error> {
        let info = &matrix.tensor().info;
        let is_it = |field: &Field| field.name == name && is_scale(field);
        let found = block_layout(info.tensor_type)
            .and_then(|layout| Some((layout, layout.fields.iter().position(is_it)?)));
        let Some((layout, field)) = found else {
            let what = format!("blocks of {} have no scale `{name}`", info.tensor_type);
            return Err(Error::Caller(Box::new(Finding::error("name-not-found", what))));
        };
        Ok(Self { matrix, layout, field })
    }

    /// Returns the names of the scales of a layout.
    pub fn names(layout: &BlockLayout) -> impl Iterator<Item = &'static str> {
        layout.fields.iter().filter(|field| is_scale(field)).map(|field| field.name)
    }

    fn per_block(&self) -> u64 {
        self.layout.fields[self.field].count as u64
    }
}

/// Whether a field is a scale, and not a weight.
fn is_scale(field: &Field) -> bool {
    field.kind.is_float() && field.name != "value"
}

impl Numbers for Scales<'_> {
    fn rows(&self) -> u64 {
        self.matrix.rows()
    }

    fn columns(&self) -> u64 {
        self.matrix.blocks_per_row().saturating_mul(self.per_block())
    }

    fn block_len(&self) -> u64 {
        self.per_block()
    }

    fn read(&self, row: u64, columns: Range<u64>, out: &mut Vec<f32>) -> Result<(), Error> {
        let per = self.per_block();
        let blocks = columns.start / per..columns.end.div_ceil(per);
        let (_, bytes) = self.matrix.block();
        let all = self.matrix.blocks(row, blocks.clone())?;
        out.clear();
        for block in all.chunks(bytes as usize) {
            let numbers = self.layout.numbers(block, self.field);
            out.extend(numbers.map(|number| number.unwrap_or(f64::NAN) as f32));
        }
        out.truncate((columns.end - blocks.start * per) as usize);
        out.drain(..(columns.start - blocks.start * per) as usize);
        Ok(())
    }
}
