//! Gemma. The output matrix is the token embedding, except in some models derived from Gemma 3.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{self, All, Optional, Required, Unless, When};
use crate::schema::groups::*;
use crate::schema::key::Absent;

const SOFT_CAPS: &[&str] = &["attn_logit_softcapping", "final_logit_softcapping"];

pub(super) static GEMMA: Architecture = Architecture {
    name: "gemma",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    open: false,
};

pub(super) static GEMMA2: Architecture = Architecture {
    name: "gemma2",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW, SOFT_CAPS],
    defaults: &[
        ("attn_logit_softcapping", Absent::Number(50.0)),
        ("final_logit_softcapping", Absent::Number(30.0)),
        ("attention.sliding_window", Absent::Size("4096")),
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
        All(POST_NORMS),
    ])],
    open: false,
};

const GEMMA3_LAYER: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    All(ATTN_OUTPUT),
    All(HEAD_NORMS),
    All(FFN_NORM),
    All(GATED_FFN),
    All(POST_NORMS),
];

pub(super) static GEMMA3: Architecture = Architecture {
    name: "gemma3",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW, SOFT_CAPS],
    defaults: &[("rope.freq_base_swa", Absent::Number(10000.0))],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("dense_2.weight", "n_embd, dense_2_out"),
        Optional("dense_3.weight", "dense_3_in, n_embd"),
    ],
    blocks: &[layers(GEMMA3_LAYER)],
    open: false,
};

/// The layers after pooling, by the folders of their modules.
const DENSE_KEYS: &[&str] =
    &["dense_2_feat_in", "dense_2_feat_out", "dense_3_feat_in", "dense_3_feat_out"];

pub(super) static GEMMA_EMBEDDING: Architecture = Architecture {
    name: "gemma-embedding",
    note: "Gemma 3 as an encoder: tokens see those on both sides, half a window away at most.",
    required: &[SIZES, TRANSFORMER, RMS, &["attention.sliding_window"]],
    optional: &[HEADS, ROPE, WINDOW, SOFT_CAPS, DENSE_KEYS, &["attention.causal", "pooling_type"]],
    defaults: &[
        ("rope.freq_base_swa", Absent::Number(10000.0)),
        ("attention.causal", Absent::Flag(false)),
    ],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("dense_2.weight", "n_embd, dense_2_out"),
        Optional("dense_3.weight", "dense_3_in, n_embd"),
    ],
    blocks: &[layers(GEMMA3_LAYER)],
    open: false,
};

/// Heads of layers with a window, and of those without.
const WINDOWED_HEADS: &[Item] = &[
    Required("attn_q.weight", "n_embd, n_head*head_k_swa"),
    Optional("attn_k.weight", "n_embd, n_head_kv*head_k_swa"),
    Optional("attn_v.weight", "n_embd, n_head_kv*head_k_swa"),
    Required("attn_output.weight", "n_head*head_k_swa, n_embd"),
    Required("attn_q_norm.weight", "head_k_swa"),
    Optional("attn_k_norm.weight", "head_k_swa"),
];
const WIDE_HEADS: &[Item] = &[
    Required("attn_q.weight", "n_embd, n_q"),
    Optional("attn_k.weight", "n_embd, n_k"),
    Optional("attn_v.weight", "n_embd, n_k"),
    Required("attn_output.weight", "n_q, n_embd"),
    Required("attn_q_norm.weight", "head_k"),
    Optional("attn_k_norm.weight", "head_k"),
];

pub(super) static GEMMA4: Architecture = Architecture {
    name: "gemma4",
    note: "Layers without a window have heads of another width. The last layers use keys and values of earlier ones.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        WINDOW,
        &["attention.key_length_swa", "attention.value_length_swa"],
    ],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        &[
            "rope.dimension_count_swa",
            "final_logit_softcapping",
            "attention.shared_kv_layers",
            "embedding_length_per_layer_input",
            "expert_feed_forward_length",
        ],
    ],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Required("rope_freqs.weight", "head_k/2"),
        When(
            "n_embd_layer",
            &[
                Required("per_layer_token_embd.weight", "n_embd_layer*n_layer, n_vocab"),
                Required("per_layer_model_proj.weight", "n_embd, n_embd_layer*n_layer"),
                Required("per_layer_proj_norm.weight", "n_embd_layer"),
            ],
        ),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM),
        When("windowed", WINDOWED_HEADS),
        Unless("windowed", WIDE_HEADS),
        All(FFN_NORM),
        All(GATED_FFN),
        All(POST_NORMS),
        Optional("layer_output_scale.weight", "1"),
        When(
            "n_expert",
            &[
                Required("ffn_gate_inp.weight", "n_embd, n_expert"),
                Required("ffn_gate_inp.scale", "n_embd"),
                Required("ffn_gate_up_exps.weight", "n_embd, 2*n_ff_exp, n_expert"),
                Required("ffn_down_exps.weight", "n_ff_exp, n_embd, n_expert"),
                Optional("ffn_down_exps.scale", "n_expert"),
                Required("pre_ffw_norm_2.weight", "n_embd"),
                Required("post_ffw_norm_1.weight", "n_embd"),
                Required("post_ffw_norm_2.weight", "n_embd"),
            ],
        ),
        When(
            "n_embd_layer",
            &[
                Required("inp_gate.weight", "n_embd, n_embd_layer"),
                Required("proj.weight", "n_embd_layer, n_embd"),
                Required("post_norm.weight", "n_embd"),
            ],
        ),
    ])],
    open: false,
};

