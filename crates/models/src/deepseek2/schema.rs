//! Metadata keys and tensors of `deepseek2`.

use crate::schema::architecture::Item::{All, Maybe, OneOf, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) const MLA: &[Item] = &[
    All(ATTN_NORM),
    When(
        "q_rank",
        &[
            Required("attn_q_a.weight", "n_embd, q_rank"),
            Required("attn_q_a_norm.weight", "q_rank"),
            Required("attn_q_b.weight", "q_rank, n_head*mla_k"),
        ],
    ),
    Unless("q_rank", &[Required("attn_q.weight", "n_embd, n_head*mla_k")]),
    Required("attn_kv_a_mqa.weight", "n_embd, kv_rank + n_rot"),
    Required("attn_kv_a_norm.weight", "kv_rank"),
    When(
        "mla",
        &[
            Required("attn_k_b.weight", "mla_k - n_rot, kv_rank, n_head"),
            Required("attn_v_b.weight", "kv_rank, mla_v, n_head"),
        ],
    ),
    // Files from before 2025 have `kv_b_proj` in one tensor.
    Unless(
        "mla",
        &[Required("attn_kv_b.weight", "kv_rank, n_head*mla_k + n_head*mla_v - n_head*n_rot")],
    ),
    Required("attn_output.weight", "n_head*mla_v, n_embd"),
    All(FFN_NORM),
];

pub(crate) const MOE_FFN: &[Item] = &[
    Required("ffn_gate_inp.weight", "n_embd, n_expert"),
    OneOf(&[
        &[
            Required("ffn_gate_exps.weight", "n_embd, n_ff_exp, n_expert"),
            Required("ffn_up_exps.weight", "n_embd, n_ff_exp, n_expert"),
        ],
        &[Required("ffn_gate_up_exps.weight", "n_embd, 2*n_ff_exp, n_expert")],
    ]),
    Required("ffn_down_exps.weight", "n_ff_exp, n_embd, n_expert"),
    Optional("exp_probs_b.bias", "n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_exp*n_expert_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_exp*n_expert_shared"),
    Required("ffn_down_shexp.weight", "n_ff_exp*n_expert_shared, n_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "deepseek2",
    note: "DeepSeek V2 and V3, Kimi K2, GLM 4.7 Flash.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        EXPERT_KEYS,
        &[key::ATTENTION_KV_LORA_RANK, key::EXPERT_FEED_FORWARD_LENGTH, key::EXPERT_SHARED_COUNT],
    ],
    optional: &[
        HEADS,
        ROPE,
        &[
            key::VOCAB_SIZE,
            key::LEADING_DENSE_BLOCK_COUNT,
            key::ATTENTION_Q_LORA_RANK,
            key::ATTENTION_KEY_LENGTH_MLA,
            key::ATTENTION_VALUE_LENGTH_MLA,
            key::EXPERT_WEIGHTS_SCALE,
            key::EXPERT_WEIGHTS_NORM,
            key::EXPERT_GATING_FUNC,
            key::EXPERT_GROUP_COUNT,
            key::EXPERT_GROUP_USED_COUNT,
            key::NEXTN_PREDICT_LAYERS,
            key::ATTENTION_TEMPERATURE_SCALE,
            key::ATTENTION_TEMPERATURE_LENGTH,
        ],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block { prefix: "blk.", from: "0", to: "n_dense", items: &[All(MLA), All(GATED_FFN)] },
        Block { prefix: "blk.", from: "n_dense", to: "n_trunk", items: &[All(MLA), All(MOE_FFN)] },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(MLA), Maybe(MOE_FFN), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
