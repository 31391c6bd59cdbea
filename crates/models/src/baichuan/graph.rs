//! Graph of `baichuan`: Llama, with ALiBi instead of RoPE in the 13B models.

use gguf::Finding;
use gguf_graph::{PositionBias, RopeLayout};

use crate::blocks::{self, Decoder};
use crate::graph::Builder;
use crate::schema::key;

/// Layer count of the models with ALiBi, for which files have no key.
const ALIBI_BLOCK_COUNT: u64 = 40;

/// ALiBi has a maximum bias of 8.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder::llama_like(builder, RopeLayout::Interleaved)?;
    if builder.hparams.u64(key::BLOCK_COUNT)? == ALIBI_BLOCK_COUNT {
        decoder.bias = PositionBias::Alibi { max_bias: 8.0 };
        (decoder.rope, decoder.window_rope) = (None, None);
    }
    blocks::decoder(builder, &decoder)
}
