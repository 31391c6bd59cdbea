//! Metadata keys and tensors.

use crate::schema::architecture::Item::{All, Required};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::key;
use crate::schema::key_schema::Absent;
use crate::schema::layers;

/// Epsilon, in one of two spellings; programs go on without.
pub(crate) const EPSILONS: &[&str] = &[
    key::ATTENTION_LAYER_NORM_EPSILON,
    key::ATTENTION_LAYER_NORM_RMS_EPSILON,
    key::TOKEN_SHIFT_COUNT,
];

/// What the programs of the authors take.
pub(crate) const EPSILON: &[(&str, Absent)] =
    &[("attention.layer_norm_epsilon", Absent::Number(1e-5))];

pub(crate) const TENSORS: &[Item] =
    &[All(EMBEDDING), All(EMBEDDING_NORM), All(OUTPUT_NORM_BIAS), All(OUTPUT)];

pub(crate) const NORMS: &[Item] = &[
    All(ATTN_NORM_BIAS),
    Required("attn_norm_2.weight", "n_embd"),
    Required("attn_norm_2.bias", "n_embd"),
];

pub(crate) const TIME_MIX: &[Item] = &[
    Required("time_mix_key.weight", "n_embd, n_embd"),
    Required("time_mix_value.weight", "n_embd, n_embd"),
    Required("time_mix_receptance.weight", "n_embd, n_embd"),
    Required("time_mix_output.weight", "n_embd, n_embd"),
];

pub(crate) const CHANNEL_MIX: &[Item] = &[
    Required("channel_mix_lerp_k.weight", "n_embd"),
    Required("channel_mix_key.weight", "n_embd, n_ff"),
    Required("channel_mix_value.weight", "n_ff, n_embd"),
];

pub(crate) const CHANNEL_GATE: &[Item] = &[
    Required("channel_mix_lerp_r.weight", "n_embd"),
    Required("channel_mix_receptance.weight", "n_embd, n_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "rwkv",
    note: "Version 4. llama.cpp neither writes nor runs it: keys as in the \
           specification, tensors named as in rwkv6; time_mix_decay holds what goes into \
           `-exp()`, time_mix_first the bonus of the current token.",
    required: &[SIZES, &[key::ARCHITECTURE_VERSION, key::FEED_FORWARD_LENGTH]],
    optional: &[EPSILONS, &[key::RESCALE_EVERY_N_LAYERS, key::VOCAB_SIZE]],
    defaults: EPSILON,
    tensors: TENSORS,
    blocks: &[layers(&[
        All(NORMS),
        All(TIME_MIX),
        Required("time_mix_lerp_k.weight", "n_embd"),
        Required("time_mix_lerp_v.weight", "n_embd"),
        Required("time_mix_lerp_r.weight", "n_embd"),
        Required("time_mix_decay.weight", "n_embd"),
        Required("time_mix_first.weight", "n_embd"),
        All(CHANNEL_MIX),
        All(CHANNEL_GATE),
    ])],
    ..Architecture::DEFAULT
};
