//! Metadata keys and tensors of `llada-moe`.

use crate::qwen3moe;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "llada-moe",
    note: "Masked diffusion model with bidirectional attention.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS],
    optional: &[HEADS, ROPE, &[key::EXPERT_FEED_FORWARD_LENGTH, key::ATTENTION_CAUSAL]],
    defaults: qwen3moe::schema::SCHEMA.defaults,
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: qwen3moe::schema::SCHEMA.blocks,
    ..Architecture::DEFAULT
};
