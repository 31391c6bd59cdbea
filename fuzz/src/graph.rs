//! Fuzz property of computation graphs: a graph is rejected, or runs within its budget.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use gguf::{Bytes, Finding, Gguf, Header, Metadata, RawHeader, Shape, TensorInfo, TensorType};
use gguf_graph::{Graph, Limits, OutputKind, RawGraph};
use gguf_models::schema::{self, Expected, Presence};
use gguf_runtime::{
    Batch, CacheType, Context, ContextOptions, Executor, MemoryBudget, Precision, Token, Value,
};
use gguf_store::{Model, ModelFile};
use serde_json::Value as Json;

/// Maximum number of elements of all weights together.
const ELEMENTS: u64 = 1 << 18;

/// Interprets bytes as the text of a graph, or else as mutations of an existing graph. Returns
/// whether a graph ran.
pub fn run(bytes: &[u8]) -> bool {
    let read = serde_json::from_slice::<RawGraph>(bytes).ok();
    let Some(raw) = read.or_else(|| changed(bytes)) else { return false };
    let limits = Limits { ops: 400, tensors: 400, width: 1 << 20, reuse: 64 };
    let Ok(graph) = Graph::new(raw, limits) else { return false };
    let _ = graph.to_dot();
    let Some(model) = model(&graph) else { return false };
    [Precision::Exact, Precision::Fast].into_iter().any(|how| compute(&model, &graph, how))
}

fn compute(model: &Model, graph: &Graph, how: Precision) -> bool {
    let memory = MemoryBudget::new(64 << 20);
    let executor = Executor::within(model, graph.clone(), how, memory);
    let Ok(executor) = executor else { return false };
    let options = ContextOptions { tokens: 12, sequences: 2, cache_type: CacheType::F16, batch: 5 };
    let Ok(mut context) = Context::new(Arc::new(executor), options) else { return false };
    for sequence in [0, 1] {
        let _ = context.encode_tokens(sequence, &[1, 2, 3, 1, 0], &());
    }
    if let Some(width) = graph.encoder().and_then(|(program, _)| program.features_width()) {
        let features = Value { rows: 7, width, data: vec![0.25; 7 * width] };
        let _ = context.encode(0, &features, &());
        let _ = context.encode(1, &features, &());
    }
    if let Some(width) = graph.encoder().and_then(|(program, _)| program.token_features_width()) {
        let width = width.min(1 << 20);
        let features = Value { rows: 3, width, data: vec![0.25; 3 * width] };
        let _ = context.append_features(0, &features, &());
    }
    let tokens = (0..9).map(|i| Token { id: i % 4, sequence: i as usize % 2, output: i != 3 });
    let batch = Batch { tokens: tokens.collect() };
    let width = graph.main().0.token_features_width().unwrap_or(0).min(1 << 20);
    let features = Value { rows: 9, width, data: vec![0.25; 9 * width] };
    let kinds = [OutputKind::Logits, OutputKind::Hidden, OutputKind::Classes, OutputKind::Features];
    let ran = kinds.map(|kind| context.run_kinds(&batch, Some(&features), &[kind], &()).is_ok());
    let checkpoint = context.checkpoint(0);
    let _ = context.run_kinds(&batch, Some(&features), &kinds[..1], &());
    checkpoint.map(|checkpoint| context.rewind(0, &checkpoint));
    context.truncate(0, 1);
    ran.contains(&true)
}

