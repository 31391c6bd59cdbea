//! Steps of tensors that several architectures share.

use gguf::{Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};

use crate::convert::hparams;

/// Returns the step that sorts the rows of a fused QKV matrix stored head by head: all queries first, then
/// keys, then values.
pub fn sort_heads(config: &Config) -> Result<Step, Error> {
    let head_dim = u64::from(hparams::head_dim(config)?);
    Ok(Step::Regroup { groups: hparams::head_count(config)?.into(), kinds: [head_dim; 3] })
}

/// Returns the step that removes the dimension of size 1 from the weights of a depthwise convolution
/// with `kernel` taps.
pub fn channels(kernel: u32, channels: u64) -> Step {
    let shape = |dims: &[u64]| {
        Shape::new(dims).unwrap_or_else(|| unreachable!("three dimensions are no more than four"))
    };
    let kernel = kernel.into();
    Step::Reshape { from: shape(&[kernel, 1, channels]), to: shape(&[kernel, channels]) }
}

/// Returns the steps that reorder the rows of queries and keys. RoPE of the `llama` architecture rotates
/// pairs of adjacent elements; that of checkpoints rotates each element of the first half of a head with
/// one of the second half (NeoX).
pub fn llama_order(config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    let heads = if name.contains(".attn_q.") {
        hparams::head_count(config)?
    } else if name.contains(".attn_k.") {
        hparams::head_count_kv(config)?
    } else {
        return Ok(Vec::new());
    };
    Ok(vec![Step::InterleaveHalves { heads: heads.into() }])
}

/// Returns the steps that add 1 to norm weights, which checkpoints store as the difference from 1.
pub fn norm_plus_one(name: &str) -> Result<Vec<Step>, Error> {
    Ok(Vec::from_iter(name.ends_with("norm.weight").then_some(Step::Map(Function::PlusOne))))
}
