//! Metadata keys and tensors of `rwkv7`.

use crate::rwkv::schema::{CHANNEL_MIX, DEFAULT_EPSILON, EPSILON_KEYS, NORMS, TENSORS, TIME_MIX};
use crate::rwkv6::schema::TIME_MIX_NORM;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const RWKV7_LAYER: &[Item] = &[
    All(NORMS),
    Required("time_mix_w0.weight", "n_embd"),
    Required("time_mix_w1.weight", "n_embd, decay_rank"),
    Required("time_mix_w2.weight", "decay_rank, n_embd"),
    Required("time_mix_a0.weight", "n_embd"),
    Required("time_mix_a1.weight", "n_embd, iclr_rank"),
    Required("time_mix_a2.weight", "iclr_rank, n_embd"),
    Required("time_mix_v0.weight", "n_embd"),
    Required("time_mix_g1.weight", "n_embd, gate_rank"),
    Required("time_mix_g2.weight", "gate_rank, n_embd"),
    Required("time_mix_lerp_fused.weight", "n_embd, 1, 1, 6"),
    Required("time_mix_k_k.weight", "n_embd"),
    Required("time_mix_k_a.weight", "n_embd"),
    Required("time_mix_r_k.weight", "n_embd"),
    All(TIME_MIX),
    All(TIME_MIX_NORM),
    All(CHANNEL_MIX),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "rwkv7",
    note: "The first layer has no value residual; its unused value tensors have the rank of the \
           in-context learning rate.",
    required: &[
        SIZES,
        &[
            key::FEED_FORWARD_LENGTH,
            key::WKV_HEAD_SIZE,
            key::ATTENTION_DECAY_LORA_RANK,
            key::ATTENTION_ICLR_LORA_RANK,
            key::ATTENTION_VALUE_RESIDUAL_MIX_LORA_RANK,
            key::ATTENTION_GATE_LORA_RANK,
        ],
    ],
    optional: &[EPSILON_KEYS, &[key::ATTENTION_HEAD_COUNT, key::VOCAB_SIZE]],
    defaults: DEFAULT_EPSILON,
    tensors: TENSORS,
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "1",
            items: &[
                All(RWKV7_LAYER),
                Required("time_mix_v1.weight", "n_embd, iclr_rank"),
                Required("time_mix_v2.weight", "iclr_rank, n_embd"),
            ],
        },
        Block {
            prefix: "blk.",
            from: "1",
            to: "n_layer",
            items: &[
                All(RWKV7_LAYER),
                Required("time_mix_v1.weight", "n_embd, value_rank"),
                Required("time_mix_v2.weight", "value_rank, n_embd"),
            ],
        },
    ],
    ..Architecture::DEFAULT
};
