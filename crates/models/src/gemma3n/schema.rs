//! Metadata keys and tensors of `gemma3n`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "gemma3n",
    note: "The residual consists of several AltUp streams, of which each layer computes one. The \
           last layers share the KV cache of earlier ones.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        SLIDING_WINDOW,
        &[
            key::ALTUP_ACTIVE_IDX,
            key::ALTUP_NUM_INPUTS,
            key::EMBEDDING_LENGTH_PER_LAYER_INPUT,
            key::ATTENTION_SHARED_KV_LAYERS,
            key::ACTIVATION_SPARSITY_SCALE,
        ],
    ],
    optional: &[HEADS, ROPE, &[key::FINAL_LOGIT_SOFTCAPPING]],
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
        Required("laurel_l.weight", "n_embd, undetermined"),
        Required("laurel_r.weight", "undetermined, n_embd"),
        Required("laurel_post_norm.weight", "n_embd"),
    ])],
    ..Architecture::DEFAULT
};
