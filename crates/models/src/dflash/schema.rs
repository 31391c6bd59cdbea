//! Metadata keys and tensors of `dflash`.

use crate::deepseek4::schema::{ATTENTION, BIASED_MOE_FFN};
use crate::eagle3::schema::DRAFT_TENSORS;
use crate::hy_v4::schema::OUTPUT_HYPER_CONNECTION;
use crate::schema::architecture::Item::{All, Maybe, OneOf, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// Layer of drafts of DeepSeek V4.
const DEEPSEEK4_LAYER: &[Item] = &[All(ATTENTION), All(BIASED_MOE_FFN)];

/// Keys of drafts with the layers of DeepSeek V4.
const DEEPSEEK4_KEYS: &[&str] = &[
    key::ATTENTION_Q_LORA_RANK,
    key::ATTENTION_OUTPUT_GROUP_COUNT,
    key::ATTENTION_OUTPUT_LORA_RANK,
    key::ATTENTION_COMPRESS_RATIOS,
    key::ATTENTION_COMPRESS_ROPE_FREQ_BASE,
    key::ATTENTION_INDEXER_HEAD_COUNT,
    key::ATTENTION_INDEXER_KEY_LENGTH,
    key::ATTENTION_INDEXER_TOP_K,
    key::EXPERT_FEED_FORWARD_LENGTH,
    key::EXPERT_SHARED_COUNT,
    key::EXPERT_WEIGHTS_SCALE,
    key::EXPERT_WEIGHTS_NORM,
    key::EXPERT_GATING_FUNC,
    key::EXPERT_GROUP_COUNT,
    key::EXPERT_GROUP_USED_COUNT,
    key::SWIGLU_CLAMP_EXP,
    key::SWIGLU_CLAMP_SHEXP,
    key::HYPER_CONNECTION_COUNT,
    key::HYPER_CONNECTION_SINKHORN_ITERATIONS,
    key::HYPER_CONNECTION_EPSILON,
    key::HASH_LAYER_COUNT,
];

const DFLASH_LAYER: &[Item] = &[
    All(ATTN_NORM),
    Required("attn_q.weight", "n_embd, n_q"),
    Required("attn_k.weight", "n_embd, n_k"),
    Optional("attn_v.weight", "n_embd, n_v"),
    Optional("attn_q.bias", "n_q"),
    Optional("attn_k.bias", "n_k"),
    Optional("attn_v.bias", "n_v"),
    All(ATTN_OUTPUT),
    Optional("attn_output.bias", "n_embd"),
    Optional("attn_q_norm.weight", "head_k"),
    Optional("attn_k_norm.weight", "head_k"),
    Optional("attn_sinks.weight", "n_head"),
    // The FFN norm has the name `post_attention_norm` in drafts without a norm after attention.
    OneOf(&[FFN_NORM, &[Required("post_attention_norm.weight", "n_embd")]]),
    Optional("post_attention_norm.weight", "n_embd"),
    Optional("post_ffw_norm.weight", "n_embd"),
    Optional("layer_output_scale.weight", "1"),
    All(GATED_FFN),
    Maybe(&[
        Required("attn_conv_base", "n_embd, conv_kernel, 2"),
        Required("attn_conv_proj.weight", "n_embd, undetermined"),
        Required("ffn_conv_base", "n_embd, conv_kernel, 2"),
        Required("ffn_conv_proj.weight", "n_embd, undetermined"),
    ]),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "dflash",
    note: "A draft model that predicts a block of tokens at once; with `markov_w1` each token is \
           conditioned on the one before. With hyper-connections its layers are those of \
           `deepseek4`.",
    required: &[SIZES, RMS_NORM, &[key::ATTENTION_HEAD_COUNT, key::TARGET_LAYERS, key::BLOCK_SIZE]],
    optional: &[
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        &[
            key::ROPE_DIMENSION_SECTIONS,
            key::ATTENTION_CAUSAL,
            key::ATTENTION_SCALE,
            key::ATTENTION_VALUE_SCALE,
            key::HIDDEN_ACTIVATION,
            key::EMBEDDING_SCALE,
            key::LOGIT_SCALE,
            key::FINAL_LOGIT_SOFTCAPPING,
            key::CONV_KERNEL_SIZE,
            key::CONV_GROUP_SIZE,
            key::SELECTOR_RANK,
            key::SELECTOR_TOP_K,
            key::SAMPLE_FROM_ANCHOR,
            key::HAS_CONFIDENCE_HEAD,
            key::POOLING_TYPE,
            key::FEED_FORWARD_LENGTH,
        ],
        EXPERT_KEYS,
        DEEPSEEK4_KEYS,
    ],
    tensors: &[
        All(DRAFT_TENSORS),
        Required("enc.output_norm.weight", "n_embd"),
        When("n_hyper", OUTPUT_HYPER_CONNECTION),
        Maybe(&[
            Required("markov_w1.weight", "undetermined, n_vocab"),
            Required("markov_w2.weight", "undetermined, undetermined"),
            Required("conf_proj.weight", "undetermined"),
            Required("conf_proj.bias", "1"),
        ]),
        Maybe(&[
            Required("selector_predecessor.weight", "selector_rank, n_vocab"),
            Required("selector_successor.weight", "selector_rank, n_vocab"),
            Required("selector_hidden.weight", "n_embd, selector_rank"),
        ]),
    ],
    blocks: &[layers(&[When("n_hyper", DEEPSEEK4_LAYER), Unless("n_hyper", DFLASH_LAYER)])],
    ..Architecture::DEFAULT
};
