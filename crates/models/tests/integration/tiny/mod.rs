//! Tiny models as the schema describes them.

use std::collections::BTreeSet;

use gguf::{Array, Metadata, Shape, TensorInfo, TensorType, Value};
use gguf_models::schema::{Architecture, Expected, Presence};

/// The architectures of text models with a graph whose tensors a list of the schema tells. Those of
/// Jina's second encoder and DFlash are of several kinds, which the same names mean.
pub fn text_models() -> impl Iterator<Item = &'static Architecture> {
    let has_graph = |of: &&Architecture| {
        gguf_models::registry::architectures_with_graph().any(|name| name == of.name)
    };
    let is_of_one_kind = |of: &&Architecture| !["jina-bert-v2", "dflash"].contains(&of.name);
    gguf_models::schema::architectures().filter(is_of_one_kind).filter(has_graph)
}

/// A value for a key of a model of four layers.
fn value(key: &str) -> Value {
    match key {
        "embedding_length" => 64u64.into(),
        "block_count" => 4u64.into(),
        "context_length" => 128u64.into(),
        "attention.head_count" | "expert_count" => 4u32.into(),
        "feed_forward_length" => 96u32.into(),
        "attention.layer_norm_epsilon" | "attention.layer_norm_rms_epsilon" => 1e-5f32.into(),
        "rope.dimension_count" => 8u64.into(),
        "attention.key_length"
        | "attention.value_length"
        | "attention.key_length_swa"
        | "attention.value_length_swa"
        | "attention.key_length_mla_swa"
        | "attention.value_length_mla_swa"
        | "attention.indexer.key_length" => 16u32.into(),
        "rope.freq_base_swa"
        | "activation_sparsity_scale"
        | "attention.compress_rope_freq_base" => 100.0f32.into(),
        "hyper_connection.sinkhorn_iterations" => 3u32.into(),
        "attention.compress_ratios" => Array::from(&[0u32, 4, 8, 4][..]).into(),
        "expert_weights_norm" => true.into(),
        "target_layers" => Array::from(&[0u32, 1, 2][..]).into(),
        "hyper_connection.low_rank" => 6u32.into(),
        key if key.starts_with("hyper_connection.") && !key.ends_with("count") => 0.5f32.into(),
        key if key.ends_with("_softcapping") => 30.0f32.into(),
        "expert_feed_forward_length" => 24u32.into(),
        "attention.kv_lora_rank" | "attention.kv_lora_rank_swa" => 12u32.into(),
        // Every other layer has one.
        "attention.sliding_window_pattern" => Array::from(&[true, false, true, false][..]).into(),
        "attention.shared_kv_layers" => 0u32.into(),
        "logit_scale"
        | "residual_scale"
        | "attention.clamp_kqv"
        | "expert_weights_scale"
        | "swiglu_clamp_exp" => 2.0f32.into(),
        "use_parallel_residual" => true.into(),
        "attention.sliding_window" => 16u32.into(),
        "attention.relative_buckets_count" => 8u32.into(),
        "kda.gate_lower_bound" => (-2.0f32).into(),
        // Two adapters.
        "adapters.token_ids_activate" => Array::from(&[9i32, 4][..]).into(),
        "adapters.token_ids_substitute" => Array::from(&[1i32, 2][..]).into(),
        "activation.situ_beta" | "activation.situ_linear_beta" => 4.0f32.into(),
        _ => 2u32.into(),
    }
}

/// Architectures whose layers without KV heads have a recurrent state instead of a KV cache.
const BY_HEADS: &[&str] =
    &["kimi-linear", "kimi-k3", "jamba", "granitehybrid", "plamo2", "bailingmoe3", "glm5-next"];

