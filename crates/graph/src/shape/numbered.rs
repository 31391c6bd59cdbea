//! What is asked of numbers of tokens, and of what goes by them.

use super::{Place, Result, require, same};
use crate::graph::{Rows, Shape};
use crate::op::{Mark, NumberedProduct};

impl Place<'_> {
    /// Rows of tokens, where there are some.
    pub(super) fn rows_of_tokens(&self) -> Result<Rows> {
        let frames = self.is_encoder && self.features_width().is_some();
        require(!frames, "an encoder of frames has no tokens")?;
        Ok(Rows::Tokens)
    }

    pub(super) fn mark(&self, mark: &Mark) -> Result<Shape> {
        ascending(&mark.marks)?;
        let mut numbers = mark.marks.iter().map(|(_, number)| *number).chain([mark.otherwise]);
        require(numbers.all(f32::is_finite), "a number is not finite")?;
        Shape::new(self.rows_of_tokens()?, 1)
    }

    pub(super) fn numbered_product(&self, product: &NumberedProduct) -> Result<Shape> {
        let [input, output, _] = self.cube(product.weight)?;
        let (x, number) = (self.value(product.x)?, self.value(product.number)?);
        same("width of the value and rows of the matrices", x.width.into(), input)?;
        same("numbers of a row", number.width.into(), 1)?;
        require(x.rows == number.rows, "the values have other rows")?;
        Shape::new(x.rows, output)
    }
}

/// Refuses tokens that are not in ascending order, in which they are looked up.
pub(super) fn ascending<T>(of_tokens: &[(u32, T)]) -> Result<()> {
    let is_sorted = of_tokens.is_sorted_by(|(a, _), (b, _)| a < b);
    require(is_sorted, "tokens are not in ascending order, each once")
}
