//! What an operation is made of: the values it reads, its weights, its state.

use crate::op::{
    Attention, Blocks, Choose, Compress, Decay, Experts, LinearAttention, Memory, Ngrams,
    NumberedProduct, Op, PositionBias, Scan, Wkv,
};
use crate::raw::{StateId, ValueId, WeightId};
use crate::rotation::Factors;

impl Op {
    /// The values that it reads.
    pub fn values(&self) -> Vec<ValueId> {
        match self {
            Self::Features { .. } | Self::Embed { .. } | Self::Ngrams(_) | Self::Mark(_) => {
                Vec::new()
            }
            Self::Product { x, .. }
            | Self::HeadProduct { x, .. }
            | Self::Norm { x, .. }
            | Self::AddWeight { x, .. }
            | Self::MultiplyWeight { x, .. }
            | Self::Scale { x, .. }
            | Self::AddNumber { x, .. }
            | Self::ScaleByPosition { x, .. }
            | Self::Clamp { x, .. }
            | Self::SoftCap { x, .. }
            | Self::Activate { x, .. }
            | Self::Softmax { x, .. }
            | Self::Sinkhorn { x, .. }
            | Self::Slice { x, .. }
            | Self::Sum { x, .. }
            | Self::Rotate { x, .. }
            | Self::CausalConvolution { x, .. }
            | Self::Convolution { x, .. }
            | Self::Shift { x, .. }
            | Self::Select { x }
            | Self::Pool { x, .. } => vec![*x],
            Self::Add { a, b }
            | Self::Multiply { a, b }
            | Self::Mix { a, b, .. }
            | Self::Join { a, b, .. } => vec![*a, *b],
            Self::NumberedProduct(NumberedProduct { x, number, .. }) => vec![*x, *number],
            Self::Combine { x, shares, .. } => vec![*x, *shares],
            Self::Gate { gate, up, .. } => vec![*gate, *up],
            Self::Store { key, value, .. } => vec![*key, *value],
            Self::Attention(Attention { query, memory, among, blocks, .. }) => {
                let mut values = match *memory {
                    Memory::Given { key, value } | Memory::Cached { key, value, .. } => {
                        vec![*query, key, value]
                    }
                    Memory::Stored { .. } => vec![*query],
                };
                values.extend(among.map(|among| among.chosen));
                if let Some(Blocks { key, value, chosen, .. }) = *blocks {
                    values.extend([Some(key), Some(value), chosen].into_iter().flatten());
                }
                values
            }
            Self::Choose(Choose { query, key, weights, .. }) => {
                [Some(*query), Some(*key), *weights].into_iter().flatten().collect()
            }
            Self::Compress(Compress { x, gate, .. }) => [*x].into_iter().chain(*gate).collect(),
            Self::Experts(experts) => {
                [experts.x, experts.scores].into_iter().chain(experts.chosen).collect()
            }
            Self::Scan(Scan { x, dt, b, c, .. }) => vec![*x, *dt, *b, *c],
            Self::Wkv(Wkv::V4 { k, v, .. }) => vec![*k, *v],
            Self::Wkv(Wkv::V6 { r, w, k, v, .. }) => vec![*r, *w, *k, *v],
            Self::Wkv(Wkv::V7 { r, w, k, v, a, b, .. }) => vec![*r, *w, *k, *v, *a, *b],
            Self::LinearAttention(LinearAttention { query, key, value, decay, rate, .. }) => {
                let decay = match *decay {
                    Decay::Value(decay) => Some(decay),
                    Decay::Slopes { .. } => None,
                };
                [*query, *key, *value].into_iter().chain(decay).chain(*rate).collect()
            }
        }
    }

