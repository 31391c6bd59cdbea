//! Drafts of draft models that read hidden states.

use gguf_graph::OutputKind;
use gguf_kit::convert::{ConvertOptions, Kind, OutputOptions, Plan};
use gguf_kit::draft::Draft;
use gguf_kit::run::{ExecutorOptions, load};
use gguf_runtime::{Batch, CacheType, Context, ContextOptions};
use gguf_store::Overwrite;
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};

use crate::eagle3::eagle3;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");

/// Three drafted tokens after each of six tokens of the text, by llama.cpp with the same two files: `llama-speculative-simple
/// --spec-type draft-eagle3 --spec-draft-n-max 3 --temp 0 -ctk f32 -ctv f32 -ctkd f32 -ctvd f32 -fa off -lv 5`.
const OF_LLAMA_CPP: [[u32; 3]; 6] = [
    [542, 1298, 594],
    [1486, 1486, 1002],
    [1486, 1486, 450],
    [1530, 1530, 418],
    [1050, 1050, 1050],
    [310, 310, 310],
];

#[test]
fn eagle_drafts_are_those_of_llama_cpp() {
    let dir = tempfile::tempdir().unwrap();
    let [f16, draft] = ["f16.gguf", "eagle.gguf"].map(|name| dir.path().join(name));
    let outputs = vec![OutputOptions { outtype: None, path: Some(f16.clone()) }];
    let conversion = ConvertOptions { outputs, ..ConvertOptions::default() };
    let mut plan = Plan::new(MODEL, Kind::Checkpoint, &conversion, &()).unwrap();
    plan.write(&Overwrite::default(), &|| (), &()).unwrap();
    let [f16, draft] = [&f16, &draft].map(|path| path.to_str().unwrap());
    eagle3(f16, draft, 256, &[]);
    let options = ExecutorOptions::default();
    let target = load(f16, &options).unwrap();
    let tokenizer =
        Tokenizer::from_metadata(&target.metadata, TokenizerOptions::default()).unwrap();
    let draft = Draft::load(draft, &options, &target, &tokenizer).unwrap();
    let options =
        ContextOptions { tokens: 128, cache_type: CacheType::F32, ..ContextOptions::default() };
    let mut source = draft.source(options).unwrap();
    let mut context = Context::new(draft.target().clone(), options).unwrap();
    let mut text = tokenizer.encode("And God said, Let there be", EncodeOptions::default());
    let mut next = text.clone();
    for expected in OF_LLAMA_CPP {
        let position = context.len(0);
        let kinds = [OutputKind::Logits, OutputKind::Features];
        let found = context.run_kinds(&Batch::last_output(&next, 0), None, &kinds, &()).unwrap();
        source.read(position, &next, &found[1], &()).unwrap();
        let logits = found[0].row(0);
        let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let id = logits.iter().position(|logit| *logit == best).unwrap() as u32;
        text.push(id);
        next = vec![id];
        let mut drafted = Vec::new();
        while drafted.len() < 3 {
            drafted.push(source.next(&text, &drafted, &()).unwrap().unwrap().id);
        }
        assert_eq!(drafted, expected, "after token {id}");
    }
}
