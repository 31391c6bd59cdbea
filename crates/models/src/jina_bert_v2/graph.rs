//! BERT and what follows it: encoders of text, whose norms stand behind the sums. The latest, ModernBERT,
//! NeoBERT and EuroBERT, are decoders that see both sides.

use gguf::Finding;
use gguf_graph::{ActivationFunction, PositionBias};

use crate::bert::graph::{Encoder, encoder};
use crate::graph::Builder;

/// The second of Jina's: ALiBi, and a gate.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let bias = PositionBias::Alibi { max_bias: 8.0 };
    encoder(builder, &Encoder { function: ActivationFunction::Gelu, rotation: None, bias })
}
