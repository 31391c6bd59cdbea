//! Metadata keys and tensors of `eagle3`.

use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// Tensors outside of layers of draft models. Embedding and output projection may be those of the
/// target; `d2t` lists the target ids of a reduced vocabulary.
pub(crate) const DRAFT_TENSORS: &[Item] = &[
    Optional("token_embd.weight", "n_embd, n_vocab"),
    Optional("output.weight", "n_embd, undetermined"),
    Optional("d2t", "undetermined"),
    Required("fc.weight", "target_embd*n_target, n_embd"),
    All(OUTPUT_NORM),
    Optional("rope_freqs.weight", "undetermined"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "eagle3",
    note: "A draft model of one layer that reads the hidden states of three target layers.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, &[key::TARGET_LAYERS, key::TARGET_HIDDEN_SIZE]],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE, key::NORM_BEFORE_RESIDUAL, key::NORM_BEFORE_FC]],
    tensors: &[All(DRAFT_TENSORS), Optional("enc.output_norm.weight", "target_embd*n_target")],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Required("attn_norm_2.weight", "n_embd"),
        Required("attn_q.weight", "2*n_embd, n_q"),
        Required("attn_k.weight", "2*n_embd, n_k"),
        Required("attn_v.weight", "2*n_embd, n_v"),
        Optional("attn_q.bias", "n_q"),
        Optional("attn_k.bias", "n_k"),
        Optional("attn_v.bias", "n_v"),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
