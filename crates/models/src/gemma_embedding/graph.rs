//! Graph of `gemma-embedding`: Gemma 3 as an encoder.

use gguf::Finding;

use crate::blocks;
use crate::gemma::graph::gemma_decoder;
use crate::gemma3::graph::with_gemma3_layers;
use crate::graph::Builder;

/// Attention is bidirectional unless `attention.causal` is true.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = with_gemma3_layers(gemma_decoder(builder, 0)?);
    blocks::decoder(builder, &decoder)
}
