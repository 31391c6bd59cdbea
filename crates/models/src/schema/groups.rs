//! Groups of keys and tensors that several architectures share.

use crate::schema::architecture::Item::{
    self, All, Maybe, OneOf, Optional, Required, Unless, When,
};
use crate::schema::key;

/// Required keys of every language model.
pub(crate) const SIZES: &[&str] = &[key::CONTEXT_LENGTH, key::EMBEDDING_LENGTH, key::BLOCK_COUNT];
/// Required keys of a transformer.
pub(crate) const TRANSFORMER: &[&str] = &[key::FEED_FORWARD_LENGTH, key::ATTENTION_HEAD_COUNT];
/// Required key of RMS norms.
pub(crate) const RMS_NORM: &[&str] = &[key::ATTENTION_LAYER_NORM_RMS_EPSILON];
/// Required key of layer norms.
pub(crate) const LAYER_NORM: &[&str] = &[key::ATTENTION_LAYER_NORM_EPSILON];
/// Required keys of a mixture of experts.
pub(crate) const EXPERT_KEYS: &[&str] = &[key::EXPERT_COUNT, key::EXPERT_USED_COUNT];
/// Optional keys of attention heads.
pub(crate) const HEADS: &[&str] =
    &[key::ATTENTION_HEAD_COUNT_KV, key::ATTENTION_KEY_LENGTH, key::ATTENTION_VALUE_LENGTH];
/// Optional keys of RoPE.
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
/// Optional keys of sliding-window attention.
pub(crate) const SLIDING_WINDOW: &[&str] = &[
    key::ATTENTION_SLIDING_WINDOW,
    key::ATTENTION_SLIDING_WINDOW_PATTERN,
    key::ROPE_FREQ_BASE_SWA,
];
/// Required keys of state-space models.
pub(crate) const SSM: &[&str] =
    &[key::SSM_CONV_KERNEL, key::SSM_INNER_SIZE, key::SSM_STATE_SIZE, key::SSM_TIME_STEP_RANK];

/// Token embedding.
pub(crate) const EMBEDDING: &[Item] = &[Required("token_embd.weight", "n_embd, n_vocab")];
/// Norm after the token embedding.
pub(crate) const EMBEDDING_NORM: &[Item] =
    &[Required("token_embd_norm.weight", "n_embd"), Required("token_embd_norm.bias", "n_embd")];
/// Learned absolute positions.
pub(crate) const POSITION_EMBEDDING: &[Item] = &[Required("position_embd.weight", "n_embd, n_ctx")];
/// Final norm.
pub(crate) const OUTPUT_NORM: &[Item] = &[Required("output_norm.weight", "n_embd")];
/// Final norm with bias.
pub(crate) const OUTPUT_NORM_BIAS: &[Item] =
    &[Required("output_norm.weight", "n_embd"), Required("output_norm.bias", "n_embd")];
/// Output projection (LM head).
pub(crate) const OUTPUT: &[Item] = &[Required("output.weight", "n_embd, n_vocab")];
/// Output projection; tied to the token embedding if missing.
pub(crate) const TIED_OUTPUT: &[Item] = &[Optional("output.weight", "n_embd, n_vocab")];
/// LongRoPE frequency factors for long and short contexts.
pub(crate) const LONG_ROPE: &[Item] = &[
    Optional("rope_factors_long.weight", "n_rot/2"),
    Optional("rope_factors_short.weight", "n_rot/2"),
];
/// RoPE frequency factors (Llama 3 or LongRoPE).
pub(crate) const ROPE_FACTORS: &[Item] =
    &[Optional("rope_freqs.weight", "n_rot/2"), All(LONG_ROPE)];

/// Pre-attention RMS norm.
pub(crate) const ATTN_NORM: &[Item] = &[Required("attn_norm.weight", "n_embd")];
/// Pre-attention layer norm.
pub(crate) const ATTN_NORM_BIAS: &[Item] =
    &[Required("attn_norm.weight", "n_embd"), Required("attn_norm.bias", "n_embd")];
/// Query, key and value projections, fused or separate.
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
/// Fused query, key and value projection.
pub(crate) const FUSED_QKV: &[Item] = &[Required("attn_qkv.weight", "n_embd, n_q + n_k + n_v")];
/// Fused query, key and value projection with bias.
pub(crate) const FUSED_QKV_BIAS: &[Item] =
    &[All(FUSED_QKV), Required("attn_qkv.bias", "n_q + n_k + n_v")];
/// Attention output projection.
pub(crate) const ATTN_OUTPUT: &[Item] = &[Required("attn_output.weight", "n_q, n_embd")];
/// Attention output projection with bias.
pub(crate) const ATTN_OUTPUT_BIAS: &[Item] =
    &[All(ATTN_OUTPUT), Required("attn_output.bias", "n_embd")];
/// QK norms over each head, with one weight vector for all heads.
pub(crate) const QK_NORMS: &[Item] =
    &[Required("attn_q_norm.weight", "head_k"), Required("attn_k_norm.weight", "head_k")];
/// QK norms with one weight vector per head.
pub(crate) const PER_HEAD_QK_NORMS: &[Item] = &[
    Optional("attn_q_norm.weight", "head_k, n_head"),
    Optional("attn_k_norm.weight", "head_k, n_head_kv"),
];
/// Norms after attention and after the FFN.
pub(crate) const POST_NORMS: &[Item] =
    &[Required("post_attention_norm.weight", "n_embd"), Required("post_ffw_norm.weight", "n_embd")];

