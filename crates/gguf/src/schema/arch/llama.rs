//! Llama, and models that differ from it in keys only.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, OneOf, Optional, Required};
use crate::schema::groups::*;
use crate::schema::key::Absent;

const OPTIONAL: &[&[&str]] = &[
    HEADS,
    ROPE,
    WINDOW,
    EXPERT_KEYS,
    &["vocab_size", "tensor_data_layout", "expert_shared_feed_forward_length"],
];
const SCALES: &[&str] = &["residual_scale", "embedding_scale", "attention.scale"];

pub(super) static LLAMA: Architecture = Architecture {
    name: "llama",
    note: "Also Mistral, Mixtral and others. `tensor_data_layout` is `Meta AI original pth` \
           where queries and keys are laid out for rotation of neighbours.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: OPTIONAL,
    defaults: &[],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    open: false,
};

pub(super) static GRANITE: Architecture = Architecture {
    name: "granite",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS, &["logit_scale"]],
    optional: &[HEADS, ROPE, EXPERT_KEYS, SCALES, &["vocab_size", "deepstack_mapping"]],
    defaults: &[],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    open: false,
};

pub(super) static GRANITE_MOE: Architecture = Architecture {
    name: "granitemoe",
    note: "Experts, or the network that is shared by all tokens alone.",
    required: &[SIZES, TRANSFORMER, RMS, &["logit_scale"]],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        SCALES,
        &["vocab_size", "expert_shared_feed_forward_length"],
    ],
    defaults: &[],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    open: false,
};

pub(super) static MINICPM: Architecture = Architecture {
    name: "minicpm",
    note: "Without the scales, programs take those of the first models.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, EXPERT_KEYS, SCALES, &["vocab_size", "logit_scale"]],
    defaults: &[("embedding_scale", Absent::Number(12.0))],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    open: false,
};

pub(super) static INTERNLM2: Architecture = Architecture {
    name: "internlm2",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        Required("attn_output.weight", "n_embd, n_embd"),
        All(FFN_NORM),
        All(GATED_FFN),
    ])],
    open: false,
};

pub(super) static SMOLLM3: Architecture = Architecture {
    name: "smollm3",
    note: "Of four layers the last does not rotate.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    open: false,
};

pub(super) static LLAMA4: Architecture = Architecture {
    name: "llama4",
    note: "Every `interleave_moe_layer_step` layers there are experts. Of four layers the last has \
           no window and does not rotate; with a window of 0 all rotate and none has one.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        &["expert_feed_forward_length", "interleave_moe_layer_step"],
    ],
    optional: &[HEADS, ROPE, WINDOW, &["vocab_size"]],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("rope_freqs.weight", "n_rot/2"),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        OneOf(&[
            GATED_FFN,
            &[
                All(EXPERTS),
                Required("ffn_gate_shexp.weight", "n_embd, n_ff_exp"),
                Required("ffn_up_shexp.weight", "n_embd, n_ff_exp"),
                Required("ffn_down_shexp.weight", "n_ff_exp, n_embd"),
            ],
        ]),
    ])],
    open: false,
};
