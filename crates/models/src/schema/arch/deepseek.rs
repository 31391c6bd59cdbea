//! DeepSeek, and Bailing's models after it: experts after some dense layers.

use crate::schema::architecture::Item::{
    self, All, Maybe, OneOf, Optional, Required, Unless, When,
};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;

const ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    When(
        "q_rank",
        &[
            Required("attn_q_a.weight", "n_embd, q_rank"),
            Required("attn_q_a_norm.weight", "q_rank"),
            Required("attn_q_b.weight", "q_rank, n_head*mla_k"),
        ],
    ),
    Unless("q_rank", &[Required("attn_q.weight", "n_embd, n_head*mla_k")]),
    Required("attn_kv_a_mqa.weight", "n_embd, kv_rank + n_rot"),
    Required("attn_kv_a_norm.weight", "kv_rank"),
    When(
        "mla",
        &[
            Required("attn_k_b.weight", "mla_k - n_rot, kv_rank, n_head"),
            Required("attn_v_b.weight", "kv_rank, mla_v, n_head"),
        ],
    ),
    // Files from before 2025 have both in one matrix.
    Unless(
        "mla",
        &[Required("attn_kv_b.weight", "kv_rank, n_head*mla_k + n_head*mla_v - n_head*n_rot")],
    ),
    Required("attn_output.weight", "n_head*mla_v, n_embd"),
    All(FFN_NORM),
];
const EXPERT_FFN: &[Item] = &[
    Required("ffn_gate_inp.weight", "n_embd, n_expert"),
    OneOf(&[
        &[
            Required("ffn_gate_exps.weight", "n_embd, n_ff_exp, n_expert"),
            Required("ffn_up_exps.weight", "n_embd, n_ff_exp, n_expert"),
        ],
        &[Required("ffn_gate_up_exps.weight", "n_embd, 2*n_ff_exp, n_expert")],
    ]),
    Required("ffn_down_exps.weight", "n_ff_exp, n_embd, n_expert"),
    Optional("exp_probs_b.bias", "n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_exp*n_expert_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_exp*n_expert_shared"),
    Required("ffn_down_shexp.weight", "n_ff_exp*n_expert_shared, n_embd"),
];

const FIRST_ATTENTION: &[Item] = &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM)];

pub(super) static DEEPSEEK: Architecture = Architecture {
    name: "deepseek",
    note: "The first generation, with attention as in llama.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["expert_shared_count"]],
    optional: &[HEADS, ROPE, ROUTED_KEYS, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(FIRST_ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_layer",
            items: &[All(FIRST_ATTENTION), All(ROUTED_EXPERTS)],
        },
    ],
    open: false,
};

pub(super) static BAILING_MOE: Architecture = Architecture {
    name: "bailingmoe",
    note: "Ling and Ring, the first generation.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["expert_shared_count"]],
    optional: &[HEADS, ROPE, ROUTED_KEYS, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[Block {
        prefix: "blk.",
        from: "0",
        to: "n_layer",
        items: &[All(FIRST_ATTENTION), All(ROUTED_EXPERTS)],
    }],
    open: false,
};

const BAILING_ATTENTION: &[Item] =
    &[All(ATTN_NORM), All(FUSED_QKV), All(ATTN_OUTPUT), All(HEAD_NORMS), All(FFN_NORM)];

pub(super) static BAILING_MOE2: Architecture = Architecture {
    name: "bailingmoe2",
    note: "Ling and Ring, the second generation.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        &["expert_shared_count", "expert_gating_func"],
    ],
    optional: &[
        HEADS,
        ROPE,
        ROUTED_KEYS,
        &["vocab_size", "expert_shared_feed_forward_length", "nextn_predict_layers"],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(BAILING_ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(BAILING_ATTENTION), All(SHARED_WIDTH_EXPERTS)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[
                Maybe(BAILING_ATTENTION),
                Maybe(SHARED_WIDTH_EXPERTS),
                Maybe(NEXT_TOKENS),
                Optional("layer_output_norm.weight", "n_embd"),
            ],
        },
    ],
    open: false,
};

