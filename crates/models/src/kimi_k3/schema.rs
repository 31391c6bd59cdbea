//! Metadata keys and tensors of `kimi-k3`.

use crate::deepseek2::schema::MLA;
use crate::schema::architecture::Item::{All, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

/// Kimi Delta Attention with one matrix for the output gate.
const K3_KDA: &[Item] = &[
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

/// MLA or KDA, and the scores of residual streams.
const K3_ATTENTION: &[Item] = &[
    When("n_head_kv", &[All(MLA), Optional("attn_gate.weight", "n_embd, n_head*mla_v")]),
    Unless("n_head_kv", K3_KDA),
    Required("attn_res_score.weight", "n_embd"),
    Required("ffn_res_score.weight", "n_embd"),
];

/// MoE whose routed experts may work in a latent space.
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
    Optional("ffn_routed_norm.weight", "undetermined"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "kimi-k3",
    note: "As kimi-linear, with attention residuals; routed experts may work in a narrower \
           latent space.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        EXPERT_KEYS,
        &[
            key::ATTENTION_KV_LORA_RANK,
            key::SSM_CONV_KERNEL,
            key::KDA_HEAD_DIM,
            key::ACTIVATION_SITU_BETA,
            key::ACTIVATION_SITU_LINEAR_BETA,
            key::ATTN_RES_BLOCK_SIZE,
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        DEEPSEEK_MOE_KEYS,
        &[
            key::VOCAB_SIZE,
            key::KDA_GATE_LOWER_BOUND,
            key::ATTENTION_Q_LORA_RANK,
            key::ATTENTION_KEY_LENGTH_MLA,
            key::ATTENTION_VALUE_LENGTH_MLA,
            key::EXPERT_LATENT_LENGTH,
        ],
    ],
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
    ..Architecture::DEFAULT
};
