//! Qwen 2 with its attention replaced by RWKV 6 or 7.

use gguf::Finding;

use crate::graph::Builder;
use crate::rwkv6qwen2::graph::qwen2_with_mixer;
use crate::rwkv7::graph::time_mix;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut first = None;
    qwen2_with_mixer(builder, |builder, x, sizes| time_mix(builder, x, sizes, &mut first))
}