/// Experts beside those that are always asked, which have a width of their own.
const SHARED_WIDTH_EXPERTS: &[Item] = &[
    All(EXPERTS),
    Optional("exp_probs_b.bias", "n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];

pub(super) static DEEPSEEK2: Architecture = Architecture {
    name: "deepseek2",
    note: "Also DeepSeek 3, Kimi K2 and GLM 4.7 Flash.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        &["attention.kv_lora_rank", "expert_feed_forward_length", "expert_shared_count"],
    ],
    optional: &[
        HEADS,
        ROPE,
        &[
            "vocab_size",
            "leading_dense_block_count",
            "attention.q_lora_rank",
            "attention.key_length_mla",
            "attention.value_length_mla",
            "expert_weights_scale",
            "expert_weights_norm",
            "expert_gating_func",
            "expert_group_count",
            "expert_group_used_count",
            "nextn_predict_layers",
            "attention.temperature_scale",
            "attention.temperature_length",
        ],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(ATTENTION), All(EXPERT_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(ATTENTION), Maybe(EXPERT_FFN), Maybe(NEXT_TOKENS)],
        },
    ],
    open: false,
};

pub(super) static MISTRAL4: Architecture = Architecture {
    name: "mistral4",
    note: "As deepseek2, with attention that sharpens on long texts.",
    ..DEEPSEEK2
};

const INDEXER: &[Item] = &[
    Required("indexer.attn_q_b.weight", "q_rank, index_heads*index_dim"),
    Required("indexer.attn_k.weight", "n_embd, index_dim"),
    Required("indexer.k_norm.weight", "index_dim"),
    Required("indexer.k_norm.bias", "index_dim"),
    Required("indexer.proj.weight", "n_embd, index_heads"),
];
const INDEXER_KEYS: &[&str] = &[
    "attention.indexer.head_count",
    "attention.indexer.key_length",
    "attention.indexer.top_k",
    "attention.q_lora_rank",
];

pub(super) static DEEPSEEK32: Architecture = Architecture {
    name: "deepseek32",
    note: "DeepSeek 3.2: as deepseek2, with an indexer that chooses the tokens to attend to.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        &["attention.kv_lora_rank", "expert_feed_forward_length", "expert_shared_count"],
        INDEXER_KEYS,
    ],
    optional: DEEPSEEK2.optional,
    defaults: &[],
    tensors: DEEPSEEK2.tensors,
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(ATTENTION), All(INDEXER), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(ATTENTION), All(INDEXER), All(EXPERT_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(ATTENTION), Maybe(INDEXER), Maybe(EXPERT_FFN), Maybe(NEXT_TOKENS)],
        },
    ],
    open: false,
};

pub(super) static GLM_DSA: Architecture = Architecture {
    name: "glm-dsa",
    note: "GLM 5: as deepseek32, where some layers may share the tokens that one before them has chosen.",
    required: DEEPSEEK32.required,
    optional: &[
        HEADS,
        ROPE,
        ROUTED_KEYS,
        &[
            "vocab_size",
            "attention.key_length_mla",
            "attention.value_length_mla",
            "nextn_predict_layers",
            "attention.indexer.types",
        ],
    ],
    defaults: &[],
    tensors: DEEPSEEK2.tensors,
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(ATTENTION), Maybe(INDEXER), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(ATTENTION), Maybe(INDEXER), All(EXPERT_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(ATTENTION), Maybe(INDEXER), Maybe(EXPERT_FFN), Maybe(NEXT_TOKENS)],
        },
    ],
    open: false,
};

