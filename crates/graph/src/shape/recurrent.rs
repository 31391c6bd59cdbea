//! What recurrences ask of their parts.

use super::{Place, Result, product, require, same};
use crate::graph::{Rows, Shape};
use crate::op::{Decay, LinearAttention, Scan, Wkv};
use crate::raw::{StateId, ValueId};

impl Place<'_> {
    pub(super) fn scan(&self, scan: &Scan) -> Result<Shape> {
        let x = self.tokens(scan.x)?;
        let dt = self.tokens(scan.dt)?;
        let (b, c) = (self.tokens(scan.b)?, self.tokens(scan.c)?);
        let heads = u64::from(dt.width);
        require(scan.groups > 0 && heads % u64::from(scan.groups) == 0, "groups of heads")?;
        let len = u64::from(x.part(dt.width)?);
        let numbers = u64::from(b.part(scan.groups)?);
        same(
            "widths of what goes into the state and what is read",
            b.width.into(),
            c.width.into(),
        )?;
        let decays = self.elements(scan.a)?;
        require(
            decays == heads || decays == product(numbers, heads)?,
            "the decay is neither for heads nor for each number of their states",
        )?;
        same("numbers that go past the state", self.elements(scan.d)?, heads)?;
        self.floats_state(scan.state, product(product(heads, len)?, numbers)?)?;
        Ok(x)
    }

    pub(super) fn wkv(&self, wkv: &Wkv) -> Result<Shape> {
        match wkv {
            Wkv::V4 { k, v, decay, first, state } => {
                let shape = self.alike(*k, *v)?;
                require(shape.rows == Rows::Tokens, "the rows are not those of all tokens")?;
                let width = u64::from(shape.width);
                self.vector(*decay, width)?;
                self.vector(*first, width)?;
                self.floats_state(*state, 3 * width)?;
                Ok(shape)
            }
            Wkv::V6 { r, w, k, v, first, head_len, state } => {
                let shape = self.heads_alike(&[*r, *w, *k, *v], *head_len, *state)?;
                same("width of the bonus", self.elements(*first)?, shape.width.into())?;
                Ok(shape)
            }
            Wkv::V7 { r, w, k, v, a, b, head_len, state } => {
                self.heads_alike(&[*r, *w, *k, *v, *a, *b], *head_len, *state)
            }
        }
    }

    pub(super) fn linear_attention(&self, attention: &LinearAttention) -> Result<Shape> {
        let LinearAttention { query, key, value, heads, decay, rate, state } = *attention;
        let (query, key, value) = (self.tokens(query)?, self.tokens(key)?, self.tokens(value)?);
        same("widths of queries and keys", query.width.into(), key.width.into())?;
        key.part(heads)?;
        let value_len = value.part(heads)?;
        match decay {
            Decay::Value(decay) => {
                let decay = self.tokens(decay)?.width;
                require(
                    decay == heads || decay == key.width,
                    "the decay is neither for heads nor for each number of their keys",
                )?;
            }
            Decay::Slopes { max, factor } => {
                require(max.is_finite() && factor.is_finite(), "the slopes are not finite")?;
            }
        }
        if let Some(rate) = rate {
            same("rates and heads", self.tokens(rate)?.width.into(), heads.into())?;
        }
        self.floats_state(state, product(key.width.into(), value_len.into())?)?;
        Ok(value)
    }

    fn heads_alike(&self, values: &[ValueId], head_len: u32, state: StateId) -> Result<Shape> {
        let shape = self.tokens(values[0])?;
        for value in values {
            require(self.value(*value)? == shape, "the values have other shapes")?;
        }
        require(head_len > 0 && shape.width % head_len == 0, "heads do not divide the width")?;
        self.floats_state(state, product(shape.width.into(), head_len.into())?)?;
        Ok(shape)
    }
}
