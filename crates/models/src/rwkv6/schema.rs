//! Metadata keys and tensors of `rwkv6`.

use crate::rwkv::schema::{
    CHANNEL_GATE, CHANNEL_MIX, DEFAULT_EPSILON, EPSILON_KEYS, NORMS, TENSORS, TIME_MIX,
};
use crate::schema::architecture::Item::{All, OneOf, Required};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) const TIME_MIX_NORM: &[Item] =
    &[Required("time_mix_ln.weight", "n_embd"), Required("time_mix_ln.bias", "n_embd")];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "rwkv6",
    required: &[
        SIZES,
        &[
            key::FEED_FORWARD_LENGTH,
            key::WKV_HEAD_SIZE,
            key::TIME_MIX_EXTRA_DIM,
            key::TIME_DECAY_EXTRA_DIM,
        ],
    ],
    optional: &[
        EPSILON_KEYS,
        &[key::ATTENTION_HEAD_COUNT, key::RESCALE_EVERY_N_LAYERS, key::VOCAB_SIZE],
    ],
    defaults: DEFAULT_EPSILON,
    tensors: TENSORS,
    blocks: &[layers(&[
        All(NORMS),
        Required("time_mix_w1.weight", "n_embd, 5*mix_rank"),
        Required("time_mix_w2.weight", "mix_rank, n_embd, 5"),
        Required("time_mix_lerp_x.weight", "n_embd"),
        OneOf(&[
            &[Required("time_mix_lerp_fused.weight", "n_embd, 1, 1, 5")],
            &[
                Required("time_mix_lerp_w.weight", "n_embd"),
                Required("time_mix_lerp_k.weight", "n_embd"),
                Required("time_mix_lerp_v.weight", "n_embd"),
                Required("time_mix_lerp_r.weight", "n_embd"),
                Required("time_mix_lerp_g.weight", "n_embd"),
            ],
        ]),
        Required("time_mix_first.weight", "wkv_head, n_embd/wkv_head"),
        Required("time_mix_decay.weight", "n_embd"),
        Required("time_mix_decay_w1.weight", "n_embd, decay_dim"),
        Required("time_mix_decay_w2.weight", "decay_dim, n_embd"),
        All(TIME_MIX),
        Required("time_mix_gate.weight", "n_embd, n_embd"),
        All(TIME_MIX_NORM),
        All(CHANNEL_MIX),
        All(CHANNEL_GATE),
    ])],
    ..Architecture::DEFAULT
};
