//! Metadata keys and tensors of `kimi-linear`.

use crate::deepseek2::schema::MLA;
use crate::schema::architecture::Item::{All, Required, Unless, When};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

/// Kimi Delta Attention with short convolutions of Q, K and V.
const KDA: &[Item] = &[
    Required("attn_q.weight", "n_embd, n_head*kda_head"),
    Required("attn_k.weight", "n_embd, n_head*kda_head"),
    Required("attn_v.weight", "n_embd, n_head*kda_head"),
    Required("attn_output.weight", "n_head*kda_head, n_embd"),
    Required("ssm_conv1d_q.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_conv1d_k.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_conv1d_v.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_f_a.weight", "n_embd, kda_head"),
    Required("ssm_f_b.weight", "kda_head, n_head*kda_head"),
    Required("ssm_g_a.weight", "n_embd, kda_head"),
    Required("ssm_g_b.weight", "kda_head, n_head*kda_head"),
    Required("ssm_beta.weight", "n_embd, n_head"),
    Required("ssm_a", "1, n_head"),
    Required("ssm_dt.bias", "n_head*kda_head"),
    Required("ssm_norm.weight", "kda_head"),
    All(ATTN_NORM),
    All(FFN_NORM),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "kimi-linear",
    note: "Layers with 0 KV heads are Kimi Delta Attention (KDA), the others MLA.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        EXPERT_KEYS,
        &[key::ATTENTION_KV_LORA_RANK, key::SSM_CONV_KERNEL, key::KDA_HEAD_DIM],
    ],
    optional: &[
        HEADS,
        ROPE,
        DEEPSEEK_MOE_KEYS,
        &[
            key::VOCAB_SIZE,
            key::ATTENTION_Q_LORA_RANK,
            key::ATTENTION_KEY_LENGTH_MLA,
            key::ATTENTION_VALUE_LENGTH_MLA,
        ],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[When("n_head_kv", MLA), Unless("n_head_kv", KDA), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_layer",
            items: &[When("n_head_kv", MLA), Unless("n_head_kv", KDA), All(DEEPSEEK_MOE)],
        },
    ],
    ..Architecture::DEFAULT
};
