//! Metadata keys and tensors of `glm5-next`.

use crate::deepseek2::schema::{MLA, MOE_FFN};
use crate::deepseek32::schema::{INDEXER, INDEXER_KEYS};
use crate::schema::architecture::Item::{All, Maybe, Required, Unless, When};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const KPOOL_INDEXER: &[Item] = &[
    All(INDEXER),
    Required("indexer_compressor_gate.weight", "n_embd, index_dim"),
    Required("indexer_compressor_ape.weight", "index_dim, n_kpool"),
];

/// Kimi Delta Attention, whose decay parameter `ssm_a` is a vector.
const KIMI_DELTA_ATTENTION: &[Item] = &[
    All(ATTN_NORM),
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
    Required("ssm_a", "n_head"),
    Required("ssm_dt.bias", "n_head*kda_head"),
    Required("ssm_norm.weight", "kda_head"),
    All(FFN_NORM),
];

const MIXER: &[Item] = &[
    When("n_head_kv", &[All(MLA), Maybe(KPOOL_INDEXER)]),
    Unless("n_head_kv", KIMI_DELTA_ATTENTION),
    All(SINKHORN_HYPER_CONNECTIONS),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "glm5-next",
    note: "GLM 5.3. Layers without KV heads have Kimi Delta Attention.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        EXPERT_KEYS,
        INDEXER_KEYS,
        &[
            key::ATTENTION_KV_LORA_RANK,
            key::ATTENTION_KEY_LENGTH_MLA,
            key::ATTENTION_VALUE_LENGTH_MLA,
            key::ATTENTION_INDEXER_KPOOL,
            key::SSM_CONV_KERNEL,
            key::KDA_HEAD_DIM,
            key::HYPER_CONNECTION_COUNT,
            key::HYPER_CONNECTION_SINKHORN_ITERATIONS,
            key::HYPER_CONNECTION_EPSILON,
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        LAYER_NORM,
        DEEPSEEK_MOE_KEYS,
        &[
            key::VOCAB_SIZE,
            key::KDA_GATE_LOWER_BOUND,
            key::ATTENTION_INDEXER_KPOOL_SELECT_TAIL,
            key::ATTENTION_INDEXER_TYPES,
            key::SWIGLU_CLAMP_EXP,
            key::SWIGLU_CLAMP_SHEXP,
            key::NEXTN_PREDICT_LAYERS,
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
            items: &[Maybe(MLA), Maybe(KPOOL_INDEXER), Maybe(MOE_FFN), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