pub(super) static GEMMA4_ASSISTANT: Architecture = Architecture {
    name: "gemma4-assistant",
    note: "A draft of Gemma 4, which reads keys and values of its target.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        WINDOW,
        &[
            "attention.key_length_swa",
            "attention.value_length_swa",
            "embedding_length_out",
            "nextn_predict_layers",
        ],
    ],
    optional: GEMMA4.optional,
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        Required("rope_freqs.weight", "head_k/2"),
        Required("nextn.pre_projection.weight", "2*n_embd_out, n_embd"),
        Required("nextn.post_projection.weight", "n_embd, n_embd_out"),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM),
        When(
            "windowed",
            &[
                Required("attn_q.weight", "n_embd, n_head*head_k_swa"),
                Required("attn_output.weight", "n_head*head_k_swa, n_embd"),
                Required("attn_q_norm.weight", "head_k_swa"),
            ],
        ),
        Unless(
            "windowed",
            &[
                Required("attn_q.weight", "n_embd, n_q"),
                Required("attn_output.weight", "n_q, n_embd"),
                Required("attn_q_norm.weight", "head_k"),
            ],
        ),
        All(FFN_NORM),
        All(GATED_FFN),
        All(POST_NORMS),
        Required("layer_output_scale.weight", "1"),
    ])],
    open: false,
};

pub(super) static MUSE_GLIMMER: Architecture = Architecture {
    name: "muse-glimmer",
    note: "What attention gives has a gate. The norms of heads hold one factor.",
    required: &[SIZES, TRANSFORMER, RMS, WINDOW_KEYS, &["final_logit_softcapping", "logit_scale"]],
    optional: &[HEADS, ROPE, WINDOW],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        Required("attn_gate.weight", "n_embd, n_q"),
        All(HEAD_NORMS),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
        All(POST_NORMS),
    ])],
    open: false,
};

const WINDOW_KEYS: &[&str] = &["attention.sliding_window"];

pub(super) static GEMMA3N: Architecture = Architecture {
    name: "gemma3n",
    note: "Several streams of the residual, of which one is computed. The last layers use keys and values of earlier ones.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        WINDOW,
        &[
            "altup.active_idx",
            "altup.num_inputs",
            "embedding_length_per_layer_input",
            "attention.shared_kv_layers",
            "activation_sparsity_scale",
        ],
    ],
    optional: &[HEADS, ROPE, &["final_logit_softcapping"]],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Required("altup_proj.weight", "n_embd, n_embd, n_stream - 1"),
        Required("altup_unembd_proj.weight", "n_embd, n_embd, n_stream - 1"),
        Required("per_layer_token_embd.weight", "n_embd_layer*n_layer, n_vocab"),
        Required("per_layer_model_proj.weight", "n_embd, n_embd_layer*n_layer"),
        Required("per_layer_proj_norm.weight", "n_embd_layer"),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Required("attn_q.weight", "n_embd, n_q"),
        Optional("attn_k.weight", "n_embd, n_k"),
        Optional("attn_v.weight", "n_embd, n_v"),
        All(ATTN_OUTPUT),
        Required("attn_q_norm.weight", "head_k"),
        Optional("attn_k_norm.weight", "head_k"),
        All(FFN_NORM),
        All(GATED_FFN),
        All(POST_NORMS),
        Required("inp_gate.weight", "n_embd, n_embd_layer"),
        Required("proj.weight", "n_embd_layer, n_embd"),
        Required("post_norm.weight", "n_embd"),
        Required("altup_correct_coef.weight", "n_stream, n_stream"),
        Required("altup_correct_scale.weight", "n_embd"),
        Required("altup_predict_coef.weight", "n_stream, n_stream*n_stream"),
        Required("altup_router.weight", "n_embd, n_stream"),
        Required("altup_router_norm.weight", "n_embd"),
        Required("laurel_l.weight", "n_embd, untold"),
        Required("laurel_r.weight", "untold, n_embd"),
        Required("laurel_post_norm.weight", "n_embd"),
    ])],
    open: false,
};
