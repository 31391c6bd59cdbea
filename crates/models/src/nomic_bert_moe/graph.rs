//! Computation graph of Nomic BERT with MoE layers, and of Jina Embeddings v3.

use gguf::Finding;
use gguf_graph::ActivationFunction;

use crate::graph::Builder;
use crate::nomic_bert::graph::rope_encoder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    rope_encoder(builder, ActivationFunction::Gelu)
}