/// Delta attention, whose queries, keys and values pass convolutions of their own.
const DELTA: &[Item] = &[
    Required("attn_q.weight", "n_embd, n_head*kda_head"),
    Required("attn_k.weight", "n_embd, n_head*kda_head"),
    Required("attn_v.weight", "n_embd, n_head*kda_head"),
    Required("attn_output.weight", "n_head*kda_head, n_embd"),
    Required("ssm_conv1d_q.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_conv1d_k.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_conv1d_v.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_f_a.weight", "n_embd, kda_head"),
    Required("ssm_f_b.weight", "kda_head, n_head*kda_head"),
    Required("ssm_g_a.weight", "n_embd, kda_head"),
    Required("ssm_g_b.weight", "kda_head, n_head*kda_head"),
    Required("ssm_beta.weight", "n_embd, n_head"),
    Required("ssm_a", "1, n_head"),
    Required("ssm_dt.bias", "n_head*kda_head"),
    Required("ssm_norm.weight", "kda_head"),
    All(ATTN_NORM),
    All(FFN_NORM),
];

pub(super) static KIMI_LINEAR: Architecture = Architecture {
    name: "kimi-linear",
    note: "Layers without heads of keys and values have delta attention.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        &["attention.kv_lora_rank", "ssm.conv_kernel", "kda.head_dim"],
    ],
    optional: &[
        HEADS,
        ROPE,
        ROUTED_KEYS,
        &[
            "vocab_size",
            "attention.q_lora_rank",
            "attention.key_length_mla",
            "attention.value_length_mla",
        ],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[When("n_head_kv", ATTENTION), Unless("n_head_kv", DELTA), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_layer",
            items: &[When("n_head_kv", ATTENTION), Unless("n_head_kv", DELTA), All(ROUTED_EXPERTS)],
        },
    ],
    open: false,
};

/// What mixes the streams of the residual in front of a layer's part: twice as many numbers as there are streams.
const STREAMS: &[Item] = &[
    Required("hc_attn_fn.weight", "n_hyper*n_embd, 2*n_hyper"),
    Required("hc_attn_base.weight", "2*n_hyper"),
    Required("hc_attn_scale.weight", "2"),
    Required("hc_ffn_fn.weight", "n_hyper*n_embd, 2*n_hyper"),
    Required("hc_ffn_base.weight", "2*n_hyper"),
    Required("hc_ffn_scale.weight", "2"),
];
const HY_V4_ATTENTION: &[Item] = &[
    All(ATTENTION),
    Required("attn_sinks.weight", "n_head"),
    Required("attn_gate.weight", "n_embd, n_head*mla_v"),
    Maybe(INDEXER),
    All(STREAMS),
];

pub(super) static HY_V4: Architecture = Architecture {
    name: "hy_v4",
    note: "Hunyuan 4: as glm-dsa, with gates and sinks in attention and several streams of the residual.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        &[
            "attention.kv_lora_rank",
            "expert_feed_forward_length",
            "expert_shared_count",
            "hyper_connection.count",
            "hyper_connection.epsilon",
            "hyper_connection.magnitude",
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        ROUTED_KEYS,
        INDEXER_KEYS,
        &[
            "vocab_size",
            "attention.key_length_mla",
            "attention.value_length_mla",
            "attention.indexer.types",
            "swiglu_clamp_exp",
        ],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT), All(STREAMS_OF_OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(HY_V4_ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_layer",
            items: &[All(HY_V4_ATTENTION), All(EXPERT_FFN)],
        },
    ],
    open: false,
};