/// Returns a model with the tensors that a graph names, all F32.
pub fn model(graph: &Graph) -> Option<Model> {
    let mut raw = RawHeader::default();
    raw.metadata.set("general.architecture", "fuzz");
    let mut all = 0u64;
    for weight in &graph.raw().weights {
        let shape = Shape::new(&weight.shape)?;
        all = all.checked_add(shape.elements()?).filter(|all| *all <= ELEMENTS)?;
        raw.tensors.push(TensorInfo {
            name: weight.name.clone(),
            shape,
            tensor_type: TensorType::F32,
            offset: 0,
            opaque_len: None,
        });
    }
    raw.lay_out().ok()?;
    let header = Header::new(raw).ok()?;
    let mut bytes = gguf::write_header(&header).ok()?;
    let data = bytes.len();
    bytes.resize(usize::try_from(header.file_len(data).ok()?).ok()?, 0);
    for (i, number) in bytes[data..].as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *number = ((i % 17) as f32 / 16.0 - 0.5).to_le_bytes();
    }
    let bytes = Bytes::from(bytes);
    let gguf = Gguf::read(&bytes).ok()?;
    let data_start = gguf.data_start();
    let header = gguf.into_header();
    let part =
        ModelFile { path: PathBuf::from("fuzz"), header, data_start, source: Arc::new(bytes) };
    Model::new(vec![part]).ok()
}

/// Returns a mutated graph of an architecture: the first byte selects the architecture; of every
/// three further bytes, two select a place and one the mutation.
fn changed(bytes: &[u8]) -> Option<RawGraph> {
    let (first, changes) = bytes.split_first()?;
    let bases = bases();
    let mut graph = bases.get(usize::from(*first) % bases.len())?.clone();
    for [low, high, what] in changes.as_chunks::<3>().0.iter().take(16) {
        let at = usize::from(u16::from_le_bytes([*low, *high]));
        change(&mut graph, at, *what);
    }
    serde_json::from_value(graph).ok()
}

fn change(graph: &mut Json, at: usize, what: u8) {
    if what >= 0xf0 {
        // Duplicates or removes a whole operation.
        let Some(ops) = graph["main"]["ops"].as_array_mut().filter(|ops| !ops.is_empty()) else {
            return;
        };
        let from = at % ops.len();
        let to = (at / 7 + usize::from(what)) % ops.len();
        match what {
            0xff => drop(ops.remove(from)),
            _ => ops[to] = ops[from].clone(),
        }
        return;
    }
    let mut leaves = Vec::new();
    collect(graph, &mut leaves);
    let count = leaves.len();
    let Some(leaf) = leaves.into_iter().nth(at % count.max(1)) else { return };
    *leaf = match (&*leaf, what % 8) {
        (Json::Number(_), 0) => 0.into(),
        (Json::Number(_), 1) => 1.into(),
        (Json::Number(_), 2) => u32::MAX.into(),
        (Json::Number(n), 3) => n.as_u64().map_or(2.into(), |n| (n + 1).into()),
        (Json::Number(n), 4) => n.as_u64().map_or((-1.5).into(), |n| n.saturating_sub(1).into()),
        (Json::Number(n), 5) => n.as_u64().map_or(1e-30.into(), |n| n.saturating_mul(2).into()),
        (Json::Number(n), 6) => n.as_u64().map_or(1e30.into(), |n| (n / 2).into()),
        (Json::Number(_), _) => u64::from(what / 8).into(),
        (Json::Bool(flag), _) => (!flag).into(),
        (other, _) => other.clone(),
    };
}

/// Collects all leaves of a value.
fn collect<'j>(value: &'j mut Json, leaves: &mut Vec<&'j mut Json>) {
    match value {
        Json::Array(all) => all.iter_mut().for_each(|value| collect(value, leaves)),
        Json::Object(all) => all.values_mut().for_each(|value| collect(value, leaves)),
        leaf => leaves.push(leaf),
    }
}

/// Returns tiny graphs of all architectures.
pub fn bases() -> &'static [Json] {
    static BASES: OnceLock<Vec<Json>> = OnceLock::new();
    BASES.get_or_init(|| {
        let base = |name| serde_json::to_value(tiny(name).ok()?.raw()).ok();
        gguf_models::registry::architectures_with_graph().filter_map(base).collect()
    })
}

