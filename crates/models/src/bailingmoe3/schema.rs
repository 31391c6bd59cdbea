//! Metadata keys and tensors.

use crate::deepseek2::schema::ATTENTION;
use crate::schema::architecture::Item::{All, Maybe, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

/// Delta attention as in Kimi Linear, with gates and decays that are not compressed.
const WIDE_DELTA: &[Item] = &[
    All(ATTN_NORM),
    Required("attn_q.weight", "n_embd, n_head*kda_head"),
    Required("attn_k.weight", "n_embd, n_head*kda_head"),
    Required("attn_v.weight", "n_embd, n_head*kda_head"),
    Required("attn_output.weight", "n_head*kda_head, n_embd"),
    Required("ssm_conv1d_q.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_conv1d_k.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_conv1d_v.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_f_a.weight", "n_embd, n_head*kda_head"),
    Required("ssm_g_a.weight", "n_embd, n_head*kda_head"),
    Required("ssm_beta.weight", "n_embd, n_head"),
    Required("ssm_a", "1, n_head"),
    Required("ssm_dt.bias", "n_head*kda_head"),
    Required("ssm_norm.weight", "kda_head"),
    All(FFN_NORM),
];

const BY_HEADS: &[Item] = &[
    When("n_head_kv", &[All(ATTENTION), Required("attn_gate.weight", "n_embd, n_head")]),
    Unless("n_head_kv", WIDE_DELTA),
];

const LING_EXPERTS: &[Item] = &[
    All(EXPERTS),
    Optional("exp_probs_b.bias", "n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "bailingmoe3",
    note: "Ling, the third generation. Layers without heads of keys and values have delta attention.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        &[
            key::ATTENTION_KV_LORA_RANK,
            key::SSM_CONV_KERNEL,
            key::KDA_HEAD_DIM,
            key::KDA_GATE_LOWER_BOUND,
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        ROUTED_KEYS,
        &[
            key::VOCAB_SIZE,
            key::KDA_SAFE_GATE,
            key::ATTENTION_Q_LORA_RANK,
            key::ATTENTION_KEY_LENGTH_MLA,
            key::ATTENTION_VALUE_LENGTH_MLA,
            key::EXPERT_SHARED_FEED_FORWARD_LENGTH,
            key::SWIGLU_CLAMP_EXP,
            key::SWIGLU_CLAMP_SHEXP,
            key::NEXTN_PREDICT_LAYERS,
            key::ROPE_DIMENSION_SECTIONS,
        ],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block { prefix: "blk.", from: "0", to: "n_dense", items: &[All(BY_HEADS), All(GATED_FFN)] },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(BY_HEADS), All(LING_EXPERTS)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[
                Maybe(BY_HEADS),
                Maybe(LING_EXPERTS),
                Maybe(NEXT_TOKENS),
                Optional("layer_output_norm.weight", "n_embd"),
            ],
        },
    ],
    ..Architecture::DEFAULT
};