/// Delta attention as in Kimi Linear, with gates and decays that are not compressed.
const WIDE_DELTA: &[Item] = &[
    All(ATTN_NORM),
    Required("attn_q.weight", "n_embd, n_head*kda_head"),
    Required("attn_k.weight", "n_embd, n_head*kda_head"),
    Required("attn_v.weight", "n_embd, n_head*kda_head"),
    Required("attn_output.weight", "n_head*kda_head, n_embd"),
    Required("ssm_conv1d_q.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_conv1d_k.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_conv1d_v.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_f_a.weight", "n_embd, n_head*kda_head"),
    Required("ssm_g_a.weight", "n_embd, n_head*kda_head"),
    Required("ssm_beta.weight", "n_embd, n_head"),
    Required("ssm_a", "1, n_head"),
    Required("ssm_dt.bias", "n_head*kda_head"),
    Required("ssm_norm.weight", "kda_head"),
    All(FFN_NORM),
];
const BY_HEADS: &[Item] = &[
    When("n_head_kv", &[All(ATTENTION), Required("attn_gate.weight", "n_embd, n_head")]),
    Unless("n_head_kv", WIDE_DELTA),
];
const LING_EXPERTS: &[Item] = &[
    All(EXPERTS),
    Optional("exp_probs_b.bias", "n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];

pub(super) static BAILING_MOE3: Architecture = Architecture {
    name: "bailingmoe3",
    note: "Ling, the third generation. Layers without heads of keys and values have delta attention.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        &["attention.kv_lora_rank", "ssm.conv_kernel", "kda.head_dim", "kda.gate_lower_bound"],
    ],
    optional: &[
        HEADS,
        ROPE,
        ROUTED_KEYS,
        &[
            "vocab_size",
            "kda.safe_gate",
            "attention.q_lora_rank",
            "attention.key_length_mla",
            "attention.value_length_mla",
            "expert_shared_feed_forward_length",
            "swiglu_clamp_exp",
            "swiglu_clamp_shexp",
            "nextn_predict_layers",
            "rope.dimension_sections",
        ],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block { prefix: "blk.", from: "0", to: "n_dense", items: &[All(BY_HEADS), All(GATED_FFN)] },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(BY_HEADS), All(LING_EXPERTS)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[
                Maybe(BY_HEADS),
                Maybe(LING_EXPERTS),
                Maybe(NEXT_TOKENS),
                Optional("layer_output_norm.weight", "n_embd"),
            ],
        },
    ],
    open: false,
};

const KPOOL_INDEXER: &[Item] = &[
    All(INDEXER),
    Required("indexer_compressor_gate.weight", "n_embd, index_dim"),
    Required("indexer_compressor_ape.weight", "index_dim, n_kpool"),
];
/// Delta attention as in Kimi Linear, where decays are no matrix.
const FLAT_DELTA: &[Item] = &[
    All(ATTN_NORM),
    Required("attn_q.weight", "n_embd, n_head*kda_head"),
    Required("attn_k.weight", "n_embd, n_head*kda_head"),
    Required("attn_v.weight", "n_embd, n_head*kda_head"),
    Required("attn_output.weight", "n_head*kda_head, n_embd"),
    Required("ssm_conv1d_q.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_conv1d_k.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_conv1d_v.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_f_a.weight", "n_embd, kda_head"),
    Required("ssm_f_b.weight", "kda_head, n_head*kda_head"),
    Required("ssm_g_a.weight", "n_embd, kda_head"),
    Required("ssm_g_b.weight", "kda_head, n_head*kda_head"),
    Required("ssm_beta.weight", "n_embd, n_head"),
    Required("ssm_a", "n_head"),
    Required("ssm_dt.bias", "n_head*kda_head"),
    Required("ssm_norm.weight", "kda_head"),
    All(FFN_NORM),
];
/// What mixes streams and balances the mix: for each a number before, a number after, and one for each other.
const BALANCED_STREAMS: &[Item] = &[
    Required("hc_attn_fn.weight", "n_hyper*n_embd, 2*n_hyper + n_hyper*n_hyper"),
    Required("hc_attn_base.weight", "2*n_hyper + n_hyper*n_hyper"),
    Required("hc_attn_scale.weight", "3"),
    Required("hc_ffn_fn.weight", "n_hyper*n_embd, 2*n_hyper + n_hyper*n_hyper"),
    Required("hc_ffn_base.weight", "2*n_hyper + n_hyper*n_hyper"),
    Required("hc_ffn_scale.weight", "3"),
];
const GLM5_ATTENTION: &[Item] = &[
    When("n_head_kv", &[All(ATTENTION), Maybe(KPOOL_INDEXER)]),
    Unless("n_head_kv", FLAT_DELTA),
    All(BALANCED_STREAMS),
];

