//! Role of a tensor by its name, and whether it may be quantized.

use super::{Model, TensorDesc};

/// Role of a tensor, as far as the presets distinguish roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// Output projection (LM head).
    Output,
    /// Token embeddings, including per-layer embeddings.
    TokenEmbedding,
    /// Fused query, key and value projection.
    AttentionQkv,
    /// Projection from the latent KV cache to keys and values (MLA).
    AttentionKvB,
    /// Value projection.
    AttentionV,
    /// Key projection.
    AttentionK,
    /// Query projection.
    AttentionQ,
    /// Attention output projection.
    AttentionOutput,
    /// FFN up projection, of one or all experts.
    FfnUp,
    /// FFN gate projection, of one or all experts.
    FfnGate,
    /// FFN down projection, of one or all experts.
    FfnDown,
    /// Any other tensor.
    Other,
}

/// Exact names.
const NAMED: &[(&str, Category)] = &[
    ("output.weight", Category::Output),
    ("token_embd.weight", Category::TokenEmbedding),
    (PER_LAYER_EMBEDDING, Category::TokenEmbedding),
];

/// Per-layer token embeddings of Gemma 3n, a second, larger table.
pub(super) const PER_LAYER_EMBEDDING: &str = "per_layer_token_embd.weight";

/// Name parts; the first match decides.
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
    /// Returns the category of a tensor name.
    pub fn of(name: &str) -> Self {
        let named = NAMED.iter().find(|(whole, _)| *whole == name);
        let containing = || CONTAINING.iter().find(|(part, _)| name.contains(part));
        named.or_else(containing).map_or(Self::Other, |(_, category)| *category)
    }

    /// Whether the matrix contains value projections, which are small under grouped-query attention
    /// and sensitive to low precision.
    pub(crate) fn holds_values(self) -> bool {
        matches!(self, Self::AttentionV | Self::AttentionQkv | Self::AttentionKvB)
    }
}

/// Exact names that are never quantized: position and token-type embeddings (BERT).
const NEVER_NAMED: &[&str] = &["position_embd.weight", "token_types.weight"];

/// Name parts of tensors that are never quantized because they are small and sensitive.
const NEVER_CONTAINING: &[&str] = &[
    "_norm.weight",
    // Expert routing; the second is a table of integers.
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    // Gemma 3n
    "altup",
    "laurel",
    "per_layer_model_proj",
    // Short convolutions: Mamba, Kimi, LFM2
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
    // Vision encoders
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

/// Name parts that are never quantized in one architecture only.
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

/// Whether a preset may change the type of a tensor: a weight matrix that the lists above do not
/// exclude.
pub(super) fn is_quantizable(tensor: &TensorDesc<'_>, model: &Model) -> bool {
    let name = tensor.name;
    let has = |list: &[&str]| list.iter().any(|part| name.contains(part));
    // Trailing dimensions of 1 do not count: [n, 1] is a vector.
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
    fn names_determine_categories() {
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
    fn sensitive_tensors_are_not_quantized() {
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
