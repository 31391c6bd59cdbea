//! AFM 4.5B by Arcee AI.
//!
//! A Llama decoder: grouped-query attention, RoPE in interleaved layout (query and key rows are
//! permuted on conversion), RMS pre-norms. The FFN has no gate: `down(relu(up(x))^2)`. RoPE scaling
//! by YaRN, linear or Llama 3 (`rope_freqs`). The output projection may be tied to the embedding.
//! Sources: class `ArceeForCausalLM`, llama.cpp's `src/models/arcee.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
