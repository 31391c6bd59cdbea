//! Metadata keys and tensors of `hrm_text`.

use crate::schema::architecture::Item::{All, Required};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "hrm_text",
    note: "Two stacks of layers that run in cycles; `block_count` is the number of layer runs \
           in total. Norms have no weights.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        &[key::HRM_LAYERS_PER_STACK, key::HRM_H_CYCLES, key::HRM_L_CYCLES],
    ],
    optional: &[HEADS, ROPE, &[key::EMBEDDING_SCALE, key::HRM_PREFIX_LM]],
    tensors: &[All(EMBEDDING), All(TIED_OUTPUT), Required("hrm.z_l_init", "n_embd")],
    blocks: &[Block {
        prefix: "blk.",
        from: "0",
        to: "2*n_stack",
        items: &[
            Required("attn_q.weight", "n_embd, n_q"),
            Required("attn_k.weight", "n_embd, n_k"),
            Required("attn_v.weight", "n_embd, n_v"),
            Required("attn_gate.weight", "n_embd, n_q"),
            All(ATTN_OUTPUT),
            All(GATED_FFN),
        ],
    }],
    ..Architecture::DEFAULT
};
