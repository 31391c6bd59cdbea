//! Metadata keys and tensors of `arwkv7`.

use crate::rwkv::schema::TIME_MIX;
use crate::rwkv6::schema::TIME_MIX_NORM;
use crate::rwkv6qwen2::schema::FFN_WITH_NORM;
use crate::schema::architecture::Item::{All, Maybe, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const ARWKV7_LAYER: &[Item] = &[
    All(ATTN_NORM),
    Required("time_mix_w0.weight", "n_embd"),
    Required("time_mix_w1.weight", "n_embd, decay_rank"),
    Required("time_mix_w2.weight", "decay_rank, n_embd"),
    Required("time_mix_a0.weight", "n_embd"),
    Required("time_mix_a1.weight", "n_embd, iclr_rank"),
    Required("time_mix_a2.weight", "iclr_rank, n_embd"),
    Required("time_mix_v0.weight", "n_embd"),
    When(
        "gate_rank",
        &[
            Required("time_mix_g1.weight", "n_embd, gate_rank"),
            Required("time_mix_g2.weight", "gate_rank, n_embd"),
            Required("time_mix_lerp_fused.weight", "n_embd, 1, 1, 6"),
        ],
    ),
    Unless("gate_rank", &[Required("time_mix_lerp_fused.weight", "n_embd, 1, 1, 5")]),
    Required("time_mix_k_k.weight", "n_embd"),
    Required("time_mix_k_a.weight", "n_embd"),
    Required("time_mix_r_k.weight", "n_embd"),
    All(TIME_MIX),
    Optional("time_mix_receptance.bias", "n_embd"),
    Optional("time_mix_key.bias", "n_embd"),
    Optional("time_mix_value.bias", "n_embd"),
    Maybe(TIME_MIX_NORM),
    All(FFN_WITH_NORM),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "arwkv7",
    note: "Qwen 2 with RWKV 7 time mixing in the place of attention. A gate rank of 0 means no \
           gate.",
    required: &[
        SIZES,
        RMS_NORM,
        &[
            key::FEED_FORWARD_LENGTH,
            key::WKV_HEAD_SIZE,
            key::ATTENTION_DECAY_LORA_RANK,
            key::ATTENTION_ICLR_LORA_RANK,
            key::ATTENTION_VALUE_RESIDUAL_MIX_LORA_RANK,
            key::ATTENTION_GATE_LORA_RANK,
        ],
    ],
    optional: &[&[key::ATTENTION_HEAD_COUNT, key::TOKEN_SHIFT_COUNT]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "1",
            items: &[
                All(ARWKV7_LAYER),
                Required("time_mix_v1.weight", "n_embd, iclr_rank"),
                Required("time_mix_v2.weight", "iclr_rank, n_embd"),
            ],
        },
        Block {
            prefix: "blk.",
            from: "1",
            to: "n_layer",
            items: &[
                All(ARWKV7_LAYER),
                Required("time_mix_v1.weight", "n_embd, value_rank"),
                Required("time_mix_v2.weight", "value_rank, n_embd"),
            ],
        },
    ],
    ..Architecture::DEFAULT
};
