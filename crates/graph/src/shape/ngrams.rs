//! Embeddings of n-grams.

use super::{MAX_WIDTH, Place, Result, product, require, same};
use crate::graph::Shape;
use crate::op::Ngrams;
use crate::raw::State;

/// Most rows of a table: far beyond any model, and few enough that places in it do not overflow.
const MAX_ROWS: u64 = u32::MAX as u64;

impl Place<'_> {
    pub(super) fn ngrams(&self, ngrams: &Ngrams) -> Result<Shape> {
        let of_tokens = self.rows_of_tokens()?;
        let shape = self.weight(ngrams.table)?;
        let [len, rows] = [0, 1].map(|axis| shape.get(axis).copied().unwrap_or(1));
        require(
            shape.iter().skip(2).all(|extent| *extent == 1),
            "the weight has too many dimensions",
        )?;
        require(
            (1..=MAX_WIDTH).contains(&len) && (1..=MAX_ROWS).contains(&rows),
            "a dimension of the weight is 0 or too large",
        )?;
        let lens = (ngrams.multipliers.len() as u64).saturating_sub(1);
        let heads = ngrams.heads.len() as u64;
        require(lens > 0, "there are no multipliers for two tokens")?;
        require(
            heads.is_multiple_of(lens),
            "heads are not equally many for each number of tokens",
        )?;
        for head in &ngrams.heads {
            let end = head.start.checked_add(head.count);
            let fits = head.count > 0 && end.is_some_and(|end| end <= rows);
            require(fits, "a head has no rows, or some beyond the table")?;
        }
        match self.state(ngrams.state)? {
            State::Tokens { count } => same("tokens of the state", count.into(), lens)?,
            other => return Err(format!("the state is {other}")),
        }
        Shape::new(of_tokens, product(len, heads)?)
    }
}
