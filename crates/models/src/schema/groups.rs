//! Groups of keys and tensors that many architectures share.

use crate::schema::architecture::Item::{
    self, All, Maybe, OneOf, Optional, Required, Unless, When,
};
use crate::schema::key;

/// Keys of every language model.
pub(crate) const SIZES: &[&str] = &[key::CONTEXT_LENGTH, key::EMBEDDING_LENGTH, key::BLOCK_COUNT];
/// Keys of a transformer.
pub(crate) const TRANSFORMER: &[&str] = &[key::FEED_FORWARD_LENGTH, key::ATTENTION_HEAD_COUNT];
/// Key of root mean square norms.
pub(crate) const RMS: &[&str] = &[key::ATTENTION_LAYER_NORM_RMS_EPSILON];
/// Key of norms with mean.
pub(crate) const NORM: &[&str] = &[key::ATTENTION_LAYER_NORM_EPSILON];
/// Keys of experts.
pub(crate) const EXPERT_KEYS: &[&str] = &[key::EXPERT_COUNT, key::EXPERT_USED_COUNT];
/// Optional keys of attention.
pub(crate) const HEADS: &[&str] =
    &[key::ATTENTION_HEAD_COUNT_KV, key::ATTENTION_KEY_LENGTH, key::ATTENTION_VALUE_LENGTH];
/// Optional keys of rotary embedding.
pub(crate) const ROPE: &[&str] = &[
    key::ROPE_DIMENSION_COUNT,
    key::ROPE_FREQ_BASE,
    key::ROPE_SCALING_TYPE,
    key::ROPE_SCALING_FACTOR,
    key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH,
    key::ROPE_SCALING_FINETUNED,
    key::ROPE_SCALING_ATTN_FACTOR,
    key::ROPE_SCALING_YARN_LOG_MULTIPLIER,
    key::ROPE_SCALING_YARN_EXT_FACTOR,
    key::ROPE_SCALING_YARN_ATTN_FACTOR,
    key::ROPE_SCALING_YARN_BETA_FAST,
    key::ROPE_SCALING_YARN_BETA_SLOW,
];
/// Optional keys of sliding windows.
pub(crate) const WINDOW: &[&str] = &[
    key::ATTENTION_SLIDING_WINDOW,
    key::ATTENTION_SLIDING_WINDOW_PATTERN,
    key::ROPE_FREQ_BASE_SWA,
];
/// Keys of state spaces.
pub(crate) const STATE_SPACE: &[&str] =
    &[key::SSM_CONV_KERNEL, key::SSM_INNER_SIZE, key::SSM_STATE_SIZE, key::SSM_TIME_STEP_RANK];

/// Token embedding.
pub(crate) const EMBEDDING: &[Item] = &[Required("token_embd.weight", "n_embd, n_vocab")];
/// Norm of the embedding.
pub(crate) const EMBEDDING_NORM: &[Item] =
    &[Required("token_embd_norm.weight", "n_embd"), Required("token_embd_norm.bias", "n_embd")];
/// Learned positions.
pub(crate) const POSITIONS: &[Item] = &[Required("position_embd.weight", "n_embd, n_ctx")];
/// Final norm.
pub(crate) const OUTPUT_NORM: &[Item] = &[Required("output_norm.weight", "n_embd")];
/// Final norm with bias.
pub(crate) const OUTPUT_NORM_BIAS: &[Item] =
    &[Required("output_norm.weight", "n_embd"), Required("output_norm.bias", "n_embd")];
/// Output matrix.
pub(crate) const OUTPUT: &[Item] = &[Required("output.weight", "n_embd, n_vocab")];
/// Output matrix that may be the token embedding.
pub(crate) const TIED_OUTPUT: &[Item] = &[Optional("output.weight", "n_embd, n_vocab")];
/// Factors of rotary frequencies, for contexts longer and shorter than the original one.
pub(crate) const LONG_ROPE: &[Item] = &[
    Optional("rope_factors_long.weight", "n_rot/2"),
    Optional("rope_factors_short.weight", "n_rot/2"),
];
/// Factors of rotary frequencies of either kind.
pub(crate) const ROPE_FACTORS: &[Item] =
    &[Optional("rope_freqs.weight", "n_rot/2"), All(LONG_ROPE)];

/// Norm before attention.
pub(crate) const ATTN_NORM: &[Item] = &[Required("attn_norm.weight", "n_embd")];
/// Norm with bias before attention.
pub(crate) const ATTN_NORM_BIAS: &[Item] =
    &[Required("attn_norm.weight", "n_embd"), Required("attn_norm.bias", "n_embd")];
