//! Bert: encoders for embeddings.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{self, All, OneOf, Optional, Required};
use crate::schema::groups::*;

const OPTIONAL: &[&[&str]] =
    &[HEADS, &["attention.causal", "pooling_type", "classifier.output_labels", "vocab_size"]];
const TYPES: &[Item] = &[Optional("token_types.weight", "n_embd, n_token_types")];
const ATTENTION: &[Item] = &[
    All(QKV),
    All(ATTN_OUTPUT),
    Optional("attn_output.bias", "n_embd"),
    Required("attn_output_norm.weight", "n_embd"),
    Required("attn_output_norm.bias", "n_embd"),
];
/// What comes with a feed-forward network, whatever its matrices.
const BIASES_AND_NORM: &[Item] = &[
    Optional("ffn_up.bias", "n_ff"),
    Optional("ffn_down.bias", "n_embd"),
    Required("layer_output_norm.weight", "n_embd"),
    Required("layer_output_norm.bias", "n_embd"),
];
const FEED_FORWARD: &[Item] = &[All(FFN), All(BIASES_AND_NORM)];

pub(super) static BERT: Architecture = Architecture {
    name: "bert",
    note: "",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: OPTIONAL,
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(TYPES),
        All(POSITIONS),
        All(EMBEDDING_NORM),
        Optional("cls.weight", "n_embd, n_embd"),
        Optional("cls.bias", "n_embd"),
        Optional("cls.output.weight", "n_embd, n_classes"),
        Optional("cls.output.bias", "n_classes"),
    ],
    blocks: &[layers(&[All(ATTENTION), All(FEED_FORWARD)])],
    open: false,
};

pub(super) static NOMIC_BERT: Architecture = Architecture {
    name: "nomic-bert",
    note: "Rotary positions, feed-forward with a gate.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE, &["attention.causal", "pooling_type", "vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(TYPES), All(EMBEDDING_NORM)],
    blocks: &[layers(&[
        All(ATTENTION),
        Required("ffn_gate.weight", "n_embd, n_ff"),
        All(FEED_FORWARD),
    ])],
    open: false,
};

/// The feed-forward network of some layers, experts in others.
const SOME_EXPERTS: &[Item] = &[
    OneOf(&[
        FFN,
        &[
            Required("ffn_gate_inp.weight", "n_embd, n_expert"),
            Required("ffn_up_exps.weight", "n_embd, n_ff, n_expert"),
            Required("ffn_down_exps.weight", "n_ff, n_embd, n_expert"),
        ],
    ]),
    All(BIASES_AND_NORM),
];

pub(super) static NOMIC_BERT_MOE: Architecture = Architecture {
    name: "nomic-bert-moe",
    note: "Rotary positions; every `moe_every_n_layers` layers there are experts.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        &["attention.causal", "pooling_type", "vocab_size", "moe_every_n_layers"],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(TYPES), All(EMBEDDING_NORM)],
    blocks: &[layers(&[All(ATTENTION), All(SOME_EXPERTS)])],
    open: false,
};

pub(super) static JINA_BERT_V2: Architecture = Architecture {
    name: "jina-bert-v2",
    note: "ALiBi of both sides with a bias of 8, without a key; feed-forward with a gate.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: OPTIONAL,
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(TYPES),
        All(EMBEDDING_NORM),
        Optional("cls.weight", "n_embd, 1"),
        Optional("cls.bias", "1"),
    ],
    blocks: &[layers(&[
        All(ATTENTION),
        Optional("attn_q_norm.weight", "n_embd"),
        Optional("attn_q_norm.bias", "n_embd"),
        Optional("attn_k_norm.weight", "n_embd"),
        Optional("attn_k_norm.bias", "n_embd"),
        Optional("attn_norm_2.weight", "n_embd"),
        Optional("attn_norm_2.bias", "n_embd"),
        // In older files gates stand apart, in newer ones above what they gate.
        Optional("ffn_gate.weight", "n_embd, n_ff"),
        Required("ffn_up.weight", "n_embd, untold"),
        Required("ffn_down.weight", "n_ff, n_embd"),
        All(BIASES_AND_NORM),
    ])],
    open: false,
};

pub(super) static JINA_BERT_V3: Architecture = Architecture {
    name: "jina-bert-v3",
    note: "Rotary positions, feed-forward without a gate.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE, &["attention.causal", "pooling_type", "vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(TYPES), All(EMBEDDING_NORM)],
    blocks: &[layers(&[All(ATTENTION), All(FEED_FORWARD)])],
    open: false,
};

pub(super) static MODERN_BERT: Architecture = Architecture {
    name: "modern-bert",
    note: "Rotary positions; of three layers all but the first have a window, unless a key says otherwise. The first layer has no norm before attention.",
    required: &[SIZES, TRANSFORMER],
    optional: &[
        NORM,
        RMS,
        HEADS,
        ROPE,
        WINDOW,
        &[
            "attention.causal",
            "pooling_type",
            "classifier.output_labels",
            "classifier.pooling_type",
            "vocab_size",
            "hidden_activation",
        ],
    ],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        Required("token_embd_norm.weight", "n_embd"),
        All(OUTPUT_NORM),
        Optional("cls.weight", "n_embd, n_embd"),
        Optional("cls.norm.weight", "n_embd"),
        Optional("cls.output.weight", "n_embd, n_classes"),
        Optional("cls.output.bias", "n_classes"),
    ],
    blocks: &[layers(&[
        Optional("attn_norm.weight", "n_embd"),
        All(FUSED_QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(FUSED_GATED_FFN),
    ])],
    open: false,
};

pub(super) static EUROBERT: Architecture = Architecture {
    name: "eurobert",
    note: "As llama, every token sees all others.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[
        HEADS,
        ROPE,
        &["attention.causal", "pooling_type", "classifier.pooling_type", "vocab_size"],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    open: false,
};

pub(super) static NEO_BERT: Architecture = Architecture {
    name: "neo-bert",
    note: "Rotary positions, norms in front, feed-forward with a gate in one matrix.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[
        HEADS,
        ROPE,
        &["attention.causal", "pooling_type", "classifier.output_labels", "vocab_size"],
    ],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        Required("enc.output_norm.weight", "n_embd"),
        Optional("cls.weight", "n_embd, n_embd"),
        Optional("cls.bias", "n_embd"),
        Optional("cls.output.weight", "n_embd, n_classes"),
        Optional("cls.output.bias", "n_classes"),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(FUSED_GATED_FFN),
    ])],
    open: false,
};
