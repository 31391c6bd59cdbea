//! What attention, and the choice of what it looks at, ask of their parts.

use super::{Place, Result, product, require, same};
use crate::graph::{Rows, Shape};
use crate::op::{Among, Attention, Blocks, Choose, Memory, PositionBias};
use crate::raw::State;

impl Place<'_> {
    pub(super) fn attention(&self, attention: &Attention) -> Result<Shape> {
        let Attention { heads, heads_kv, key_len, value_len, .. } = *attention;
        let query = self.value(attention.query)?;
        require(heads > 0 && heads_kv > 0, "there are no heads")?;
        require(heads % heads_kv == 0, "heads are no multiple of those of keys and values")?;
        let width = |heads: u32, len: u32| product(heads.into(), len.into());
        same("width of queries", query.width.into(), width(heads, key_len)?)?;
        let (keys, values) = (width(heads_kv, key_len)?, width(heads_kv, value_len)?);
        match attention.memory {
            Memory::Given { key, value } | Memory::Cached { key, value, .. } => {
                let (key, value) = (self.value(key)?, self.value(value)?);
                require(
                    key.rows == query.rows && value.rows == query.rows,
                    "queries, keys and values have other rows",
                )?;
                same("width of keys", key.width.into(), keys)?;
                same("width of values", value.width.into(), values)?;
            }
            Memory::Stored { .. } => {}
        }
        let found = match attention.memory {
            Memory::Given { .. } => None,
            Memory::Cached { state, .. } | Memory::Stored { state } => Some(self.state(state)?),
        };
        match (attention.memory, found) {
            (Memory::Given { .. }, _) => {}
            (Memory::Cached { .. }, Some(State::Cache { keys: k, values: v, block: 1 }))
            | (Memory::Stored { .. }, Some(State::Stored { keys: k, values: v })) => {
                same("keys of the state", k.into(), keys)?;
                same("values of the state", v.into(), values)?;
            }
            (_, Some(other)) => return Err(format!("the state is {other}")),
            (_, None) => {}
        }
        match attention.memory {
            Memory::Given { .. } => require(
                matches!(query.rows, Rows::Tokens | Rows::Frames { .. }),
                "the rows are no longer those of all tokens",
            )?,
            _ => require(query.rows == Rows::Tokens, "the rows are not those of all tokens")?,
        }
        if let PositionBias::Buckets { weight, .. } = attention.bias {
            let [found, buckets] = self.matrix(weight)?;
            same("heads of the bias", found, heads.into())?;
            require(buckets >= 4, "the bias has fewer than 4 buckets")?;
        }
        if let PositionBias::Slopes { max } = attention.bias {
            require(max.is_finite(), "the slopes are not finite")?;
        }
        if let Some(Among { chosen, groups, block, .. }) = attention.among {
            let chosen = self.value(chosen)?;
            require(chosen.rows == query.rows, "the values have other rows")?;
            chosen.part(groups)?;
            require(heads_kv % groups == 0, "the groups do not divide the heads")?;
            require(block > 0, "a block has no positions")?;
        }
        if let Some(Blocks { key, value, state, chosen }) = attention.blocks {
            require(
                matches!(attention.memory, Memory::Cached { .. }),
                "only what attends to a cache sees blocks besides",
            )?;
            require(attention.bias == PositionBias::None, "blocks have no single distance")?;
            let (key, value) = (self.tokens(key)?, self.tokens(value)?);
            same("width of keys", key.width.into(), keys)?;
            same("width of values", value.width.into(), values)?;
            match self.state(state)? {
                State::Cache { keys: k, values: v, block: 2.. } => {
                    same("keys of the state", k.into(), keys)?;
                    same("values of the state", v.into(), values)?;
                }
                other => return Err(format!("the state is {other}")),
            }
            chosen.map(|chosen| self.tokens(chosen)).transpose()?;
        }
        self.optional(attention.sinks, &[heads.into()])?;
        if let Some(cap) = attention.soft_cap {
            require(cap > 0.0, "the cap is not above 0")?;
        }
        Shape::new(query.rows, width(heads, value_len)?)
    }

    pub(super) fn choose(&self, choose: &Choose) -> Result<Shape> {
        let Choose { heads, together, count, block, .. } = *choose;
        let (query, key) = (self.tokens(choose.query)?, self.tokens(choose.key)?);
        require(heads > 0 && count > 0, "there are no heads, or nothing is chosen")?;
        require(block > 0, "a block has no positions")?;
        let wanted = product(key.width.into(), heads.into())?;
        same("width of queries and of all heads", query.width.into(), wanted)?;
        match self.state(choose.state)? {
            State::Cache { keys, values: 0, block: 1.. } if keys == key.width => {}
            other => return Err(format!("the state is {other}")),
        }
        let groups = match choose.weights {
            Some(weights) => {
                let weights = self.tokens(weights)?;
                require(!together, "heads with weights are together")?;
                same("weights and heads", weights.width.into(), heads.into())?;
                1
            }
            None if together => 1,
            None => heads,
        };
        Shape::new(query.rows, product(count.into(), groups.into())?)
    }
}
