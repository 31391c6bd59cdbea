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
        // Batches of 1, 2, 3, ... tokens, with a token of another sequence.
        let mut context = Context::new(executor, options).unwrap();
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
