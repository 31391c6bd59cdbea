//! Metadata keys and tensors of `lfm2`.

use crate::schema::architecture::Item::{All, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// Attention in layers with KV heads, a short convolution in the others.
pub(crate) const MIXER: &[Item] = &[
    All(ATTN_NORM),
    When("n_head_kv", &[All(QKV), All(ATTN_OUTPUT), All(QK_NORMS)]),
    Unless(
        "n_head_kv",
        &[
            Required("shortconv.conv.weight", "l_cache, n_embd"),
            Required("shortconv.in_proj.weight", "n_embd, 3*n_embd"),
            Required("shortconv.out_proj.weight", "n_embd, n_embd"),
        ],
    ),
    All(FFN_NORM),
];

/// Tensors outside of layers.
pub(crate) const TENSORS: &[Item] =
    &[All(EMBEDDING), Required("token_embd_norm.weight", "n_embd"), All(TIED_OUTPUT)];

/// Key of the short convolutions.
pub(crate) const SHORTCONV: &[&str] = &[key::SHORTCONV_L_CACHE];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "lfm2",
    note: "`token_embd_norm` is the final norm. Layers with 0 KV heads are short convolutions. \
           Audio tokenizers end in `dense_2`.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, SHORTCONV],
    optional: &[
        HEADS,
        ROPE,
        &[
            key::VOCAB_SIZE,
            key::ATTENTION_CAUSAL,
            key::POOLING_TYPE,
            key::ATTENTION_SLIDING_WINDOW,
            key::EMBEDDING_LENGTH_OUT,
        ],
    ],
    tensors: &[
        All(TENSORS),
        When(
            "n_frame",
            &[Required("dense_2.weight", "n_embd, n_frame"), Optional("dense_2.bias", "n_frame")],
        ),
    ],
    blocks: &[layers(&[All(MIXER), All(GATED_FFN)])],
    ..Architecture::DEFAULT
};
