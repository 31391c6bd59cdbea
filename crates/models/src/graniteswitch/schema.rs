//! Metadata keys and tensors of `graniteswitch`.

use crate::granite::schema::MULTIPLIERS;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// LoRA matrices A and B of all adapters; adapter 0 is zero.
const LORA: &[Item] = &[
    Required("attn_q.lora_a", "n_embd, adapter_rank, n_adapter + 1"),
    Required("attn_q.lora_b", "adapter_rank, n_q, n_adapter + 1"),
    Required("attn_k.lora_a", "n_embd, adapter_rank, n_adapter + 1"),
    Required("attn_k.lora_b", "adapter_rank, n_k, n_adapter + 1"),
    Required("attn_v.lora_a", "n_embd, adapter_rank, n_adapter + 1"),
    Required("attn_v.lora_b", "adapter_rank, n_v, n_adapter + 1"),
    Required("attn_output.lora_a", "n_q, adapter_rank, n_adapter + 1"),
    Required("attn_output.lora_b", "adapter_rank, n_embd, n_adapter + 1"),
    Required("ffn_gate.lora_a", "n_embd, adapter_rank, n_adapter + 1"),
    Required("ffn_gate.lora_b", "adapter_rank, n_ff, n_adapter + 1"),
    Required("ffn_up.lora_a", "n_embd, adapter_rank, n_adapter + 1"),
    Required("ffn_up.lora_b", "adapter_rank, n_ff, n_adapter + 1"),
    Required("ffn_down.lora_a", "n_ff, adapter_rank, n_adapter + 1"),
    Required("ffn_down.lora_b", "adapter_rank, n_embd, n_adapter + 1"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "graniteswitch",
    note: "As granite, with built-in LoRA adapters that control tokens activate.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        &[
            key::LOGIT_SCALE,
            key::ADAPTERS_COUNT,
            key::ADAPTERS_LORA_RANK,
            key::ADAPTERS_TOKEN_IDS_ACTIVATE,
            key::ADAPTERS_TOKEN_IDS_SUBSTITUTE,
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        MULTIPLIERS,
        &[key::VOCAB_SIZE, key::EXPERT_SHARED_FEED_FORWARD_LENGTH, key::ADAPTERS_ROUTER_GAIN],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
        All(LORA),
    ])],
    ..Architecture::DEFAULT
};
