//! LoRA adapters: the outputs are those of the merged model, in all architectures.

use std::path::PathBuf;
use std::sync::Arc;

use gguf::{Bytes, Gguf, Header, Metadata, RawHeader, Shape, TensorInfo, TensorType};
use gguf_graph::{Graph, Limits, Op, OutputKind};
use gguf_lora::{Adapter, Change, EMBEDDING, values};
use gguf_models::registry::architectures_with_graph as architectures;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Precision, Value};
use gguf_store::{Model, ModelFile};

use crate::architectures::{appended_features, run_encoder};
use crate::tiny;

const IDS: [u32; 8] = [3, 1, 4, 1, 5, 2, 6, 7];

const RANK: u64 = 2;

/// A tensor of a model in memory.
type Tensor = (String, Vec<u64>, Vec<f32>);

fn model(metadata: Metadata, tensors: &[Tensor]) -> Model {
    let infos = tensors.iter().map(|(name, shape, _)| TensorInfo {
        name: name.clone(),
        shape: Shape::new(shape).unwrap(),
        tensor_type: TensorType::F32,
        offset: 0,
        opaque_len: None,
    });
    let mut raw = RawHeader { metadata, tensors: infos.collect(), ..RawHeader::default() };
    raw.lay_out().unwrap();
    let offsets: Vec<u64> = raw.tensors.iter().map(|tensor| tensor.offset).collect();
    let header = Header::new(raw).unwrap();
    let mut bytes = gguf::write_header(&header).unwrap();
    let data = bytes.len();
    bytes.resize(header.file_len(data).unwrap() as usize, 0);
    for (offset, (_, _, numbers)) in offsets.iter().zip(tensors) {
        let numbers: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        bytes[data + *offset as usize..][..numbers.len()].copy_from_slice(&numbers);
    }
    let bytes = Bytes::from(bytes);
    let gguf = Gguf::read(&bytes).unwrap();
    let (data_start, path) = (gguf.data_start(), PathBuf::from("memory"));
    let header = gguf.into_header();
    Model::new(vec![ModelFile { path, header, data_start, source: Arc::new(bytes) }]).unwrap()
}

fn metadata() -> Metadata {
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", "fuzz");
    metadata.set("general.type", "adapter");
    metadata.set("adapter.type", "lora");
    metadata.set("adapter.lora.alpha", 4.0f32);
    metadata
}

/// Small numbers that depend on the seed.
fn numbers(shape: &[u64], seed: usize) -> Vec<f32> {
    let count = shape.iter().product::<u64>() as usize;
    (0..count).map(|i| ((i * 7 + seed * 13) % 23) as f32 / 1000.0 - 0.011).collect()
}

/// Returns an adapter with a pair for every matrix and a replacement of every vector of `base`.
fn adapter(base: &Model, with_embedding: bool) -> Model {
    let mut tensors = Vec::new();
    for (seed, tensor) in base.tensors().iter().enumerate() {
        let (name, shape) = (&tensor.info.name, &tensor.info.shape);
        if name == EMBEDDING && !with_embedding {
            continue;
        }
        if shape.len() < 2 {
            let changes = numbers(shape, seed);
            let changed = values(tensor).unwrap().iter().zip(changes).map(|(x, y)| x + y).collect();
            tensors.push((name.clone(), shape.to_vec(), changed));
            continue;
        }
        let (columns, rows) = (shape[0], shape[1]);
        let (a, b) = match name == EMBEDDING {
            true => ([RANK, rows], [RANK, columns]),
            false => ([columns, RANK], [RANK, rows]),
        };
        for (suffix, dims) in [(".lora_a", a), (".lora_b", b)] {
            let dims = [&dims[..], &shape[2..]].concat();
            let numbers = numbers(&dims, seed).iter().map(|x| x * 10.0).collect();
            tensors.push((format!("{name}{suffix}"), dims, numbers));
        }
    }
    model(metadata(), &tensors)
}

fn merged(base: &Model, adapters: &[(Adapter, f32)]) -> Model {
    let tensors = base.tensors().iter().map(|tensor| {
        let mut elements = values(tensor).unwrap();
        if let Some(change) = Change::read(tensor, adapters).unwrap() {
            change.apply(&mut elements, 0);
        }
        (tensor.info.name.clone(), tensor.info.shape.to_vec(), elements)
    });
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", "fuzz");
    model(metadata, &tensors.collect::<Vec<_>>())
}

