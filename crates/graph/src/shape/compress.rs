//! What rows that stand for several tokens ask of their parts.

use super::{Place, Result, require, same};
use crate::graph::Shape;
use crate::op::Compress;

impl Place<'_> {
    pub(super) fn compress(&self, compress: &Compress) -> Result<Shape> {
        let Compress { x, gate, place, block, overlap, state } = *compress;
        let x = self.tokens(x)?;
        if let Some(gate) = gate {
            let gate = self.tokens(gate)?.width.into();
            same("widths of what is compressed and of its weights", x.width.into(), gate)?;
        }
        require(block > 0, "a block has no tokens")?;
        self.optional(place, &[x.width.into(), block.into()])?;
        self.rows_state(state, 2 * x.width, compress.rows())?;
        Shape::new(x.rows, x.part(if overlap { 2 } else { 1 })?.into())
    }
}
