//! Metadata keys and tensors of `llama4`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, OneOf, Optional, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "llama4",
    note: "MoE every `interleave_moe_layer_step` layers. Every fourth layer has full attention \
           and no RoPE, the others chunked attention; with a window of 0 all layers have RoPE \
           and full attention.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        EXPERT_KEYS,
        &[key::EXPERT_FEED_FORWARD_LENGTH, key::INTERLEAVE_MOE_LAYER_STEP],
    ],
    optional: &[HEADS, ROPE, SLIDING_WINDOW, &[key::VOCAB_SIZE]],
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
    ..Architecture::DEFAULT
};
