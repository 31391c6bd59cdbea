//! Metadata keys and tensors of `dots3note`.

use crate::deepseek2::schema::MOE_FFN;
use crate::deepseek32::schema::{INDEXER, INDEXER_KEYS};
use crate::schema::architecture::Item::{All, Maybe, Required, Unless, When};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const SLIDING_MLA: &[Item] = &[
    Required("attn_q_b.weight", "q_rank, n_head*mla_k_swa"),
    Required("attn_kv_a_mqa.weight", "n_embd, kv_rank_swa + n_rot"),
    Required("attn_kv_a_norm.weight", "kv_rank_swa"),
    Required("attn_k_b.weight", "mla_k_swa - n_rot, kv_rank_swa, n_head"),
    Required("attn_v_b.weight", "kv_rank_swa, mla_v_swa, n_head"),
    Required("attn_output.weight", "n_head*mla_v_swa, n_embd"),
];

const INDEXED_MLA: &[Item] = &[
    Required("attn_q_b.weight", "q_rank, n_head*mla_k"),
    Required("attn_kv_a_mqa.weight", "n_embd, kv_rank + n_rot"),
    Required("attn_kv_a_norm.weight", "kv_rank"),
    Required("attn_k_b.weight", "mla_k - n_rot, kv_rank, n_head"),
    Required("attn_v_b.weight", "kv_rank, mla_v, n_head"),
    Required("attn_output.weight", "n_head*mla_v, n_embd"),
    All(INDEXER),
];

const COMMON_ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    Required("attn_q_a.weight", "n_embd, q_rank"),
    Required("attn_q_a_norm.weight", "q_rank"),
    Required("attn_k_norm.weight", "n_rot"),
    Required("attn_gate.weight", "n_embd, n_head"),
    All(FFN_NORM),
];

const ATTENTION: &[Item] =
    &[All(COMMON_ATTENTION), When("swa", SLIDING_MLA), Unless("swa", INDEXED_MLA)];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "dots3note",
    note: "dots 3. Layers have a sliding window or an indexer, and MLA of other dimensions for \
           each.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        EXPERT_KEYS,
        INDEXER_KEYS,
        &[
            key::ATTENTION_KV_LORA_RANK,
            key::ATTENTION_KV_LORA_RANK_SWA,
            key::ATTENTION_KEY_LENGTH_MLA_SWA,
            key::ATTENTION_VALUE_LENGTH_MLA_SWA,
            key::ATTENTION_SLIDING_WINDOW,
            key::ATTENTION_SLIDING_WINDOW_PATTERN,
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        DEEPSEEK_MOE_KEYS,
        &[
            key::VOCAB_SIZE,
            key::ROPE_FREQ_BASE_SWA,
            key::ATTENTION_KEY_LENGTH_MLA,
            key::ATTENTION_VALUE_LENGTH_MLA,
            key::ATTENTION_KEY_LENGTH_SWA,
            key::ATTENTION_VALUE_LENGTH_SWA,
            key::ATTENTION_INDEXER_TYPES,
            key::NEXTN_PREDICT_LAYERS,
        ],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(ATTENTION), All(MOE_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(COMMON_ATTENTION), Maybe(SLIDING_MLA), Maybe(GATED_FFN), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