pub(super) static GLM5_NEXT: Architecture = Architecture {
    name: "glm5-next",
    note: "GLM 5.3. Layers without heads of keys and values have delta attention.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        INDEXER_KEYS,
        &[
            "attention.kv_lora_rank",
            "attention.key_length_mla",
            "attention.value_length_mla",
            "attention.indexer.kpool",
            "ssm.conv_kernel",
            "kda.head_dim",
            "hyper_connection.count",
            "hyper_connection.sinkhorn_iterations",
            "hyper_connection.epsilon",
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        NORM,
        ROUTED_KEYS,
        &[
            "vocab_size",
            "kda.gate_lower_bound",
            "attention.indexer.kpool_select_tail",
            "attention.indexer.types",
            "swiglu_clamp_exp",
            "swiglu_clamp_shexp",
            "nextn_predict_layers",
        ],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(GLM5_ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(GLM5_ATTENTION), All(EXPERT_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(ATTENTION), Maybe(KPOOL_INDEXER), Maybe(EXPERT_FFN), Maybe(NEXT_TOKENS)],
        },
    ],
    open: false,
};

const DOTS3_WINDOWED: &[Item] = &[
    Required("attn_q_b.weight", "q_rank, n_head*mla_k_swa"),
    Required("attn_kv_a_mqa.weight", "n_embd, kv_rank_swa + n_rot"),
    Required("attn_kv_a_norm.weight", "kv_rank_swa"),
    Required("attn_k_b.weight", "mla_k_swa - n_rot, kv_rank_swa, n_head"),
    Required("attn_v_b.weight", "kv_rank_swa, mla_v_swa, n_head"),
    Required("attn_output.weight", "n_head*mla_v_swa, n_embd"),
];
const DOTS3_INDEXED: &[Item] = &[
    Required("attn_q_b.weight", "q_rank, n_head*mla_k"),
    Required("attn_kv_a_mqa.weight", "n_embd, kv_rank + n_rot"),
    Required("attn_kv_a_norm.weight", "kv_rank"),
    Required("attn_k_b.weight", "mla_k - n_rot, kv_rank, n_head"),
    Required("attn_v_b.weight", "kv_rank, mla_v, n_head"),
    Required("attn_output.weight", "n_head*mla_v, n_embd"),
    All(INDEXER),
];
const DOTS3_EVERY: &[Item] = &[
    All(ATTN_NORM),
    Required("attn_q_a.weight", "n_embd, q_rank"),
    Required("attn_q_a_norm.weight", "q_rank"),
    Required("attn_k_norm.weight", "n_rot"),
    Required("attn_gate.weight", "n_embd, n_head"),
    All(FFN_NORM),
];
const DOTS3_ATTENTION: &[Item] =
    &[All(DOTS3_EVERY), When("windowed", DOTS3_WINDOWED), Unless("windowed", DOTS3_INDEXED)];

