//! Metadata keys and tensors of `granitehybrid`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Unless, When};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "granitehybrid",
    note: "Granite 4 and Bamba. Layers with 0 KV heads are Mamba 2 layers. Attention uses RoPE \
           if `rope.scaling.finetuned` is true.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, SSM, &[key::SSM_GROUP_COUNT]],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        &[
            key::VOCAB_SIZE,
            key::ATTENTION_SCALE,
            key::EMBEDDING_SCALE,
            key::RESIDUAL_SCALE,
            key::LOGIT_SCALE,
            key::EXPERT_SHARED_FEED_FORWARD_LENGTH,
        ],
    ],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(&[
        All(ATTN_NORM),
        When("n_head_kv", HYBRID_ATTENTION),
        Unless("n_head_kv", MAMBA2),
        All(FFN_NORM),
        Unless("n_expert", GATED_FFN),
        When("n_expert", LLAMA_EXPERTS),
    ])],
    ..Architecture::DEFAULT
};