/// Queries, keys and values, in one matrix or three.
pub(crate) const QKV: &[Item] = &[
    OneOf(&[
        &[Required("attn_qkv.weight", "n_embd, n_q + n_k + n_v")],
        &[
            Required("attn_q.weight", "n_embd, n_q"),
            Required("attn_k.weight", "n_embd, n_k"),
            Required("attn_v.weight", "n_embd, n_v"),
        ],
    ]),
    Optional("attn_qkv.bias", "n_q + n_k + n_v"),
    Optional("attn_q.bias", "n_q"),
    Optional("attn_k.bias", "n_k"),
    Optional("attn_v.bias", "n_v"),
];
/// Queries, keys and values in one matrix.
pub(crate) const FUSED_QKV: &[Item] = &[Required("attn_qkv.weight", "n_embd, n_q + n_k + n_v")];
/// The same with bias.
pub(crate) const FUSED_QKV_BIAS: &[Item] =
    &[All(FUSED_QKV), Required("attn_qkv.bias", "n_q + n_k + n_v")];
/// What the heads are joined by.
pub(crate) const ATTN_OUTPUT: &[Item] = &[Required("attn_output.weight", "n_q, n_embd")];
/// The same with bias.
pub(crate) const ATTN_OUTPUT_BIAS: &[Item] =
    &[All(ATTN_OUTPUT), Required("attn_output.bias", "n_embd")];
/// Norms of each head's queries and keys.
pub(crate) const HEAD_NORMS: &[Item] =
    &[Required("attn_q_norm.weight", "head_k"), Required("attn_k_norm.weight", "head_k")];
/// Norms that every head has for itself.
pub(crate) const EACH_HEAD_NORMS: &[Item] = &[
    Optional("attn_q_norm.weight", "head_k, n_head"),
    Optional("attn_k_norm.weight", "head_k, n_head_kv"),
];
/// Norms after attention and after feed-forward.
pub(crate) const POST_NORMS: &[Item] =
    &[Required("post_attention_norm.weight", "n_embd"), Required("post_ffw_norm.weight", "n_embd")];

/// Norm before feed-forward.
pub(crate) const FFN_NORM: &[Item] = &[Required("ffn_norm.weight", "n_embd")];
/// Norm with bias before feed-forward.
pub(crate) const FFN_NORM_BIAS: &[Item] =
    &[Required("ffn_norm.weight", "n_embd"), Required("ffn_norm.bias", "n_embd")];
/// Feed-forward with a gate.
pub(crate) const GATED_FFN: &[Item] = &[
    Required("ffn_gate.weight", "n_embd, n_ff"),
    Required("ffn_up.weight", "n_embd, n_ff"),
    Required("ffn_down.weight", "n_ff, n_embd"),
];
/// Feed-forward with gate and input in one matrix.
pub(crate) const FUSED_GATED_FFN: &[Item] =
    &[Required("ffn_up.weight", "n_embd, 2*n_ff"), Required("ffn_down.weight", "n_ff, n_embd")];
/// Feed-forward without gate.
pub(crate) const FFN: &[Item] =
    &[Required("ffn_up.weight", "n_embd, n_ff"), Required("ffn_down.weight", "n_ff, n_embd")];
/// The same with bias.
pub(crate) const FFN_BIAS: &[Item] =
    &[All(FFN), Required("ffn_up.bias", "n_ff"), Required("ffn_down.bias", "n_embd")];
/// Experts of the width of the feed-forward layer, with those shared by all tokens, if any.
pub(crate) const LLAMA_EXPERTS: &[Item] = &[
    Required("ffn_gate_inp.weight", "n_embd, n_expert"),
    Optional("ffn_gate_exps.weight", "n_embd, n_ff, n_expert"),
    Required("ffn_up_exps.weight", "n_embd, n_ff, n_expert"),
    Required("ffn_down_exps.weight", "n_ff, n_embd, n_expert"),
    When(
        "n_ff_shared_or_0",
        &[
            Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared_or_0"),
            Required("ffn_up_shexp.weight", "n_embd, n_ff_shared_or_0"),
            Required("ffn_down_shexp.weight", "n_ff_shared_or_0, n_embd"),
        ],
    ),
];
/// Experts of a width of their own.
pub(crate) const EXPERTS: &[Item] = &[
    Required("ffn_gate_inp.weight", "n_embd, n_expert"),
    Required("ffn_gate_exps.weight", "n_embd, n_ff_exp, n_expert"),
    Required("ffn_up_exps.weight", "n_embd, n_ff_exp, n_expert"),
    Required("ffn_down_exps.weight", "n_ff_exp, n_embd, n_expert"),
];

