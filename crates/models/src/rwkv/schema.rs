//! Metadata keys and tensors of `rwkv`.

use crate::schema::architecture::Item::{All, Required};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::key_schema::DefaultValue;
use crate::schema::{key, layers};

/// Keys of the epsilon, of which files have one or none, and the number of token shifts.
pub(crate) const EPSILON_KEYS: &[&str] = &[
    key::ATTENTION_LAYER_NORM_EPSILON,
    key::ATTENTION_LAYER_NORM_RMS_EPSILON,
    key::TOKEN_SHIFT_COUNT,
];

/// Default of the epsilon in the authors' implementation.
pub(crate) const DEFAULT_EPSILON: &[(&str, DefaultValue)] =
    &[("attention.layer_norm_epsilon", DefaultValue::Number(1e-5))];

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
    note: "RWKV 4, which llama.cpp does not support: keys follow the specification, tensors are named \
           as in rwkv6; time_mix_decay is the logarithm of the decay rate, time_mix_first the bonus \
           of the current token.",
    required: &[SIZES, &[key::ARCHITECTURE_VERSION, key::FEED_FORWARD_LENGTH]],
    optional: &[EPSILON_KEYS, &[key::RESCALE_EVERY_N_LAYERS, key::VOCAB_SIZE]],
    defaults: DEFAULT_EPSILON,
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
