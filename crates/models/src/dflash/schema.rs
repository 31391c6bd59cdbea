//! Metadata keys and tensors.

use crate::deepseek4::schema::{BIASED_EXPERTS, COMPRESSED_TOKENS};
use crate::eagle3::schema::ENDS;
use crate::hy_v4::schema::STREAMS_OF_OUTPUT;
use crate::schema::architecture::Item::{All, Maybe, OneOf, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::layers;

/// A layer of the draft of DeepSeek 4.
const DEEPSEEK4_DRAFT: &[Item] = &[All(COMPRESSED_TOKENS), All(BIASED_EXPERTS)];

/// Keys of drafts whose layers are those of DeepSeek 4.
const OF_DEEPSEEK4: &[&str] = &[
    "attention.q_lora_rank",
    "attention.output_group_count",
    "attention.output_lora_rank",
    "attention.compress_ratios",
    "attention.compress_rope_freq_base",
    "attention.indexer.head_count",
    "attention.indexer.key_length",
    "attention.indexer.top_k",
    "expert_feed_forward_length",
    "expert_shared_count",
    "expert_weights_scale",
    "expert_weights_norm",
    "expert_gating_func",
    "expert_group_count",
    "expert_group_used_count",
    "swiglu_clamp_exp",
    "swiglu_clamp_shexp",
    "hyper_connection.count",
    "hyper_connection.sinkhorn_iterations",
    "hyper_connection.epsilon",
    "hash_layer_count",
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
    // As most call the norm behind attention, or the one in front of what follows.
    OneOf(&[FFN_NORM, &[Required("post_attention_norm.weight", "n_embd")]]),
    Optional("post_attention_norm.weight", "n_embd"),
    Optional("post_ffw_norm.weight", "n_embd"),
    Optional("layer_output_scale.weight", "1"),
    All(GATED_FFN),
    Maybe(&[
        Required("attn_conv_base", "n_embd, conv_kernel, 2"),
        Required("attn_conv_proj.weight", "n_embd, untold"),
        Required("ffn_conv_base", "n_embd, conv_kernel, 2"),
        Required("ffn_conv_proj.weight", "n_embd, untold"),
    ]),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "dflash",
    note: "A draft that guesses a block of tokens at once; with `markov_w1` each from the one before, too. With streams its layers are those of deepseek4.",
    required: &[SIZES, RMS, &["attention.head_count", "target_layers", "block_size"]],
    optional: &[
        HEADS,
        ROPE,
        WINDOW,
        &[
            "rope.dimension_sections",
            "attention.causal",
            "attention.scale",
            "attention.value_scale",
            "hidden_activation",
            "embedding_scale",
            "logit_scale",
            "final_logit_softcapping",
            "conv_kernel_size",
            "conv_group_size",
            "selector_rank",
            "selector_top_k",
            "sample_from_anchor",
            "has_confidence_head",
            "pooling_type",
            "feed_forward_length",
        ],
        EXPERT_KEYS,
        OF_DEEPSEEK4,
    ],
    tensors: &[
        All(ENDS),
        Required("enc.output_norm.weight", "n_embd"),
        When("n_hyper", STREAMS_OF_OUTPUT),
        Maybe(&[
            Required("markov_w1.weight", "untold, n_vocab"),
            Required("markov_w2.weight", "untold, untold"),
            Required("conf_proj.weight", "untold"),
            Required("conf_proj.bias", "1"),
        ]),
        Maybe(&[
            Required("selector_predecessor.weight", "selector_rank, n_vocab"),
            Required("selector_successor.weight", "selector_rank, n_vocab"),
            Required("selector_hidden.weight", "n_embd, selector_rank"),
        ]),
    ],
    blocks: &[layers(&[When("n_hyper", DEEPSEEK4_DRAFT), Unless("n_hyper", DFLASH_LAYER)])],
    ..Architecture::DEFAULT
};