/// Experts of a width of their own, chosen with a bias, beside those that are always asked.
pub(crate) const ROUTED_EXPERTS: &[Item] = &[
    All(EXPERTS),
    Optional("exp_probs_b.bias", "n_expert"),
    When(
        "n_expert_shared",
        &[
            Required("ffn_gate_shexp.weight", "n_embd, n_ff_exp*n_expert_shared"),
            Required("ffn_up_shexp.weight", "n_embd, n_ff_exp*n_expert_shared"),
            Required("ffn_down_shexp.weight", "n_ff_exp*n_expert_shared, n_embd"),
        ],
    ),
];
/// Optional keys of such experts.
pub(crate) const ROUTED_KEYS: &[&str] = &[
    key::LEADING_DENSE_BLOCK_COUNT,
    key::EXPERT_SHARED_COUNT,
    key::EXPERT_FEED_FORWARD_LENGTH,
    key::EXPERT_WEIGHTS_SCALE,
    key::EXPERT_WEIGHTS_NORM,
    key::EXPERT_GATING_FUNC,
    key::EXPERT_GROUP_COUNT,
    key::EXPERT_GROUP_USED_COUNT,
];

/// A pre-norm layer with attention and SwiGLU.
pub(crate) const SWIGLU_LAYER: &[Item] =
    &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)];

/// A layer as in llama.
pub(crate) const LLAMA_LAYER: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    All(ATTN_OUTPUT),
    Optional("attn_output.bias", "n_embd"),
    All(FFN_NORM),
    Unless(
        "n_expert",
        &[
            All(GATED_FFN),
            Maybe(&[
                Required("ffn_gate.bias", "n_ff"),
                Required("ffn_up.bias", "n_ff"),
                Required("ffn_down.bias", "n_embd"),
            ]),
        ],
    ),
    When("n_expert", LLAMA_EXPERTS),
];
/// A model as in llama, but for the layers.
pub(crate) const LLAMA_TENSORS: &[Item] =
    &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT), All(ROPE_FACTORS)];
/// A layer with norms with bias, biases everywhere, and queries, keys and values in one matrix.
pub(crate) const GPT_LAYER: &[Item] = &[
    All(ATTN_NORM_BIAS),
    All(FUSED_QKV_BIAS),
    All(ATTN_OUTPUT_BIAS),
    All(FFN_NORM_BIAS),
    All(FFN_BIAS),
];
/// Tensors of layers that guess further tokens.
pub(crate) const NEXT_TOKENS: &[Item] = &[
    Required("nextn.eh_proj.weight", "2*n_embd, n_embd"),
    Required("nextn.enorm.weight", "n_embd"),
    Required("nextn.hnorm.weight", "n_embd"),
    Optional("nextn.embed_tokens.weight", "n_embd, n_vocab"),
    Optional("nextn.shared_head_head.weight", "n_embd, n_vocab"),
    Optional("nextn.shared_head_norm.weight", "n_embd"),
];

/// Attention with an optional bias of the output projection.
pub(crate) const HYBRID_ATTENTION: &[Item] =
    &[All(QKV), All(ATTN_OUTPUT), Optional("attn_output.bias", "n_embd")];
/// Mamba 2 mixer.
pub(crate) const MAMBA2: &[Item] =
    &[All(MAMBA2_WITHOUT_NORM), Required("ssm_norm.weight", "d_inner/n_group, n_group")];
/// Mamba 2 mixer without its norm.
pub(crate) const MAMBA2_WITHOUT_NORM: &[Item] = &[
    Required("ssm_in.weight", "n_embd, 2*d_inner + 2*n_group*d_state + dt_rank"),
    Required("ssm_conv1d.weight", "d_conv, d_inner + 2*n_group*d_state"),
    Optional("ssm_conv1d.bias", "d_inner + 2*n_group*d_state"),
    Required("ssm_dt.bias", "dt_rank"),
    Required("ssm_a", "1, dt_rank"),
    Required("ssm_d", "1, dt_rank"),
    Required("ssm_out.weight", "d_inner, n_embd"),
];
/// Hyper-connections with Sinkhorn normalization of attention and FFN: function, base and scale of the weights
/// before and after the block and between residual streams.
pub(crate) const SINKHORN_HYPER_CONNECTIONS: &[Item] = &[
    Required("hc_attn_fn.weight", "n_hyper*n_embd, 2*n_hyper + n_hyper*n_hyper"),
    Required("hc_attn_base.weight", "2*n_hyper + n_hyper*n_hyper"),
    Required("hc_attn_scale.weight", "3"),
    Required("hc_ffn_fn.weight", "n_hyper*n_embd, 2*n_hyper + n_hyper*n_hyper"),
    Required("hc_ffn_base.weight", "2*n_hyper + n_hyper*n_hyper"),
    Required("hc_ffn_scale.weight", "3"),
];
