//! BERT and what follows it: encoders of text, whose norms stand behind the sums. The latest, ModernBERT,
//! NeoBERT and EuroBERT, are decoders that see both sides.

use gguf::Finding;
use gguf_graph::ActivationFunction;

use crate::graph::Builder;
use crate::nomic_bert::graph::rotated;

/// Nomic's with experts, and the third of Jina's: rotation, and no gate.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    rotated(builder, ActivationFunction::Gelu)
}
