//! Metadata keys and tensors of `bailingmoe3`.

use crate::deepseek2::schema::MLA;
use crate::schema::architecture::Item::{All, Maybe, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

/// Kimi Delta Attention with full-rank projections of decay and output gate.
const KIMI_DELTA_ATTENTION: &[Item] = &[
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

const MIXER: &[Item] = &[
    When("n_head_kv", &[All(MLA), Required("attn_gate.weight", "n_embd, n_head")]),
    Unless("n_head_kv", KIMI_DELTA_ATTENTION),
];

const MOE_FFN: &[Item] = &[
    All(EXPERTS),
    Optional("exp_probs_b.bias", "n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "bailingmoe3",
    note: "Ling, third generation. Layers without KV heads have Kimi Delta Attention.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
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
        DEEPSEEK_MOE_KEYS,
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
        Block { prefix: "blk.", from: "0", to: "n_dense", items: &[All(MIXER), All(GATED_FFN)] },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(MIXER), All(MOE_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[
                Maybe(MIXER),
                Maybe(MOE_FFN),
                Maybe(MTP),
                Optional("layer_output_norm.weight", "n_embd"),
            ],
        },
    ],
    ..Architecture::DEFAULT
};
