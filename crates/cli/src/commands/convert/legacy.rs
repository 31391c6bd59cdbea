//! Flags of `gguf convert` for legacy GGML files.

use std::num::NonZeroU32;
use std::path::PathBuf;

use gguf_legacy::{Change, Overrides};
use serde_json::json;

use crate::listing;

/// Hyperparameters that legacy files do not store.
#[derive(clap::Args)]
#[command(next_help_heading = "Legacy GGML files")]
pub struct Flags {
    /// Directory with config.json and tokenizer, for values missing from the file.
    #[arg(long, value_name = "DIR")]
    pub metadata_dir: Option<PathBuf>,
    /// Context length in tokens, if the file does not store it [usual: 2048].
    #[arg(long, value_name = "N")]
    context_length: Option<NonZeroU32>,
    /// Epsilon of normalization layers [usual: 5e-6 for llama, 1e-5 for others].
    #[arg(long, value_name = "X", value_parser = listing::parse_positive::<f32>)]
    eps: Option<f32>,
    /// RoPE base frequency [usual: 10000].
    #[arg(long, value_name = "X", value_parser = listing::parse_positive::<f32>)]
    rope_base: Option<f32>,
    /// Query heads per KV head (llama). Checked against the tensors.
    #[arg(long, value_name = "N")]
    gqa: Option<NonZeroU32>,
    /// Number of attention heads, if the header has a wrong value.
    #[arg(long, value_name = "N")]
    head_count: Option<NonZeroU32>,
}

impl Flags {
    /// Returns the hyperparameters given on the command line.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            context_length: self.context_length.map(NonZeroU32::get),
            epsilon: self.eps,
            rope_base: self.rope_base,
            head_count: self.head_count.map(NonZeroU32::get),
            gqa: self.gqa.map(NonZeroU32::get),
        }
    }
}

/// Returns the conversion of a tensor as JSON.
pub fn change_json(Change { name, from, to, fidelity }: &Change) -> serde_json::Value {
    json!({ "name": name, "from": from, "to": to.to_string(), "how": fidelity.to_string() })
}
