//! What is asked of blocks that become one row.

use super::{Place, Result, require, same};
use crate::graph::Shape;
use crate::op::Blend;

impl Place<'_> {
    pub(super) fn blend(&self, blend: &Blend) -> Result<Shape> {
        let (x, scores) = (self.tokens(blend.x)?, self.tokens(blend.scores)?);
        require(x == scores, "the values have other shapes")?;
        let [width, len] = self.matrix(blend.weight)?;
        same("widths of the value and of the weight", x.width.into(), width)?;
        let both = Shape::new(x.rows, 2 * width)?;
        self.rows_state(blend.state, both.width, len - 1)?;
        Ok(x)
    }
}
