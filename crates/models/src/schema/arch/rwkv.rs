//! RWKV.

use super::layers;
use crate::schema::architecture::Item::{
    self, All, Maybe, OneOf, Optional, Required, Unless, When,
};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;
use crate::schema::key::Absent;

/// Epsilon, in one of two spellings; programs go on without.
const EPSILONS: &[&str] =
    &["attention.layer_norm_epsilon", "attention.layer_norm_rms_epsilon", "token_shift_count"];
/// What the programs of the authors take.
const EPSILON: &[(&str, Absent)] = &[("attention.layer_norm_epsilon", Absent::Number(1e-5))];
const TENSORS: &[Item] = &[All(EMBEDDING), All(EMBEDDING_NORM), All(OUTPUT_NORM_BIAS), All(OUTPUT)];
const NORMS: &[Item] = &[
    All(ATTN_NORM_BIAS),
    Required("attn_norm_2.weight", "n_embd"),
    Required("attn_norm_2.bias", "n_embd"),
];
const TIME_MIX: &[Item] = &[
    Required("time_mix_key.weight", "n_embd, n_embd"),
    Required("time_mix_value.weight", "n_embd, n_embd"),
    Required("time_mix_receptance.weight", "n_embd, n_embd"),
    Required("time_mix_output.weight", "n_embd, n_embd"),
];
const TIME_MIX_NORM: &[Item] =
    &[Required("time_mix_ln.weight", "n_embd"), Required("time_mix_ln.bias", "n_embd")];
const CHANNEL_MIX: &[Item] = &[
    Required("channel_mix_lerp_k.weight", "n_embd"),
    Required("channel_mix_key.weight", "n_embd, n_ff"),
    Required("channel_mix_value.weight", "n_ff, n_embd"),
];
const CHANNEL_GATE: &[Item] = &[
    Required("channel_mix_lerp_r.weight", "n_embd"),
    Required("channel_mix_receptance.weight", "n_embd, n_embd"),
];

pub(super) static RWKV: Architecture = Architecture {
    name: "rwkv",
    note: "Version 4. llama.cpp neither writes nor runs it: keys as in the \
           specification, tensors named as in rwkv6; time_mix_decay holds what goes into \
           `-exp()`, time_mix_first the bonus of the current token.",
    required: &[SIZES, &["architecture_version", "feed_forward_length"]],
    optional: &[EPSILONS, &["rescale_every_n_layers", "vocab_size"]],
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
    open: false,
};

pub(super) static RWKV6: Architecture = Architecture {
    name: "rwkv6",
    note: "",
    required: &[
        SIZES,
        &["feed_forward_length", "wkv.head_size", "time_mix_extra_dim", "time_decay_extra_dim"],
    ],
    optional: &[EPSILONS, &["attention.head_count", "rescale_every_n_layers", "vocab_size"]],
    defaults: EPSILON,
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
    open: false,
};

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

pub(super) static RWKV7: Architecture = Architecture {
    name: "rwkv7",
    note: "In the first layer, which has no values to mix with, the mix has the rank of the \
           learning rate.",
    required: &[
        SIZES,
        &[
            "feed_forward_length",
            "wkv.head_size",
            "attention.decay_lora_rank",
            "attention.iclr_lora_rank",
            "attention.value_residual_mix_lora_rank",
            "attention.gate_lora_rank",
        ],
    ],
    optional: &[EPSILONS, &["attention.head_count", "vocab_size"]],
    defaults: EPSILON,
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
    open: false,
};

const QWEN_NETWORK: &[Item] = &[All(FFN_NORM), All(GATED_FFN)];

pub(super) static RWKV6_QWEN2: Architecture = Architecture {
    name: "rwkv6qwen2",
    note: "Qwen 2 with its attention replaced by RWKV 6, with fewer heads of keys and values.",
    required: &[
        SIZES,
        RMS,
        &["feed_forward_length", "wkv.head_size", "time_mix_extra_dim", "time_decay_extra_dim"],
    ],
    optional: &[&["attention.head_count", "attention.head_count_kv", "token_shift_count"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Required("time_mix_w1.weight", "n_embd, 5*mix_rank"),
        Required("time_mix_w2.weight", "mix_rank, n_embd, 5"),
        Required("time_mix_lerp_x.weight", "n_embd"),
        Required("time_mix_lerp_fused.weight", "n_embd, 1, 1, 5"),
        Optional("time_mix_first.weight", "wkv_head, n_embd/wkv_head"),
        Required("time_mix_decay.weight", "n_embd"),
        Required("time_mix_decay_w1.weight", "n_embd, decay_dim"),
        Required("time_mix_decay_w2.weight", "decay_dim, n_embd"),
        Required("time_mix_key.weight", "n_embd, n_head_kv*wkv_head"),
        Required("time_mix_value.weight", "n_embd, n_head_kv*wkv_head"),
        Required("time_mix_receptance.weight", "n_embd, n_embd"),
        Required("time_mix_gate.weight", "n_embd, n_embd"),
        Optional("time_mix_key.bias", "n_head_kv*wkv_head"),
        Optional("time_mix_value.bias", "n_head_kv*wkv_head"),
        Optional("time_mix_receptance.bias", "n_embd"),
        Required("time_mix_output.weight", "n_embd, n_embd"),
        All(QWEN_NETWORK),
    ])],
    open: false,
};

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
    All(QWEN_NETWORK),
];

pub(super) static ARWKV7: Architecture = Architecture {
    name: "arwkv7",
    note: "Qwen 2 with its attention replaced by RWKV 7. A rank of 0 is no gate.",
    required: &[
        SIZES,
        RMS,
        &[
            "feed_forward_length",
            "wkv.head_size",
            "attention.decay_lora_rank",
            "attention.iclr_lora_rank",
            "attention.value_residual_mix_lora_rank",
            "attention.gate_lora_rank",
        ],
    ],
    optional: &[&["attention.head_count", "token_shift_count"]],
    defaults: &[],
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
    open: false,
};
