//! Llama, and models that differ from it in keys only.

use super::layers;
use crate::schema::architecture::Item::{self, All, OneOf, Optional, Required};
use crate::schema::architecture::{Architecture, Block};
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

pub(super) static LLAMA_EMBED: Architecture = Architecture {
    name: "llama-embed",
    note: "Llama without a mask, as an encoder.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, EXPERT_KEYS, &["vocab_size", "pooling_type"]],
    defaults: &[],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    open: false,
};

pub(super) static MISTRAL3: Architecture = Architecture {
    name: "mistral3",
    note: "Attention sharpens beyond the original context where `attention.temperature_scale` is there.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW, EXPERT_KEYS, &["vocab_size", "attention.temperature_scale"]],
    defaults: &[],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    open: false,
};

pub(super) static ARCEE: Architecture = Architecture {
    name: "arcee",
    note: "Feed-forward layers have no gate: their activation is the square of what is positive.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size", "pooling_type"]],
    defaults: &[],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(FFN)])],
    open: false,
};

pub(super) static SEED_OSS: Architecture = Architecture {
    name: "seed_oss",
    note: "The norm before feed-forward is `post_attention_norm`.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        Required("post_attention_norm.weight", "n_embd"),
        All(GATED_FFN),
    ])],
    open: false,
};

pub(super) static MAINCODER: Architecture = Architecture {
    name: "maincoder",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(NORMED_HEADS)],
    open: false,
};

pub(super) static HUNYUAN_DENSE: Architecture = Architecture {
    name: "hunyuan-dense",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(NORMED_HEADS)],
    open: false,
};

pub(super) static JAIS2: Architecture = Architecture {
    name: "jais2",
    note: "Feed-forward layers have no gate: their activation is the square of what is positive.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT_BIAS),
        All(FFN_NORM_BIAS),
        All(FFN_BIAS),
    ])],
    open: false,
};

pub(super) static ORION: Architecture = Architecture {
    name: "orion",
    note: "As llama, with norms that take away the mean.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE, &["tensor_data_layout"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM_BIAS),
        All(GATED_FFN),
    ])],
    open: false,
};

pub(super) static ERNIE4_5: Architecture = Architecture {
    name: "ernie4_5",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["rope.dimension_sections"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(ERNIE_LAYER)],
    open: false,
};

const ERNIE_ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    All(ATTN_OUTPUT),
    Optional("attn_output.bias", "n_embd"),
    All(FFN_NORM),
];
const ERNIE_LAYER: &[Item] = &[All(ERNIE_ATTENTION), All(GATED_FFN)];

pub(super) static ERNIE4_5_MOE: Architecture = Architecture {
    name: "ernie4_5-moe",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["interleave_moe_layer_step"]],
    optional: &[HEADS, ROPE, ROUTED_KEYS, &["expert_shared_feed_forward_length"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block { prefix: "blk.", from: "0", to: "n_dense", items: ERNIE_LAYER },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_layer",
            items: &[All(ERNIE_ATTENTION), All(ROUTED_EXPERTS)],
        },
    ],
    open: false,
};

/// A layer with norms of each head's queries and keys.
const NORMED_HEADS: &[Item] =
    &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(HEAD_NORMS), All(FFN_NORM), All(GATED_FFN)];

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

/// Both matrices of adapters that add to queries and so on, of which the first adds nothing.
const SWITCHED: &[Item] = &[
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

pub(super) static GRANITE_SWITCH: Architecture = Architecture {
    name: "graniteswitch",
    note: "As granite, with adapters of which tokens of the text switch one on.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        &[
            "logit_scale",
            "adapters.count",
            "adapters.lora_rank",
            "adapters.token_ids_activate",
            "adapters.token_ids_substitute",
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        SCALES,
        &["vocab_size", "expert_shared_feed_forward_length", "adapters.router_gain"],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
        All(SWITCHED),
    ])],
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

pub(super) static NANBEIGE: Architecture = Architecture {
    name: "nanbeige",
    note: "As llama, the layers run through several times.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size", "num_loops", "skip_loop_final_norm"]],
    defaults: &[],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    open: false,
};

pub(super) static PANGU_EMBEDDED: Architecture = Architecture {
    name: "pangu-embedded",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size"]],
    defaults: &[],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        Optional("attn_output.bias", "n_embd"),
        All(FFN_NORM),
        All(GATED_FFN),
    ])],
    open: false,
};

pub(super) static XVERSE: Architecture = Architecture {
    name: "xverse",
    note: "Queries and keys are laid out for rotation of neighbours.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["tensor_data_layout"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    open: false,
};
