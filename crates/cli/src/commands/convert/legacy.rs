//! What `gguf convert` does with a model from before GGUF.

use std::num::NonZeroU32;
use std::path::PathBuf;

use gguf_legacy::{Change, Overrides};
use serde_json::json;

use crate::listing;

/// What files from before GGUF do not say.
#[derive(clap::Args)]
#[command(next_help_heading = "Files from before GGUF")]
pub struct Flags {
    /// Folder with config.json and tokenizer of the model, for what the file does not hold.
    #[arg(long, value_name = "DIR")]
    pub metadata_dir: Option<PathBuf>,
    /// Longest context in tokens, where the file does not say it [usual: 2048].
    #[arg(long, value_name = "N")]
    context_length: Option<NonZeroU32>,
    /// Epsilon of the norms [usual: 5e-6 for llama, 1e-5 for others].
    #[arg(long, value_name = "X", value_parser = listing::parse_above_0::<f32>)]
    eps: Option<f32>,
    /// Base frequency of rotary embedding [usual: 10000].
    #[arg(long, value_name = "X", value_parser = listing::parse_above_0::<f32>)]
    rope_base: Option<f32>,
    /// Query heads per key and value head of llama; the tensors tell, this only checks.
    #[arg(long, value_name = "N")]
    gqa: Option<NonZeroU32>,
    /// Attention heads, where the header has a wrong number.
    #[arg(long, value_name = "N")]
    head_count: Option<NonZeroU32>,
}

impl Flags {
    /// Hyper-parameters that the file does not hold.
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

/// What becomes of a tensor.
pub fn change_json(Change { name, from, to, fidelity }: &Change) -> serde_json::Value {
    json!({ "name": name, "from": from, "to": to.to_string(), "how": fidelity.to_string() })
}
