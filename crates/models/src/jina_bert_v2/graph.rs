//! Computation graph of Jina Embeddings v2.

use gguf::Finding;
use gguf_graph::{ActivationFunction, PositionBias};

use crate::bert::graph::{Encoder, encoder};
use crate::graph::Builder;

/// Builds a BERT encoder with symmetric ALiBi and a GELU-gated FFN.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let bias = PositionBias::Alibi { max_bias: 8.0 };
    encoder(builder, &Encoder { function: ActivationFunction::Gelu, rope: None, bias })
}