/// Returns the smallest graph of an architecture, from the requirements of its schema.
pub fn tiny(name: &str) -> Result<Graph, Finding> {
    let unknown = || Finding::error("architecture-unknown", "has no schema");
    let architecture = schema::architecture(name).ok_or_else(unknown)?;
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", name);
    for key in architecture.required.concat() {
        let value: gguf::Value = match key {
            "block_count" if name == "eagle3" => 1u32.into(),
            "block_count" => 2u32.into(),
            "embedding_length" => 16u32.into(),
            "attention.sliding_window_pattern" => {
                gguf::Array::from(&[true, name == "gemma3n"][..]).into()
            }
            key if key.contains("epsilon") => 1e-5f32.into(),
            key if key.contains("scale") || key.contains("clamp") => 2.0f32.into(),
            "expert_gating_func" | "adapters.count" | "attention.indexer.kpool" => 2u32.into(),
            "attention.indexer.top_k" if name == "glm5-next" => 4u32.into(),
            "adapters.token_ids_activate" => gguf::Array::from(&[4i32, 2][..]).into(),
            "adapters.token_ids_substitute" => gguf::Array::from(&[1i32, 3][..]).into(),
            // The last layer has a sliding window like the first, whose keys and values it reads.
            "attention.shared_kv_layers" => 1u32.into(),
            "kda.gate_lower_bound" => (-2.0f32).into(),
            key if key.contains("situ_") => 4.0f32.into(),
            key if key.contains("num_inputs") || key.contains("hyper_connection.count") => {
                2u32.into()
            }
            "target_layers" => gguf::Array::from(&[0u32, 1, 2][..]).into(),
            key if key.starts_with("hrm.") || key.contains("active_idx") => 1u32.into(),
            key if key.contains("freq_base") || key.contains("softcapping") => 100.0f32.into(),
            key if key.contains("magnitude") => 2.0f32.into(),
            key if key.contains("head_count") => 2u32.into(),
            key if key.contains("parallel") => true.into(),
            key if key.contains("lora_rank") || key.contains("dimension_count") => 4u32.into(),
            _ => 8u32.into(),
        };
        metadata.set(format!("{name}.{key}"), value);
    }
    metadata.set(format!("{name}.vocab_size"), 8u32);
    if name == "dflash" {
        metadata.set("dflash.feed_forward_length", 8u32);
    }
    if name == "kimi-k3" {
        metadata.set("kimi-k3.expert_shared_count", 1u32);
    }
    if name == "rwkv6qwen2" {
        metadata.set("rwkv6qwen2.attention.head_count_kv", 1u32);
    }
    if matches!(
        name,
        "kimi-linear"
            | "kimi-k3"
            | "jamba"
            | "granitehybrid"
            | "plamo2"
            | "bailingmoe3"
            | "glm5-next"
    ) {
        // A layer without KV heads has a recurrent state.
        let heads = gguf::Array::from(&[0u32, 2][..]);
        metadata.set(format!("{name}.attention.head_count"), 2u32);
        metadata.set(format!("{name}.attention.head_count_kv"), heads);
    }
    if matches!(name, "cohere2moe" | "modern-bert") {
        // One of two alternative keys.
        metadata.set(format!("{name}.attention.layer_norm_epsilon"), 1e-5f32);
    }
    for part in ["alpha_n", "alpha_p", "beta", "eps"] {
        metadata.set(format!("xielu.{part}"), 0.5f32);
    }
    if name == "deepseek4" {
        // Blocks and windows shorter than the test texts.
        let ratios = gguf::Array::from(&[3u32, 2][..]);
        metadata.set("deepseek4.attention.compress_ratios", ratios);
        metadata.set("deepseek4.attention.indexer.top_k", 2u32);
        for (key, value) in [
            ("attention.sliding_window", 3u32),
            ("attention.q_lora_rank", 4),
            ("expert_gating_func", 4),
            ("hash_layer_count", 1),
        ] {
            metadata.set(format!("deepseek4.{key}"), value);
        }
        metadata.set("deepseek4.expert_weights_norm", true);
    }
    metadata.set(format!("{name}.rope.dimension_count"), 4u32);
    metadata.set(format!("{name}.expert_used_count"), 2u32);
    if name == "glm5-next" {
        metadata.set("glm5-next.expert_shared_count", 1u32);
        metadata.set("glm5-next.kda.gate_lower_bound", -2.0f32);
        metadata.set("glm5-next.rope.dimension_count", 0u32);
    }
    if name == "dots3note" {
        metadata.set("dots3note.expert_shared_count", 1u32);
    }
    let mut tensors = Vec::new();
    let wanted = match name {
        // The second layer has an indexer.
        "deepseek4" => "blk.1.indexer",
        // Drafts may use those of their target.
        "dflash" | "eagle3" => "token_embd",
        "qwen4exp" => {
            tensors.extend(ngrams(&mut metadata));
            "blk.0.ple_"
        }
        _ => "without",
    };
    add(&mut architecture.tensors(&metadata), &mut tensors, wanted);
    gguf_models::build_graph(&metadata, &tensors)
}

