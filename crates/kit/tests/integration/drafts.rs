//! Drafts of draft models that read hidden states.

use gguf_graph::OutputKind;
use gguf_kit::convert::{ConvertOptions, Kind, OutputOptions, Plan};
use gguf_kit::draft::Draft;
use gguf_kit::run::{ExecutorOptions, load};
use gguf_runtime::{Batch, CacheType, Context, ContextOptions};
use gguf_store::Overwrite;
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};

use crate::draft_models::{dflash, eagle3};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");

/// Tokens of a text, and what is drafted after each of them.
type Drafts = Vec<Vec<u32>>;

/// Drafted tokens after each of six tokens of the text, by llama.cpp with the same two files: `llama-speculative-simple
/// --spec-type draft-eagle3 --spec-draft-n-max 3 --temp 0 -ctk f32 -ctv f32 -ctkd f32 -ctvd f32 -fa off -lv 5`.
const EAGLE: [&[u32]; 6] = [
    &[542, 1298, 594],
    &[1486, 1486, 1002],
    &[1486, 1486, 450],
    &[1530, 1530, 418],
    &[1050, 1050, 1050],
    &[310, 310, 310],
];

/// As [`EAGLE`], by `draft-dflash` with `--spec-draft-n-max 5`.
const DFLASH: [&[u32]; 6] = [
    &[506, 506, 188, 188, 506],
    &[111, 111, 111, 218, 1293],
    &[111, 101, 18, 834, 834],
    &[18, 169, 169, 18, 195],
    &[506, 18, 18, 52, 607],
    &[468, 468, 607, 607, 607],
];

/// As [`DFLASH`], with a window of 4 tokens in the first layer.
const WINDOWED: [&[u32]; 6] = [
    &[1468, 1969, 1921, 1921, 1921],
    &[22, 970, 1468, 1921, 1921],
    &[491, 1921, 1921, 1921, 1921],
    &[388, 685, 388, 1921, 1921],
    &[760, 388, 46, 1921, 1921],
    &[452, 1166, 1166, 1507, 1507],
];

/// As [`EAGLE`], by `draft-dspark` with `--spec-draft-n-max 6`.
const DSPARK: [&[u32]; 6] = [
    &[108, 1986, 1986, 1986, 1986, 1986],
    &[1034, 1034, 1034, 1034, 1034, 1034],
    &[1034, 1986, 1986, 372, 372, 372],
    &[372, 372, 372, 372, 1074, 1000],
    &[1962, 1034, 1074, 1074, 1000, 1000],
    &[1276, 1000, 1512, 1000, 1000, 1034],
];

#[test]
fn eagle_drafts_are_those_of_llama_cpp() {
    assert_eq!(drafts(3, &|target, path| eagle3(target, path, 256, &[])), EAGLE);
}

#[test]
fn dflash_drafts_are_those_of_llama_cpp() {
    assert_eq!(drafts(5, &|target, path| dflash(target, path, None, &[])), DFLASH);
    let window = [
        ("attention.sliding_window", 4u32.into()),
        ("attention.sliding_window_pattern", gguf::Array::from(&[true, false][..]).into()),
    ];
    assert_eq!(drafts(5, &|target, path| dflash(target, path, None, &window)), WINDOWED);
}

#[test]
fn dspark_drafts_are_those_of_llama_cpp() {
    assert_eq!(drafts(6, &|target, path| dflash(target, path, Some(8), &[])), DSPARK);
}

/// Returns the tokens that a draft model drafts after each of six tokens of a text.
fn drafts(count: usize, write: &dyn Fn(&str, &str)) -> Drafts {
    let dir = tempfile::tempdir().unwrap();
    let [f16, draft] = ["f16.gguf", "draft.gguf"].map(|name| dir.path().join(name));
    let outputs = vec![OutputOptions { outtype: None, path: Some(f16.clone()) }];
    let conversion = ConvertOptions { outputs, ..ConvertOptions::default() };
    let mut plan = Plan::new(MODEL, Kind::Checkpoint, &conversion, &()).unwrap();
    plan.write(&Overwrite::default(), &|| (), &()).unwrap();
    let [f16, draft] = [&f16, &draft].map(|path| path.to_str().unwrap());
    write(f16, draft);
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
    let mut all = Vec::new();
    for _ in 0..6 {
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
        while drafted.len() < count {
            drafted.push(source.next(&text, &drafted, &()).unwrap().unwrap().id);
        }
        all.push(drafted);
    }
    all
}
