//! What a tensor is for, told from its name, and whether it may be quantized at all.

use super::{Model, TensorDesc};

/// The role of a tensor, as far as the mixes tell roles apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// The output matrix.
    Output,
    /// Token embeddings, per-layer ones included.
    TokenEmbedding,
    /// Query, key and value projections in one matrix.
    AttentionQkv,
    /// Projection from the compressed cache to keys and values.
    AttentionKvB,
    /// Value projection.
    AttentionV,
    /// Key projection.
    AttentionK,
    /// Query projection.
    AttentionQ,
    /// Projection after attention.
    AttentionOutput,
    /// Feed-forward input, one or all experts.
    FfnUp,
    /// Feed-forward gate, one or all experts.
    FfnGate,
    /// Feed-forward output, one or all experts.
    FfnDown,
    /// Everything else.
    Other,
}

/// Whole names.
const NAMED: &[(&str, Category)] = &[
    ("output.weight", Category::Output),
    ("token_embd.weight", Category::TokenEmbedding),
    (PER_LAYER_EMBEDDING, Category::TokenEmbedding),
];

/// The second, larger embedding table of Gemma 3n.
pub(super) const PER_LAYER_EMBEDDING: &str = "per_layer_token_embd.weight";

/// Parts of names; the first that occurs decides.
const CONTAINING: &[(&str, Category)] = &[
    ("attn_qkv.weight", Category::AttentionQkv),
    ("attn_kv_b.weight", Category::AttentionKvB),
    ("attn_v.weight", Category::AttentionV),
    ("attn_k.weight", Category::AttentionK),
    ("attn_q.weight", Category::AttentionQ),
    ("attn_output.weight", Category::AttentionOutput),
    ("ffn_up", Category::FfnUp),
    ("ffn_gate", Category::FfnGate),
    ("ffn_down", Category::FfnDown),
];

impl Category {
    /// The category of a tensor with this name.
    pub fn of(name: &str) -> Self {
        let named = NAMED.iter().find(|(whole, _)| *whole == name);
        let containing = || CONTAINING.iter().find(|(part, _)| name.contains(part));
        named.or_else(containing).map_or(Self::Other, |(_, category)| *category)
    }

    /// True if the matrix holds value projections: small under grouped-query attention, and the
    /// first to suffer from few bits.
    pub(crate) fn holds_values(self) -> bool {
        matches!(self, Self::AttentionV | Self::AttentionQkv | Self::AttentionKvB)
    }
}

/// Whole names that are never quantized: position embeddings and token types (BERT).
const NEVER_NAMED: &[&str] = &["position_embd.weight", "token_types.weight"];

/// Parts of names that are never quantized, because the tensors are small and delicate.
const NEVER_CONTAINING: &[&str] = &[
    "_norm.weight",
    // Expert routing; the second is a table of integers.
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    // Gemma 3n
    "altup",
    "laurel",
    "per_layer_model_proj",
    // Convolutions over a few tokens: Mamba, Kimi, LFM2
    "ssm_conv1d",
    "shortconv.conv.weight",
    // Sparse attention indexer of MiniMax
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    // RWKV
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    // Relative position bias of T5
    "attn_rel_b.weight",
    // Image encoders
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    // Audio codebooks
    "a.rvq.codebook",
    "mm.a.code_embd",
];

/// The same, for one architecture only.
const NEVER_IN_GLM5_NEXT: &[&str] = &[
    "hc_",
    "indexer.attn_q_b",
    "indexer.attn_k",
    "indexer.proj",
    "indexer_compressor_gate",
    "indexer_compressor_ape",
    "ssm_f_a.weight",
    "ssm_f_b.weight",
    "ssm_g_a.weight",
    "ssm_g_b.weight",
    "ssm_beta.weight",
    "attn_kv_a_mqa.weight",
    "attn_k_b.weight",
    "attn_v_b.weight",
];

/// Whether a mix may change the type of a tensor: a matrix of weights that is not on the lists above.
pub(super) fn is_quantizable(tensor: &TensorDesc<'_>, model: &Model) -> bool {
    let name = tensor.name;
    let has = |list: &[&str]| list.iter().any(|part| name.contains(part));
    // Trailing dimensions of one do not count: [n, 1] is a vector.
    let is_matrix = tensor.shape.iter().skip(1).any(|&n| n > 1);
    let is_delicate = NEVER_NAMED.contains(&name)
        || has(NEVER_CONTAINING)
        || (model.architecture == "glm5-next" && has(NEVER_IN_GLM5_NEXT));
    is_matrix && name.ends_with("weight") && !tensor.ty.is_integer() && !is_delicate
}

#[cfg(test)]
mod tests {
    use gguf::TensorType;

    use super::*;

    #[test]
    fn categories_come_from_names() {
        for (name, category) in [
            ("output.weight", Category::Output),
            ("blk.0.attn_output.weight", Category::AttentionOutput),
            ("per_layer_token_embd.weight", Category::TokenEmbedding),
            ("blk.3.attn_qkv.weight", Category::AttentionQkv),
            ("blk.3.attn_v.weight", Category::AttentionV),
            ("dec.blk.3.cross_attn_v.weight", Category::AttentionV),
            ("blk.3.attn_v.bias", Category::Other),
            ("blk.3.attn_kv_b.weight", Category::AttentionKvB),
            ("blk.3.ffn_down_exps.weight", Category::FfnDown),
            ("blk.3.ffn_gate_up_exps.weight", Category::FfnGate),
            ("blk.3.ssm_in.weight", Category::Other),
        ] {
            assert_eq!(Category::of(name), category, "{name}");
        }
    }

    #[test]
    fn small_and_delicate_tensors_stay() {
        let model = Model::default();
        let may = |name, shape: &[u64], ty| is_quantizable(&TensorDesc { name, shape, ty }, &model);
        assert!(may("blk.0.ffn_up.weight", &[256, 512], TensorType::F16));
        assert!(!may("blk.0.ffn_up.weight", &[256, 1, 1], TensorType::F16));
        assert!(!may("blk.0.ffn_up.bias", &[256, 512], TensorType::F16));
        assert!(!may("blk.0.attn_norm.weight", &[256, 8], TensorType::F32));
        assert!(!may("blk.0.ffn_gate_inp.weight", &[256, 8], TensorType::F32));
        assert!(!may("blk.0.time_mix_lerp_fused.weight", &[2048, 1, 1, 5], TensorType::F32));
        assert!(!may("blk.0.table.weight", &[256, 8], TensorType::I32));
        assert!(may("blk.0.ssm_beta.weight", &[256, 512], TensorType::F16));
    }
}