/// Sets keys for blocks of two tokens, of which the indexer selects one, and for embeddings of
/// 2-grams and 3-grams.
fn ngrams(metadata: &mut Metadata) -> Option<TensorInfo> {
    let mut set = |key: &str, value: gguf::Value| metadata.set(format!("qwen4exp.{key}"), value);
    set("attention.compress_ratios", gguf::Array::from(&[2u32, 2][..]).into());
    set("attention.indexer.top_k", 2u32.into());
    set("ple.ngram_size", 3u32.into());
    set("ple.heads_per_ngram", 1u32.into());
    set("ple.conv_kernel", 2u32.into());
    set("ple.eos_token_id", 5u32.into());
    set("ple.layer_multipliers", gguf::Array::from(&[1u64 << 62 | 1, 1_234_567, 3][..]).into());
    set("ple.head_offsets", gguf::Array::from(&[0u64, 3][..]).into());
    set("ple.head_vocab_sizes", gguf::Array::from(&[3u64, 5][..]).into());
    let shape = Shape::new(&[8, 8])?;
    let name = "per_layer_token_embd.weight".into();
    Some(TensorInfo { name, shape, tensor_type: TensorType::F32, offset: 0, opaque_len: None })
}

/// Adds the required tensors, and those with a prefix.
fn add(expected: &mut dyn Iterator<Item = Expected>, tensors: &mut Vec<TensorInfo>, wanted: &str) {
    for one in expected.take(1000) {
        match one {
            Expected::Tensor { ref name, presence: Presence::Optional, .. }
                if !name.starts_with(wanted)
                    && (name.contains("indexer")
                        || ![".attn_k.weight", ".attn_v.weight"]
                            .iter()
                            .any(|end| name.ends_with(end))) => {}
            Expected::Tensor { name, shape, .. } => {
                // PLaMo 2: tensors of the time step and of the states; overlapping blocks: tensors
                // of block compression.
                let untold = if name.ends_with("ssm_x.weight") {
                    24
                } else if name.starts_with("blk.1.attn_compressor") {
                    16
                } else {
                    8
                };
                let shape: Vec<u64> = shape.iter().map(|extent| extent.unwrap_or(untold)).collect();
                let Some(shape) = Shape::new(&shape) else { continue };
                let tensor_type = TensorType::F32;
                tensors.push(TensorInfo { name, shape, tensor_type, offset: 0, opaque_len: None });
            }
            Expected::OneOf(options) => {
                add(&mut options.into_iter().next().into_iter().flatten(), tensors, wanted);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_architecture_has_a_tiny_graph_that_runs() {
        let mut faults = Vec::new();
        for name in gguf_models::registry::architectures_with_graph()
            .filter(|name| schema::architecture(name).is_some())
        {
            match tiny(name) {
                Err(fault) => faults.push(format!("{name} is not built: {fault}")),
                Ok(graph) if !run(&serde_json::to_vec(graph.raw()).unwrap()) => {
                    faults.push(format!("{name} does not run"));
                }
                Ok(_) => {}
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
