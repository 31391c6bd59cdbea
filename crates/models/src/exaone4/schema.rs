//! Metadata keys and tensors of `exaone4`.

use crate::schema::architecture::Item::{All, Maybe, Optional};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "exaone4",
    note: "Norms follow attention and FFN (post-norm). In models with a sliding window only its \
           layers have RoPE.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, SLIDING_WINDOW, &[key::VOCAB_SIZE, key::NEXTN_PREDICT_LAYERS]],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("rope_freqs.weight", "n_rot/2"),
    ],
    blocks: &[
        Block { prefix: "blk.", from: "0", to: "n_trunk", items: EXAONE4_LAYER },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(EXAONE4_LAYER), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};

const EXAONE4_LAYER: &[Item] =
    &[All(QKV), All(ATTN_OUTPUT), All(QK_NORMS), All(GATED_FFN), All(POST_NORMS)];
