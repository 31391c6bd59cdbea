//! Tiny models of all architectures with random weights: outputs do not depend on the batches, also across the
//! edges of windows and chunks.

use std::path::Path;
use std::sync::Arc;

use gguf::{Header, Metadata, RawHeader, TensorInfo, Value, write_header};
use gguf_graph::OutputKind;
use gguf_models::schema::{Architecture, architecture};
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Precision, Token};

use crate::schema_models::{metadata, tensors, text_models};

/// Longer than windows, chunks and the block of keys that attention reads together.
const TOKENS: usize = 70;

#[test]
fn batches_do_not_change_the_logits() {
    let folder = tempfile::tempdir().unwrap();
    let models = text_models().map(|of| (of, keys(of)));
    let mut run = 0;
    for (of, keys) in models.chain([compressed()]) {
        let metadata = metadata(of, &keys);
        let path = folder.path().join("model.gguf");
        let mut tensors = tensors(of, &metadata, true);
        // A classifier needs the whole text.
        tensors.retain(|tensor| !tensor.name.starts_with("cls."));
        write(&metadata, tensors, &path);
        let model = gguf_store::Model::open(&path).unwrap();
        let graph = gguf_models::build_graph(model.metadata(), Executor::tensors(&model)).unwrap();
        // Encoders need the whole text or other inputs.
        let ops = &graph.main().0.ops;
        if graph.encoder().is_some() || ops.iter().any(|op| op.needs_whole_batch()) {
            continue;
        }
        let executor = Arc::new(Executor::new(&model, graph, Precision::Exact).unwrap());
        let options =
            ContextOptions { sequences: 2, cache_type: CacheType::F32, ..Default::default() };
        let ids: Vec<u32> = (0..TOKENS).map(|i| (i * i % 37) as u32).collect();
        let mut context = Context::new(executor.clone(), options).unwrap();
        let whole = context.run(&Batch::all_outputs(&ids), OutputKind::Logits, &()).unwrap();
        assert!(whole.data.iter().all(|x| x.is_finite()), "{}", of.name);
        // Batches of 1, 2, 3, ... tokens, with a token of another sequence, and weights of which half do not fit into memory.
        let half =
            Arc::new(Executor::clone(&executor).with_available_memory(executor.matrix_bytes() / 2));
        assert!(half.exceeds_memory(), "{}", of.name);
        let mut context = Context::new(half, options).unwrap();
        let (mut found, mut start, mut len) = (Vec::new(), 0, 1);
        while start < ids.len() {
            let end = ids.len().min(start + len);
            let of_first = |&id: &u32| Token { id, sequence: 0, output: true };
            let mut tokens: Vec<Token> = ids[start..end].iter().map(of_first).collect();
            tokens.insert(0, Token { id: 5, sequence: 1, output: false });
            let made = context.run(&Batch { tokens }, OutputKind::Logits, &()).unwrap();
            found.extend(made.data);
            (start, len) = (end, len + 1);
        }
        assert!(found == whole.data, "{}: to the bit", of.name);
        run += 1;
    }
    assert!(run >= 40, "{run} of the decoders ran");
}

