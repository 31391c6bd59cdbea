//! Metadata keys and tensors of `wavtokenizer-dec`.

use crate::schema::architecture::Item::Required;
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const POSITION_NET: &str = "posnet.";

/// Residual block: two convolutions, each after a group norm.
const RESIDUAL_BLOCK: &[Item] = &[
    Required("norm1.weight", "1, pos_embd"),
    Required("norm1.bias", "1, pos_embd"),
    Required("conv1.weight", "3, pos_embd, pos_embd"),
    Required("conv1.bias", "1, pos_embd"),
    Required("norm2.weight", "1, pos_embd"),
    Required("norm2.bias", "1, pos_embd"),
    Required("conv2.weight", "3, pos_embd, pos_embd"),
    Required("conv2.bias", "1, pos_embd"),
];

const ATTENTION: &[Item] = &[
    Required("attn_norm.weight", "1, pos_embd"),
    Required("attn_norm.bias", "1, pos_embd"),
    Required("attn_q.weight", "1, pos_embd, pos_embd"),
    Required("attn_q.bias", "1, pos_embd"),
    Required("attn_k.weight", "1, pos_embd, pos_embd"),
    Required("attn_k.bias", "1, pos_embd"),
    Required("attn_v.weight", "1, pos_embd, pos_embd"),
    Required("attn_v.bias", "1, pos_embd"),
    Required("attn_output.weight", "1, pos_embd, pos_embd"),
    Required("attn_output.bias", "1, pos_embd"),
];

const FINAL_NORM: &[Item] =
    &[Required("attn_norm.weight", "1, pos_embd"), Required("attn_norm.bias", "1, pos_embd")];

const CONVNEXT_BLOCK: &[Item] = &[
    Required("dw.weight", "7, 1, convnext_embd"),
    Required("dw.bias", "1, convnext_embd"),
    Required("norm.weight", "convnext_embd"),
    Required("norm.bias", "convnext_embd"),
    Required("pw1.weight", "convnext_embd, n_ff"),
    Required("pw1.bias", "n_ff"),
    Required("pw2.weight", "n_ff, convnext_embd"),
    Required("pw2.bias", "convnext_embd"),
    Required("gamma.weight", "convnext_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "wavtokenizer-dec",
    note: "Vocoder: audio codes to magnitude and phase for an inverse Fourier transform. The position \
           net always has these six layers.",
    required: &[
        SIZES,
        TRANSFORMER,
        LAYER_NORM,
        &[
            key::FEATURES_LENGTH,
            key::ATTENTION_GROUP_NORM_EPSILON,
            key::ATTENTION_GROUP_NORM_GROUPS,
            key::POSNET_EMBEDDING_LENGTH,
            key::POSNET_BLOCK_COUNT,
            key::CONVNEXT_EMBEDDING_LENGTH,
            key::CONVNEXT_BLOCK_COUNT,
        ],
    ],
    optional: &[&[key::VOCAB_SIZE, key::ATTENTION_CAUSAL, key::ATTENTION_HEAD_COUNT_KV]],
    tensors: &[
        Required("token_embd.weight", "n_features, n_vocab"),
        Required("conv1d.weight", "7, n_features, pos_embd"),
        Required("conv1d.bias", "1, pos_embd"),
        Required("token_embd_norm.weight", "pos_embd"),
        Required("token_embd_norm.bias", "pos_embd"),
        Required("output_norm.weight", "convnext_embd"),
        Required("output_norm.bias", "convnext_embd"),
        Required("output.weight", "convnext_embd, n_embd"),
        Required("output.bias", "n_embd"),
    ],
    blocks: &[
        Block { prefix: POSITION_NET, from: "0", to: "2", items: RESIDUAL_BLOCK },
        Block { prefix: POSITION_NET, from: "2", to: "3", items: ATTENTION },
        Block { prefix: POSITION_NET, from: "3", to: "5", items: RESIDUAL_BLOCK },
        Block { prefix: POSITION_NET, from: "5", to: "6", items: FINAL_NORM },
        Block { prefix: "convnext.", from: "0", to: "convnext_layer", items: CONVNEXT_BLOCK },
    ],
    ..Architecture::DEFAULT
};
