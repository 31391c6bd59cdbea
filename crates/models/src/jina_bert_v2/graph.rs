//! BERT and what follows it: encoders of text, whose norms stand behind the sums. The latest, ModernBERT,
//! NeoBERT and EuroBERT, are decoders that see both sides.

use gguf::Finding;
use gguf_graph::{Function, PositionBias};

use crate::bert::graph::{Encoder, encoder};
use crate::graph::Builder;

/// The second of Jina's: ALiBi, and a gate.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let bias = PositionBias::Slopes { max: 8.0 };
    encoder(builder, &Encoder { function: Function::Gelu, rotation: None, bias })
}
