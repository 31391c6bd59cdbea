//! Metadata keys and tensors of `gemma4-assistant`.

use crate::gemma4;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required, Unless, When};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "gemma4-assistant",
    note: "A draft model of Gemma 4 that attends to the KV cache of its target.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        SLIDING_WINDOW,
        &[
            key::ATTENTION_KEY_LENGTH_SWA,
            key::ATTENTION_VALUE_LENGTH_SWA,
            key::EMBEDDING_LENGTH_OUT,
            key::NEXTN_PREDICT_LAYERS,
        ],
    ],
    optional: gemma4::schema::SCHEMA.optional,
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
            "swa",
            &[
                Required("attn_q.weight", "n_embd, n_head*head_k_swa"),
                Required("attn_output.weight", "n_head*head_k_swa, n_embd"),
                Required("attn_q_norm.weight", "head_k_swa"),
            ],
        ),
        Unless(
            "swa",
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
    ..Architecture::DEFAULT
};
