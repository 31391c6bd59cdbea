//! What a model computes, as data.
//!
//! A [`RawGraph`] says which operations ([`Op`]) are done in which order, with which tensors, and
//! what is kept between runs. Every hyper-parameter is a number in it: whoever runs it needs no
//! knowledge of architectures. A [`Graph`] is one that is proven to fit together. [`build`] makes one
//! from the metadata of a model, [`stored`] puts it into a file and reads it back; `docs/graph.md`
//! specifies the stored form.

mod cost;
mod dot;
mod graph;
mod op;
mod parts;
mod raw;
mod rotation;
mod shape;
pub mod stored;

pub use cost::{Cost, Load};
pub use graph::{Graph, Limits, Rows, Shape};
pub use op::{
    Among, Attention, Blocks, Bucket, Choose, Compress, Decay, Experts, Function, GateFunction,
    Gating, Index, LinearAttention, Mark, Mask, Memory, Ngrams, NormKind, NumberedProduct, Op,
    Pooling, PositionBias, Scan, Wkv,
};
pub use raw::{Output, OutputKind, Program, RawGraph, State, StateId, ValueId, Weight, WeightId};
pub use rotation::{Factors, Pairs, Rotation, Stretch};
