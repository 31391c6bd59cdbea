//! Metadata keys and tensors of `t5`.

use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

/// Self-attention and FFN of a layer.
pub(crate) const LAYER: &[Item] = &[
    Required("attn_norm.weight", "n_embd"),
    Optional("attn_rel_b.weight", "n_head, n_buckets"),
    Required("attn_q.weight", "n_embd, n_k"),
    Required("attn_k.weight", "n_embd, n_k"),
    Required("attn_v.weight", "n_embd, n_v"),
    Required("attn_o.weight", "n_v, n_embd"),
    Required("ffn_norm.weight", "n_embd"),
    Optional("ffn_gate.weight", "n_embd, n_ff"),
    Required("ffn_up.weight", "n_embd, n_ff"),
    Required("ffn_down.weight", "n_ff, n_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "t5",
    note: "The first layer of encoder and decoder has the relative position bias of all.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, &[key::ATTENTION_RELATIVE_BUCKETS_COUNT]],
    optional: &[
        HEADS,
        &[
            key::ATTENTION_LAYER_NORM_EPSILON,
            key::DECODER_START_TOKEN_ID,
            key::T5_DECODER_BLOCK_COUNT,
        ],
    ],
    tensors: &[
        All(EMBEDDING),
        Required("enc.output_norm.weight", "n_embd"),
        Required("dec.output_norm.weight", "n_embd"),
        All(TIED_OUTPUT),
    ],
    blocks: &[
        Block { prefix: "enc.blk.", from: "0", to: "n_layer", items: LAYER },
        Block {
            prefix: "dec.blk.",
            from: "0",
            to: "n_dec_layer",
            items: &[
                All(LAYER),
                Required("cross_attn_norm.weight", "n_embd"),
                Optional("cross_attn_rel_b.weight", "n_head, n_buckets"),
                Required("cross_attn_q.weight", "n_embd, n_k"),
                Required("cross_attn_k.weight", "n_embd, n_k"),
                Required("cross_attn_v.weight", "n_embd, n_v"),
                Required("cross_attn_o.weight", "n_v, n_embd"),
            ],
        },
    ],
    ..Architecture::DEFAULT
};
