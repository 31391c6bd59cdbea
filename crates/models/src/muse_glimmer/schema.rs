//! Metadata keys and tensors of `muse-glimmer`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "muse-glimmer",
    note: "Attention has an output gate. The weights of the QK-norm are constant.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        &[key::ATTENTION_SLIDING_WINDOW],
        &[key::FINAL_LOGIT_SOFTCAPPING, key::LOGIT_SCALE],
    ],
    optional: &[HEADS, ROPE, SLIDING_WINDOW],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        Required("attn_gate.weight", "n_embd, n_q"),
        All(QK_NORMS),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
        All(POST_NORMS),
    ])],
    ..Architecture::DEFAULT
};
