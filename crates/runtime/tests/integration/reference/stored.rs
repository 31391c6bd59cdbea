//! Stored graphs of models with an unknown architecture.

use std::path::Path;
use std::sync::Arc;

use gguf::Metadata;
use gguf_graph::{Limits, OutputKind, stored};
use gguf_pipeline::Job;
use gguf_runtime::{Batch, Context, Executor, Precision, Value};
use gguf_store::{Model, Overwrite};

use super::data::{self, tokens};
use super::states::frames;
use super::{options, zoo};

/// Folders with models.
const ALL: &[&str] = &[
    "bert", "bloom", "falcon", "gemma2", "gemma3", "gpt2", "gpt_neox", "gptj", "llama", "mamba",
    "mistral", "mixtral", "mpt", "olmo2", "phi3", "qwen2", "qwen3", "qwen3moe", "rwkv", "stablelm",
    "whisper",
];

/// Returns the metadata with an unknown architecture and without hyper-parameters.
fn unknown(metadata: &Metadata) -> Metadata {
    let prefix = format!("{}.", metadata.architecture().unwrap());
    let mut unknown = Metadata::new();
    for (key, value) in metadata.iter().filter(|(key, _)| !key.starts_with(&prefix)) {
        unknown.set(key.to_owned(), value.clone());
    }
    unknown.set("general.architecture", "of-next-year");
    unknown
}

fn run(executor: Executor, folder: &Path, tokens: &[u32]) -> Value {
    let executor = Arc::new(executor);
    let kind = match executor.width(OutputKind::Logits) {
        Some(_) => OutputKind::Logits,
        None => OutputKind::Hidden,
    };
    let mut context = Context::new(executor.clone(), options(1)).unwrap();
    if executor.graph().encoder().is_some() {
        context.encode(0, &frames(folder), &()).unwrap();
    }
    context.run(&Batch::all_outputs(tokens), kind, &()).unwrap()
}

#[test]
fn stored_graphs_are_bit_exact() {
    for name in ALL {
        let Some(folder) = zoo(name) else { return };
        let dir = tempfile::tempdir().unwrap();
        let (known, renamed) = (dir.path().join("known.gguf"), dir.path().join("renamed.gguf"));
        data::convert(&folder, &known);
        let model = Model::open(&known).unwrap();
        let graph = gguf_models::build_graph(model.metadata(), Executor::tensors(&model)).unwrap();
        let mut job = Job::copy(&model);
        job.metadata = unknown(&job.metadata);
        stored::store(&graph, &mut job.metadata);
        job.write(&renamed, &Overwrite::default(), &()).unwrap();
        let stranger = Model::open(&renamed).unwrap();
        let found = gguf_models::build_graph(stranger.metadata(), Executor::tensors(&stranger));
        assert_eq!(found.unwrap_err().code, "architecture-unknown", "{name}");
        let read = stored::stored(stranger.metadata(), Limits::default()).unwrap().unwrap();
        assert_eq!(read, graph, "{name}");
        let tokens = tokens(&folder);
        let executor = |model, graph| Executor::new(model, graph, Precision::Exact).unwrap();
        let built = run(executor(&model, graph), &folder, &tokens);
        let stored = run(executor(&stranger, read), &folder, &tokens);
        assert!(built == stored, "{name}: to the bit");
    }
}
