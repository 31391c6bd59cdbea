//! Purpose of a graph: running a model, or speculative decoding with its hidden states.

use gguf::Finding;
use gguf_graph::{OutputKind, Program};

/// Purpose of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Running the model.
    #[default]
    Model,
    /// Running the model as the target of a draft model that reads its hidden states.
    Target(DraftFeatures),
    /// Running the first layer for multi-token prediction (MTP) as a draft model.
    Mtp,
    /// Running the Markov head of a DSpark model: a term of the logits, from the token before.
    MarkovHead,
}

/// Hidden states that a draft model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftFeatures {
    /// The inputs of these layers, concatenated. The input of a layer after the last one is the output of the last one.
    LayerInputs(Vec<u64>),
    /// The input of the MTP layers of the model.
    Mtp,
}

impl Purpose {
    /// Checks that the main program of an architecture fits the purpose.
    pub(super) fn check(&self, architecture: &str, program: &Program) -> Result<(), Finding> {
        let has_features = program.outputs.iter().any(|output| output.kind == OutputKind::Features);
        let reads_features = program.token_features_width().is_some();
        let missing = match self {
            Self::Target(_) if !has_features => "its hidden states cannot be read",
            Self::Mtp if !has_features || !reads_features => "its MTP layers cannot be run",
            _ => return Ok(()),
        };
        let message = format!("the architecture {architecture} has no such drafts: {missing}");
        Err(Finding::error("draft-unusable", message).help("omit this draft"))
    }
}