/// Pre-FFN RMS norm.
pub(crate) const FFN_NORM: &[Item] = &[Required("ffn_norm.weight", "n_embd")];
/// Pre-FFN layer norm.
pub(crate) const FFN_NORM_BIAS: &[Item] =
    &[Required("ffn_norm.weight", "n_embd"), Required("ffn_norm.bias", "n_embd")];
/// Gated FFN.
pub(crate) const GATED_FFN: &[Item] = &[
    Required("ffn_gate.weight", "n_embd, n_ff"),
    Required("ffn_up.weight", "n_embd, n_ff"),
    Required("ffn_down.weight", "n_ff, n_embd"),
];
/// Gated FFN with gate and up projection in one matrix.
pub(crate) const FUSED_GATED_FFN: &[Item] =
    &[Required("ffn_up.weight", "n_embd, 2*n_ff"), Required("ffn_down.weight", "n_ff, n_embd")];
/// FFN without gate.
pub(crate) const FFN: &[Item] =
    &[Required("ffn_up.weight", "n_embd, n_ff"), Required("ffn_down.weight", "n_ff, n_embd")];
/// FFN with bias, without gate.
pub(crate) const FFN_BIAS: &[Item] =
    &[All(FFN), Required("ffn_up.bias", "n_ff"), Required("ffn_down.bias", "n_embd")];
/// MoE with experts of size `n_ff`, and shared experts if any.
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
/// MoE with experts of size `n_ff_exp`.
pub(crate) const EXPERTS: &[Item] = &[
    Required("ffn_gate_inp.weight", "n_embd, n_expert"),
    Required("ffn_gate_exps.weight", "n_embd, n_ff_exp, n_expert"),
    Required("ffn_up_exps.weight", "n_embd, n_ff_exp, n_expert"),
    Required("ffn_down_exps.weight", "n_ff_exp, n_embd, n_expert"),
];

/// MoE with experts of size `n_ff_exp`, a router bias and shared experts (DeepSeek).
pub(crate) const DEEPSEEK_MOE: &[Item] = &[
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
/// Optional keys of a DeepSeek MoE.
pub(crate) const DEEPSEEK_MOE_KEYS: &[&str] = &[
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

/// Llama layer.
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
/// Tensors of Llama outside of layers.
pub(crate) const LLAMA_TENSORS: &[Item] =
    &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT), All(ROPE_FACTORS)];
/// GPT-2 layer: layer norms, fused QKV and biases everywhere.
pub(crate) const GPT2_LAYER: &[Item] = &[
    All(ATTN_NORM_BIAS),
    All(FUSED_QKV_BIAS),
    All(ATTN_OUTPUT_BIAS),
    All(FFN_NORM_BIAS),
    All(FFN_BIAS),
];
/// Tensors of multi-token prediction (MTP) layers, besides those of a normal layer.
pub(crate) const MTP: &[Item] = &[
    Required("nextn.eh_proj.weight", "2*n_embd, n_embd"),
    Required("nextn.enorm.weight", "n_embd"),
    Required("nextn.hnorm.weight", "n_embd"),
    Optional("nextn.embed_tokens.weight", "n_embd, n_vocab"),
    Optional("nextn.shared_head_head.weight", "n_embd, n_vocab"),
    Optional("nextn.shared_head_norm.weight", "n_embd"),
];

/// Attention with an optional bias of the output projection (hybrid models).
pub(crate) const HYBRID_ATTENTION: &[Item] =
    &[All(QKV), All(ATTN_OUTPUT), Optional("attn_output.bias", "n_embd")];
/// Mamba-2 mixer.
pub(crate) const MAMBA2: &[Item] =
    &[All(MAMBA2_WITHOUT_NORM), Required("ssm_norm.weight", "d_inner/n_group, n_group")];
/// Mamba-2 mixer without the gated norm.
pub(crate) const MAMBA2_WITHOUT_NORM: &[Item] = &[
    Required("ssm_in.weight", "n_embd, 2*d_inner + 2*n_group*d_state + dt_rank"),
    Required("ssm_conv1d.weight", "d_conv, d_inner + 2*n_group*d_state"),
    Optional("ssm_conv1d.bias", "d_inner + 2*n_group*d_state"),
    Required("ssm_dt.bias", "dt_rank"),
    Required("ssm_a", "1, dt_rank"),
    Required("ssm_d", "1, dt_rank"),
    Required("ssm_out.weight", "d_inner, n_embd"),
];
/// Hyper-connections of attention and FFN with Sinkhorn normalization: function, base and scale of the
/// weights before and after the block and between residual streams.
pub(crate) const SINKHORN_HYPER_CONNECTIONS: &[Item] = &[
    Required("hc_attn_fn.weight", "n_hyper*n_embd, 2*n_hyper + n_hyper*n_hyper"),
    Required("hc_attn_base.weight", "2*n_hyper + n_hyper*n_hyper"),
    Required("hc_attn_scale.weight", "3"),
    Required("hc_ffn_fn.weight", "n_hyper*n_embd, 2*n_hyper + n_hyper*n_hyper"),
    Required("hc_ffn_base.weight", "2*n_hyper + n_hyper*n_hyper"),
    Required("hc_ffn_scale.weight", "3"),
];