pub(super) static DOTS3_NOTE: Architecture = Architecture {
    name: "dots3note",
    note: "dots 3. Layers have a window or an indexer, and compressed attention of other widths.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        INDEXER_KEYS,
        &[
            "attention.kv_lora_rank",
            "attention.kv_lora_rank_swa",
            "attention.key_length_mla_swa",
            "attention.value_length_mla_swa",
            "attention.sliding_window",
            "attention.sliding_window_pattern",
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        ROUTED_KEYS,
        &[
            "vocab_size",
            "rope.freq_base_swa",
            "attention.key_length_mla",
            "attention.value_length_mla",
            "attention.key_length_swa",
            "attention.value_length_swa",
            "attention.indexer.types",
            "nextn_predict_layers",
        ],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(DOTS3_ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(DOTS3_ATTENTION), All(EXPERT_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[
                Maybe(DOTS3_EVERY),
                Maybe(DOTS3_WINDOWED),
                Maybe(GATED_FFN),
                Maybe(NEXT_TOKENS),
            ],
        },
    ],
    open: false,
};

const K3_DELTA: &[Item] = &[
    All(ATTN_NORM),
    Required("attn_q.weight", "n_embd, n_head*kda_head"),
    Required("attn_k.weight", "n_embd, n_head*kda_head"),
    Required("attn_v.weight", "n_embd, n_head*kda_head"),
    Required("attn_output.weight", "n_head*kda_head, n_embd"),
    Required("ssm_conv1d_q.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_conv1d_k.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_conv1d_v.weight", "d_conv, 1, n_head*kda_head"),
    Required("ssm_f_a.weight", "n_embd, kda_head"),
    Required("ssm_f_b.weight", "kda_head, n_head*kda_head"),
    Required("ssm_g.weight", "n_embd, n_head*kda_head"),
    Required("ssm_beta.weight", "n_embd, n_head"),
    Required("ssm_a", "n_head"),
    Required("ssm_dt.bias", "n_head*kda_head"),
    Required("ssm_norm.weight", "kda_head"),
    All(FFN_NORM),
];
const K3_ATTENTION: &[Item] = &[
    When("n_head_kv", &[All(ATTENTION), Optional("attn_gate.weight", "n_embd, n_head*mla_v")]),
    Unless("n_head_kv", K3_DELTA),
    Required("attn_res_score.weight", "n_embd"),
    Required("ffn_res_score.weight", "n_embd"),
];
const K3_EXPERTS: &[Item] = &[
    Required("ffn_gate_inp.weight", "n_embd, n_expert"),
    Optional("exp_probs_b.bias", "n_expert"),
    Required("ffn_gate_exps.weight", "n_latent_exp, n_ff_exp, n_expert"),
    Required("ffn_up_exps.weight", "n_latent_exp, n_ff_exp, n_expert"),
    Required("ffn_down_exps.weight", "n_ff_exp, n_latent_exp, n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_exp*n_expert_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_exp*n_expert_shared"),
    Required("ffn_down_shexp.weight", "n_ff_exp*n_expert_shared, n_embd"),
    Optional("ffn_routed_down.weight", "n_embd, n_latent_exp"),
    Optional("ffn_routed_up.weight", "n_latent_exp, n_embd"),
    Optional("ffn_routed_norm.weight", "untold"),
];

pub(super) static KIMI_K3: Architecture = Architecture {
    name: "kimi-k3",
    note: "As kimi-linear; layers attend to what earlier ones gave, and experts may read less than the width.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        &[
            "attention.kv_lora_rank",
            "ssm.conv_kernel",
            "kda.head_dim",
            "activation.situ_beta",
            "activation.situ_linear_beta",
            "attn_res.block_size",
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        ROUTED_KEYS,
        &[
            "vocab_size",
            "kda.gate_lower_bound",
            "attention.q_lora_rank",
            "attention.key_length_mla",
            "attention.value_length_mla",
            "expert_latent_length",
        ],
    ],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(OUTPUT),
        Required("output_res_score.weight", "n_embd"),
    ],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(K3_ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_layer",
            items: &[All(K3_ATTENTION), All(K3_EXPERTS)],
        },
    ],
    open: false,
};