/// Heads of 32 elements, so that caches in Q8_0 have blocks; with masks, soft caps, sinks, biases and groups of heads.
#[test]
fn batches_do_not_change_attention_in_int8() {
    const TOKENS: usize = 150;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    for name in ["llama", "gemma2", "gpt-oss", "bloom", "deepseek2"] {
        let of = architecture(name).unwrap();
        let mut keys = keys(of);
        match name {
            "bloom" => keys.push(("embedding_length", 128u32.into())),
            "deepseek2" => {
                keys = compressed().1;
                for (key, len) in [("attention.key_length", 64u32), ("attention.value_length", 32)]
                {
                    keys.retain(|(of, _)| *of != key);
                    keys.push((key, len.into()));
                }
                keys.push(("attention.kv_lora_rank", 32u32.into()));
                keys.push(("rope.dimension_count", 32u32.into()));
                keys.retain(|(of, _)| *of != "attention.key_length_mla");
                keys.push(("attention.key_length_mla", 48u32.into()));
            }
            _ => keys.extend(
                ["attention.key_length", "attention.value_length"].map(|key| (key, 32u32.into())),
            ),
        }
        let metadata = metadata(of, &keys);
        write(&metadata, tensors(of, &metadata, true), &path);
        let model = gguf_store::Model::open(&path).unwrap();
        let graph = gguf_models::build_graph(model.metadata(), Executor::tensors(&model)).unwrap();
        let executor = Arc::new(Executor::new(&model, graph, Precision::Fast).unwrap());
        let ids: Vec<u32> = (0..TOKENS).map(|i| (i * i % 37) as u32).collect();
        let run = |executor: &Arc<Executor>, cache_type, len: usize| -> Vec<f32> {
            let options = ContextOptions { cache_type, ..Default::default() };
            let mut context = Context::new(executor.clone(), options).unwrap();
            let run = |ids| context.run(&Batch::all_outputs(ids), OutputKind::Logits, &()).unwrap();
            ids.chunks(len).map(run).flat_map(|logits| logits.data).collect()
        };
        let whole = run(&executor, CacheType::Q8_0, TOKENS);
        for len in [1, 2, 17, 65, 100] {
            assert!(run(&executor, CacheType::Q8_0, len) == whole, "{name}: batches of {len}");
        }
        // The same cache with products in F32, and one that does not round.
        let exact = Arc::new(executor.with_precision(Precision::Exact));
        let [same, unrounded] =
            [CacheType::Q8_0, CacheType::F32].map(|cache_type| run(&exact, cache_type, TOKENS));
        let distance = |one: &[f32], other: &[f32]| {
            let square = |(a, b): (&f32, &f32)| f64::from(a - b).powi(2);
            let norm: f64 = other.iter().map(|x| f64::from(*x).powi(2)).sum();
            (one.iter().zip(other).map(square).sum::<f64>() / norm).sqrt()
        };
        // Rounding of queries and weights adds at most as much as that of keys and values.
        let of_cache = distance(&same, &unrounded);
        assert!(of_cache > 0.0 && distance(&whole, &unrounded) < 2.0 * of_cache, "{name}");
    }
}

/// Returns keys that make windows shorter than the text.
fn keys(of: &Architecture) -> Vec<(&'static str, Value)> {
    let mut keys = Vec::new();
    if of.optional.concat().contains(&"attention.sliding_window") {
        keys.push(("attention.sliding_window", 16u32.into()));
    }
    if of.name == "llama4" {
        keys.push(("attention.temperature_length", 8u32.into()));
    }
    keys
}

/// Returns a model with compressed blocks.
fn compressed() -> (&'static Architecture, Vec<(&'static str, Value)>) {
    let keys = [
        ("attention.head_count_kv", 1u32),
        ("attention.q_lora_rank", 6),
        ("attention.key_length", 20),
        ("attention.value_length", 12),
        ("attention.key_length_mla", 16),
        ("attention.value_length_mla", 10),
    ];
    let keys = keys.map(|(key, len)| (key, Value::from(len)));
    (architecture("deepseek2").unwrap(), keys.into())
}

/// Writes a model with random weights.
pub fn write(metadata: &Metadata, tensors: Vec<TensorInfo>, path: &Path) {
    let mut draft = RawHeader { metadata: metadata.clone(), tensors, ..RawHeader::default() };
    draft.lay_out().unwrap();
    let header = Header::new(draft).unwrap();
    let mut bytes = write_header(&header).unwrap();
    let start = bytes.len();
    let mut state = 88_172_645_463_325_252u64;
    for info in header.tensors() {
        let at = start + info.offset as usize;
        bytes.resize(at, 0);
        for _ in 0..info.shape.elements().unwrap() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let random = (state >> 40) as f32 / (1 << 23) as f32 - 1.0;
            let is_factor = info.name.ends_with("norm.weight") || info.name.starts_with("rope");
            let number = 0.3 * random + if is_factor { 1.0 } else { 0.0 };
            bytes.extend(number.to_le_bytes());
        }
    }
    std::fs::write(path, bytes).unwrap();
}