/// Metadata with all keys that the architecture needs, and others.
pub fn metadata(of: &Architecture, others: &[(&str, Value)]) -> Metadata {
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", of.name);
    metadata.set(format!("{}.vocab_size", of.name), 40u32);
    if of.name == "grovemoe" {
        metadata.set("grovemoe.experts_per_group", 2u32);
        metadata.set("grovemoe.expert_chunk_feed_forward_length", 8u32);
    }
    if of.name == "dots3note" {
        metadata.set("dots3note.expert_shared_count", 1u32);
    }
    if matches!(of.name, "cohere2moe" | "modern-bert") {
        // One of two keys.
        metadata.set(format!("{}.attention.layer_norm_epsilon", of.name), 1e-5f32);
    }
    if matches!(of.name, "gemma3n" | "laguna") {
        // Widths that no key tells.
        metadata.set(format!("{}.attention.gate_lora_rank", of.name), 4u32);
    }
    for part in ["alpha_n", "alpha_p", "beta", "eps"] {
        metadata.set(format!("xielu.{part}"), 0.5f32);
    }
    if of.optional.concat().contains(&"rope.dimension_count") {
        metadata.set(format!("{}.rope.dimension_count", of.name), 8u64);
    }
    if of.name == "nomic-bert-moe" {
        metadata.set("nomic-bert-moe.expert_count", 4u32);
        metadata.set("nomic-bert-moe.expert_used_count", 2u32);
    }
    for key in of.required.concat() {
        metadata.set(format!("{}.{key}", of.name), value(key));
    }
    if of.name == "eagle3" {
        metadata.set("eagle3.block_count", 1u32);
    }
    // Where nothing else tells how wide experts are.
    let widths = ["expert_feed_forward_length", "expert_shared_feed_forward_length"];
    if !of.required.concat().contains(&"feed_forward_length") {
        for key in widths.into_iter().filter(|key| of.optional.concat().contains(key)) {
            metadata.set(format!("{}.{key}", of.name), value(key));
        }
    }
    if of.name == "qwen4exp" {
        // Blocks of four, of which two are chosen; n-grams of two and of three tokens.
        metadata.set("qwen4exp.attention.compress_ratios", Array::from(&[4u32, 4, 4, 4][..]));
        metadata.set("qwen4exp.attention.indexer.top_k", 8u32);
        ngrams(&mut metadata);
    }
    if BY_HEADS.contains(&of.name) {
        let heads = Array::from(&[0u32, 2, 0, 2][..]);
        metadata.set(format!("{}.attention.head_count", of.name), 4u32);
        metadata.set(format!("{}.attention.head_count_kv", of.name), heads);
    }
    if of.name == "deepseek4" {
        metadata.set("deepseek4.expert_gating_func", 4u32);
        metadata.set("deepseek4.attention.q_lora_rank", 12u32);
        // How wide compressors are no key tells: here blocks overlap.
        metadata.set("deepseek4.attention.gate_lora_rank", 32u32);
    }
    if of.name == "kimi-k3" {
        metadata.set("kimi-k3.expert_shared_count", 1u32);
    }
    if of.name == "glm5-next" {
        metadata.set("glm5-next.expert_shared_count", 1u32);
        metadata.set("glm5-next.kda.gate_lower_bound", -2.0f32);
        metadata.set("glm5-next.rope.dimension_count", 0u64);
    }
    if of.name == "rwkv6qwen2" {
        metadata.set("rwkv6qwen2.attention.head_count_kv", 4u32);
    }
    for (key, value) in others {
        metadata.set(format!("{}.{key}", of.name), value.clone());
    }
    metadata
}

/// Keys of embeddings of n-grams.
fn ngrams(metadata: &mut Metadata) {
    let mut set = |key: &str, value: Value| metadata.set(format!("qwen4exp.{key}"), value);
    set("embedding_length_per_layer_input", 16u32.into());
    set("ple.layers", Array::from(&[0i32][..]).into());
    set("ple.ngram_size", 3u32.into());
    set("ple.heads_per_ngram", 2u32.into());
    set("ple.conv_kernel", 4u32.into());
    set("ple.eos_token_id", 2u32.into());
    set("ple.layer_multipliers", Array::from(&[1u64 << 62 | 1, 12_345_678_901_235, 3][..]).into());
    set("ple.head_offsets", Array::from(&[0u64, 11, 24, 41][..]).into());
    set("ple.head_vocab_sizes", Array::from(&[11u64, 13, 17, 19][..]).into());
}

/// The tensors of a model: all, or those that it needs; of alternatives one.
pub fn tensors(of: &'static Architecture, metadata: &Metadata, all: bool) -> Vec<TensorInfo> {
    let mut tensors = Vec::new();
    for expected in of.tensors(metadata) {
        add(expected, all, &mut tensors);
    }
    let names: BTreeSet<_> = tensors.iter().map(|tensor| tensor.name.clone()).collect();
    let has = |name: &str| names.contains(name);
    tensors.retain(|tensor| match tensor.name.strip_suffix(".bias") {
        Some(matrix) if matrix.contains(".attn_") || matrix.contains(".ffn_") => {
            has(&format!("{matrix}.weight"))
        }
        _ => !(tensor.name.starts_with("rope_factors") && has("rope_freqs.weight")),
    });
    tensors
}

/// An extent that no key tells: PLaMo 2 has a rank besides what goes into states and out of them.
fn undetermined(name: &str) -> Option<u64> {
    const RANK: u64 = 6;
    let is_rank = ["ssm_dt.weight", "ssm_dt_norm"].iter().any(|end| name.ends_with(end));
    match name {
        // Rows for n-grams.
        "per_layer_token_embd.weight" => Some(64),
        name if name.ends_with("ssm_x.weight") => Some(RANK + 2 * 2),
        _ => is_rank.then_some(RANK),
    }
}

fn add(expected: Expected, all: bool, tensors: &mut Vec<TensorInfo>) {
    match expected {
        Expected::OneOf(mut options) => {
            let chosen = if all { options.pop() } else { options.into_iter().next() };
            chosen.into_iter().flatten().for_each(|expected| add(expected, all, tensors));
        }
        Expected::Tensor { name, shape, presence } => {
            let dims = shape.into_iter().map(|extent| extent.or_else(|| undetermined(&name)));
            let Some(dims) = dims.collect::<Option<Vec<u64>>>() else { return };
            // Layers may share those of others, but not all of them.
            let is_shared =
                [".attn_k.weight", ".attn_v.weight"].iter().any(|end| name.ends_with(end))
                    && !name.contains("indexer");
            // Drafts may use that of their target.
            let is_shared = is_shared || name == "token_embd.weight";
            if all || presence == Presence::Required || is_shared {
                let shape = Shape::new(&dims).unwrap();
                tensors.push(TensorInfo {
                    name,
                    shape,
                    tensor_type: TensorType::F32,
                    offset: 0,
                    opaque_len: None,
                });
            }
        }
    }
}
