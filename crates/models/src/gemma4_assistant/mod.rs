//! Gemma 4 assistant by Google: a draft model for speculative decoding with Gemma 4.
//!
//! The layers are those of `gemma4` with query and output projections only: they attend to the KV
//! cache of the target. `nextn.pre_projection` reads the embedding and the hidden state of the
//! target together, and `nextn.post_projection` returns to the target's hidden size
//! (`embedding_length_out`). There is no graph. Source: class `Gemma4AssistantForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