    /// Its weights.
    pub fn weights(&self) -> Vec<WeightId> {
        let mut weights: Vec<Option<WeightId>> = Vec::new();
        match self {
            Self::Embed { table, .. } | Self::Ngrams(Ngrams { table, .. }) => {
                weights.push(Some(*table));
            }
            Self::Product { weight, bias, .. }
            | Self::CausalConvolution { weight, bias, .. }
            | Self::Convolution { weight, bias, .. } => weights.extend([Some(*weight), *bias]),
            Self::HeadProduct { weight, .. }
            | Self::NumberedProduct(NumberedProduct { weight, .. })
            | Self::AddWeight { weight, .. }
            | Self::MultiplyWeight { weight, .. }
            | Self::Mix { weight, .. } => weights.push(Some(*weight)),
            Self::Norm { weight, bias, .. } => weights.extend([*weight, *bias]),
            Self::Rotate { rotation, .. } => match rotation.factors {
                Factors::None => {}
                Factors::One(weight) => weights.push(Some(weight)),
                Factors::ByContext { short, long, .. } => weights.extend([Some(short), Some(long)]),
            },
            Self::Attention(Attention { bias, sinks, .. }) => {
                if let PositionBias::Buckets { weight, .. } = bias {
                    weights.push(Some(*weight));
                }
                weights.push(*sinks);
            }
            Self::Compress(Compress { place, .. }) => weights.push(*place),
            Self::Experts(experts) => {
                let Experts { gate, up, down, gate_bias, up_bias, down_bias, .. } = **experts;
                weights.extend([gate, Some(up), Some(down)]);
                weights.extend([gate_bias, up_bias, down_bias]);
                weights.extend([experts.selection_bias, experts.scales]);
            }
            Self::Scan(Scan { a, d, .. }) => weights.extend([Some(*a), Some(*d)]),
            Self::Wkv(Wkv::V4 { decay, first, .. }) => weights.extend([Some(*decay), Some(*first)]),
            Self::Wkv(Wkv::V6 { first, .. }) => weights.push(Some(*first)),
            Self::Features { .. }
            | Self::Mark(_)
            | Self::Add { .. }
            | Self::Multiply { .. }
            | Self::Scale { .. }
            | Self::AddNumber { .. }
            | Self::ScaleByPosition { .. }
            | Self::Clamp { .. }
            | Self::SoftCap { .. }
            | Self::Activate { .. }
            | Self::Softmax { .. }
            | Self::Sinkhorn { .. }
            | Self::Combine { .. }
            | Self::Gate { .. }
            | Self::Slice { .. }
            | Self::Sum { .. }
            | Self::Join { .. }
            | Self::Store { .. }
            | Self::Choose(_)
            | Self::Shift { .. }
            | Self::Wkv(Wkv::V7 { .. })
            | Self::LinearAttention(_)
            | Self::Select { .. }
            | Self::Pool { .. } => {}
        }
        weights.into_iter().flatten().collect()
    }

    /// The states that it reads or changes.
    pub fn states(&self) -> Vec<StateId> {
        match self {
            Self::Store { state, .. }
            | Self::CausalConvolution { state, .. }
            | Self::Shift { state, .. }
            | Self::Ngrams(Ngrams { state, .. })
            | Self::Choose(Choose { state, .. })
            | Self::Compress(Compress { state, .. })
            | Self::Scan(Scan { state, .. })
            | Self::LinearAttention(LinearAttention { state, .. })
            | Self::Wkv(Wkv::V4 { state, .. } | Wkv::V6 { state, .. } | Wkv::V7 { state, .. }) => {
                vec![*state]
            }
            Self::Attention(Attention { memory, blocks, .. }) => {
                let of_memory = match *memory {
                    Memory::Given { .. } => None,
                    Memory::Cached { state, .. } | Memory::Stored { state } => Some(state),
                };
                of_memory.into_iter().chain(blocks.map(|blocks| blocks.state)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether what it makes for a token depends on later tokens, so that they have to be run together.
    pub fn sees_whole_batch(&self) -> bool {
        match self {
            Self::Pool { .. } => true,
            Self::Attention(attention) => matches!(attention.memory, Memory::Given { .. }),
            _ => false,
        }
    }
}
