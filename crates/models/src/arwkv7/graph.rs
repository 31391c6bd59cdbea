//! Graph of `arwkv7`: Qwen 2 with RWKV 7 time mixing instead of attention.

use gguf::Finding;

use crate::graph::Builder;
use crate::rwkv6qwen2::graph::qwen2_with_mixer;
use crate::rwkv7::graph::time_mix;

/// Later layers mix their values with those of the first layer.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut first_value = None;
    qwen2_with_mixer(builder, |builder, x, sizes| time_mix(builder, x, sizes, &mut first_value))
}
