//! Metadata keys and tensors of `gemma4`.

use crate::schema::architecture::Item::{All, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// Attention of layers with a sliding window.
const SLIDING_ATTENTION: &[Item] = &[
    Required("attn_q.weight", "n_embd, n_head*head_k_swa"),
    Optional("attn_k.weight", "n_embd, n_head_kv*head_k_swa"),
    Optional("attn_v.weight", "n_embd, n_head_kv*head_k_swa"),
    Required("attn_output.weight", "n_head*head_k_swa, n_embd"),
    Required("attn_q_norm.weight", "head_k_swa"),
    Optional("attn_k_norm.weight", "head_k_swa"),
];

/// Attention of layers with full attention.
const GLOBAL_ATTENTION: &[Item] = &[
    Required("attn_q.weight", "n_embd, n_q"),
    Optional("attn_k.weight", "n_embd, n_k"),
    Optional("attn_v.weight", "n_embd, n_k"),
    Required("attn_output.weight", "n_q, n_embd"),
    Required("attn_q_norm.weight", "head_k"),
    Optional("attn_k_norm.weight", "head_k"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "gemma4",
    note: "Layers with full attention have another head dimension than layers with a sliding \
           window. The last layers share the KV cache of earlier ones.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        SLIDING_WINDOW,
        &[key::ATTENTION_KEY_LENGTH_SWA, key::ATTENTION_VALUE_LENGTH_SWA],
    ],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        &[
            key::ROPE_DIMENSION_COUNT_SWA,
            key::FINAL_LOGIT_SOFTCAPPING,
            key::ATTENTION_SHARED_KV_LAYERS,
            key::EMBEDDING_LENGTH_PER_LAYER_INPUT,
            key::EXPERT_FEED_FORWARD_LENGTH,
        ],
    ],
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
        When("swa", SLIDING_ATTENTION),
        Unless("swa", GLOBAL_ATTENTION),
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
    ..Architecture::DEFAULT
};