/// Attention to tokens of which some layers compress several into one; `compress_ratio` says how many.
const COMPRESSED_TOKENS: &[Item] = &[
    All(ATTN_NORM),
    Required("attn_sinks.weight", "n_head"),
    Required("attn_q_a.weight", "n_embd, q_rank"),
    Required("attn_q_a_norm.weight", "q_rank"),
    Required("attn_q_b.weight", "q_rank, n_q"),
    Required("attn_kv.weight", "n_embd, head_k"),
    Required("attn_kv_a_norm.weight", "head_k"),
    Required("attn_output_a.weight", "n_q/n_out_group, out_rank*n_out_group"),
    Required("attn_output_b.weight", "out_rank*n_out_group, n_embd"),
    All(BALANCED_STREAMS),
];
/// Of tokens that are compressed, and of the indexer that chooses among them where they are many.
const COMPRESSOR: &[Item] = &[
    Required("attn_compressor_kv.weight", "n_embd, untold"),
    Required("attn_compressor_gate.weight", "n_embd, untold"),
    Required("attn_compressor_ape.weight", "untold, compress_ratio"),
    Required("attn_compressor_norm.weight", "head_k"),
    Maybe(&[
        Required("indexer.proj.weight", "n_embd, index_heads"),
        Required("indexer.attn_q_b.weight", "q_rank, index_heads*index_dim"),
        Required("indexer_compressor_kv.weight", "n_embd, 2*index_dim"),
        Required("indexer_compressor_gate.weight", "n_embd, 2*index_dim"),
        Required("indexer_compressor_ape.weight", "2*index_dim, compress_ratio"),
        Required("indexer_compressor_norm.weight", "index_dim"),
    ]),
];
const BIASED_EXPERTS: &[Item] =
    &[Required("exp_probs_b.bias", "n_expert"), All(EXPERTS_BESIDE_SHARED)];
const EXPERTS_BESIDE_SHARED: &[Item] = &[
    All(FFN_NORM),
    All(EXPERTS),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_exp*n_expert_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_exp*n_expert_shared"),
    Required("ffn_down_shexp.weight", "n_ff_exp*n_expert_shared, n_embd"),
];
/// A layer of the draft of DeepSeek 4.
pub(super) const DEEPSEEK4_DRAFT: &[Item] = &[All(COMPRESSED_TOKENS), All(BIASED_EXPERTS)];
/// What mixes the streams behind the last layer.
pub(super) const STREAMS_OF_OUTPUT: &[Item] = &[
    Required("output_hc_fn.weight", "n_hyper*n_embd, n_hyper"),
    Required("output_hc_base.weight", "n_hyper"),
    Required("output_hc_scale.weight", "1"),
];
const DEEPSEEK4_LAYER: &[Item] = &[
    All(COMPRESSED_TOKENS),
    When("compress_ratio", COMPRESSOR),
    Optional("exp_probs_b_vl.bias", "n_expert"),
];

pub(super) static DEEPSEEK4: Architecture = Architecture {
    name: "deepseek4",
    note: "Several tokens compressed into one, and several streams of the residual. The first layers choose experts by the token.",
    required: &[
        SIZES,
        RMS,
        EXPERT_KEYS,
        INDEXER_KEYS,
        &[
            "attention.head_count",
            "attention.sliding_window",
            "attention.output_group_count",
            "attention.output_lora_rank",
            "attention.compress_ratios",
            "attention.compress_rope_freq_base",
            "expert_feed_forward_length",
            "expert_shared_count",
            "expert_weights_scale",
            "expert_weights_norm",
            "expert_gating_func",
            "swiglu_clamp_exp",
            "hyper_connection.count",
            "hyper_connection.sinkhorn_iterations",
            "hyper_connection.epsilon",
            "hash_layer_count",
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        &[
            "vocab_size",
            "feed_forward_length",
            "embedding_length_out",
            "expert_group_count",
            "expert_group_used_count",
            "swiglu_clamp_shexp",
            "nextn_predict_layers",
        ],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT), All(STREAMS_OF_OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_hash",
            items: &[
                All(DEEPSEEK4_LAYER),
                Required("ffn_gate_tid2eid.weight", "n_expert_used, n_vocab"),
                All(EXPERTS_BESIDE_SHARED),
            ],
        },
        Block {
            prefix: "blk.",
            from: "n_hash",
            to: "n_trunk",
            items: &[All(DEEPSEEK4_LAYER), All(BIASED_EXPERTS)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[
                Maybe(COMPRESSED_TOKENS),
                Maybe(COMPRESSOR),
                Maybe(BIASED_EXPERTS),
                Maybe(NEXT_TOKENS),
            ],
        },
    ],
    open: false,
};
