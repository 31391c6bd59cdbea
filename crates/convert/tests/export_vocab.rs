//! Vocabularies there and back: the files that are written for the `tokenizer.*` keys lead to the
//! same keys.

use std::fs;
use std::path::{Path, PathBuf};

use gguf::Metadata;
use gguf_convert::export::{self, Tokenizer};
use gguf_convert::vocab::{Kind, Options, load};
use serde_json::{Value, json};

/// The reference data, if there is any.
fn data() -> Option<PathBuf> {
    let dir = std::env::var_os("GGUF_TEST_DATA");
    if dir.is_none() {
        eprintln!("SKIPPED: GGUF_TEST_DATA names no folder with reference data");
    }
    dir.map(PathBuf::from)
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn exported(metadata: &Metadata, kind: Kind, hints: &[&str], rows: u64) -> Tokenizer {
    export::tokenizer(metadata, kind, hints, &json!({ "vocab_size": rows })).unwrap()
}

/// Keys with values, in order of keys.
fn keys(metadata: &Metadata) -> Vec<String> {
    let mut keys: Vec<_> = metadata.iter().map(|(key, value)| format!("{key} {value:?}")).collect();
    keys.sort_unstable();
    keys
}

/// Exports what is in `from`, and compares what is read of that. Returns the names of the files.
#[track_caller]
fn there_and_back(from: &Path, kind: Kind, options: &Options) -> Vec<&'static str> {
    let there = load(from, kind, options).unwrap();
    let rows = there.len as u64;
    let tokenizer = exported(&there.metadata, kind, options.hints, rows);
    assert_eq!(tokenizer.notes, [] as [String; 0], "{}", from.display());
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &tokenizer, rows);
    let back = load(dir.path(), kind, options).unwrap();
    assert_eq!(keys(&back.metadata), keys(&there.metadata), "{}", from.display());
    if let Some(keep) = std::env::var_os("KEEP_EXPORTS") {
        let keep = Path::new(&keep).join(from.file_name().unwrap());
        fs::create_dir_all(&keep).unwrap();
        write(&keep, &tokenizer, rows);
    }
    tokenizer.files.iter().map(|file| file.name).collect()
}

fn write(dir: &Path, tokenizer: &Tokenizer, rows: u64) {
    export::write_files(dir, &tokenizer.files).unwrap();
    let mut config = tokenizer.config.clone();
    config.insert("vocab_size".into(), rows.into());
    fs::write(dir.join("config.json"), Value::from(config).to_string()).unwrap();
}

#[test]
fn the_zoo_goes_there_and_back() {
    let Some(data) = data() else { return };
    for (folder, kind, hints) in [
        ("llama", Kind::Llama, &[][..]),
        ("mistral", Kind::Llama, &[]),
        ("mixtral", Kind::Llama, &[]),
        ("mixed-llama", Kind::Llama, &[]),
        ("gptq-llama", Kind::Llama, &[]),
        ("fp8-llama", Kind::Llama, &[]),
        ("gemma2", Kind::Gemma { first: false }, &[]),
        ("gemma3", Kind::Gemma { first: false }, &[]),
        ("phi3", Kind::Phi3, &["dbrx", "gpt-4o"]),
        ("qwen2", Kind::SentencePieceElseBpe, &["qwen2"]),
        ("qwen3", Kind::SentencePieceElseBpe, &["qwen2"]),
        ("qwen3moe", Kind::Bpe, &["qwen2"]),
        ("gpt2", Kind::Bpe, &["gpt-2"]),
        ("gptj", Kind::Bpe, &["gpt-2"]),
        ("gpt_neox", Kind::Bpe, &["gpt-2"]),
        ("mamba", Kind::BpeElseSentencePiece, &["gpt-2"]),
        ("mpt", Kind::Bpe, &["mpt"]),
        ("bloom", Kind::Bpe, &["bloom"]),
        ("falcon", Kind::Bpe, &["falcon"]),
        ("stablelm", Kind::Bpe, &["stablelm2", "gpt-2"]),
        ("olmo2", Kind::Bpe, &["dbrx"]),
        ("rwkv", Kind::Rwkv, &["gpt-2"]),
        ("whisper", Kind::Bpe, &["gpt-2"]),
        ("bert", Kind::Encoder, &[]),
    ] {
        let dir = data.join("zoo").join(folder);
        let vocab_size = read_json(&dir.join("config.json"))["vocab_size"].as_u64();
        there_and_back(&dir, kind, &Options { pre: None, hints, vocab_size });
    }
}