fn outputs(executor: Executor) -> Value {
    let options = ContextOptions {
        tokens: IDS.len() + appended_features(&executor).rows,
        sequences: 1,
        cache_type: CacheType::F32,
        ..ContextOptions::default()
    };
    let graph = executor.graph();
    let kinds = [OutputKind::Logits, OutputKind::Hidden];
    let kind = kinds.into_iter().find(|kind| graph.output(*kind).is_some()).unwrap();
    let mut context = Context::new(Arc::new(executor), options).unwrap();
    run_encoder(&mut context, 0);
    let width = context.executor().graph().main().0.token_features_width().unwrap_or(0);
    let data = (0..IDS.len() * width).map(|i| (i % 5) as f32 / 4.0).collect();
    let features = Value { rows: IDS.len(), width, data };
    let batch = Batch::all_outputs(&IDS);
    context.run_kinds(&batch, Some(&features), &[kind], &()).unwrap().remove(0)
}

/// Whether the token embedding is multiplied too, as an output projection.
fn is_tied(graph: &Graph) -> bool {
    let weights = &graph.raw().weights;
    let of = |op: &Op| op.weights().into_iter().any(|id| weights[id.0 as usize].name == EMBEDDING);
    graph.main().0.ops.iter().any(|op| !matches!(op, Op::Embedding(_)) && of(op))
}

/// Returns the largest difference, relative to the largest output.
fn distance(a: &Value, b: &Value) -> f32 {
    let largest =
        |values: &mut dyn Iterator<Item = f32>| values.fold(0.0, |m: f32, x| m.max(x.abs()));
    let difference = largest(&mut a.data.iter().zip(&b.data).map(|(a, b)| a - b));
    difference / largest(&mut a.data.iter().copied())
}

#[test]
fn outputs_with_adapters_are_those_of_the_merged_model() {
    for name in architectures() {
        let graph = tiny::tiny(name).unwrap();
        let base = tiny::model(&graph).unwrap();
        let adapter = adapter(&base, !is_tied(&graph));
        let adapters = [(Adapter::read(&adapter).unwrap(), 0.5)];
        let run = |model: &Model| Executor::new(model, graph.clone(), Precision::Exact).unwrap();
        let plain = outputs(run(&base));
        let with = outputs(run(&base).with_adapters(&base, &adapters).unwrap());
        let merged = outputs(run(&merged(&base, &adapters)));
        let (far, effect) = (distance(&with, &merged), distance(&plain, &with));
        // Sums of F32 in another order.
        assert!(far < 1e-3, "{name}: {far}, effect {effect}");
        assert!(effect > 10.0 * far, "{name}: {far}, effect {effect}");
        let none = [(adapters[0].0.clone(), 0.0)];
        let without = outputs(run(&base).with_adapters(&base, &none).unwrap());
        assert!(distance(&plain, &without) == 0.0, "{name}: a scale of 0");
    }
}

#[test]
fn the_pair_of_the_token_embedding_changes_lookups_only() {
    let graph = r#"{"architecture": "x", "states": [],
        "weights": [{"name": "token_embd.weight", "shape": [3, 9]}],
        "main": {"outputs": [{"kind": "logits", "value": 1}], "ops": [
            {"op": "embedding", "table": 0, "index": "token"},
            {"op": "matmul", "x": 0, "weight": 0}]}}"#;
    let graph = Graph::new(serde_json::from_str(graph).unwrap(), Limits::default()).unwrap();
    let base = tiny::model(&graph).unwrap();
    let adapter = Adapter::read(&adapter(&base, true)).unwrap();
    let executor = Executor::new(&base, graph, Precision::Exact).unwrap();
    let found = outputs(executor.with_adapters(&base, &[(adapter.clone(), 1.0)]).unwrap());
    let table = values(&base.tensors()[0]).unwrap();
    let mut changed = table.clone();
    let change = Change::read(&base.tensors()[0], &[(adapter, 1.0)]).unwrap().unwrap();
    change.apply(&mut changed, 0);
    assert!(changed != table);
    for (row, id) in IDS.iter().enumerate() {
        let x = &changed[*id as usize * 3..][..3];
        for (token, logit) in found.row(row).iter().enumerate() {
            let expected: f32 = x.iter().zip(&table[token * 3..]).map(|(x, y)| x * y).sum();
            assert!((logit - expected).abs() < 1e-6, "{row} {token}: {logit} {expected}");
        }
    }
}
