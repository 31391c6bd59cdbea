//! Commands that people expect and that have another name, or do not exist.

use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use gguf::suggest;

/// Guesses, and what exists.
const GUESSES: &[(&[&str], &str)] = &[
    (&["download", "get", "fetch"], "`gguf pull hf:org/repo` downloads a model of the Hub"),
    (&["models"], "`gguf list` lists stored models of the Hub, `gguf inspect *.gguf` files"),
    (
        &["serve", "server", "llama-server", "start"],
        "there is no server; `gguf chat` and `gguf generate` run models, and llama.cpp's llama-server serves them",
    ),
    (
        &["llama-mtmd-cli", "llama-llava-cli"],
        "images are not read; llama.cpp's llama-mtmd-cli does",
    ),
    (
        &["push", "publish"],
        "`gguf upload` publishes files on the Hub; `gguf card` writes the model card",
    ),
    (&["remove", "delete"], "`gguf rm` removes stored models of the Hub"),
    (&["stop", "ps"], "nothing runs in the background"),
    (&["create", "make"], "`gguf convert` makes a GGUF of a checkpoint"),
    (
        &["compare"],
        "`gguf diff` compares files, `gguf divergence` and `gguf quality` compare predictions",
    ),
    (&["embedding", "embeddings"], "`gguf embed` computes embeddings"),
    (&["complete", "completion", "prompt", "ask"], "`gguf generate` completes and answers"),
    (
        &["metadata", "meta", "header", "keys", "cat"],
        "`gguf inspect` shows metadata, `gguf edit` changes it",
    ),
    (
        &["fix", "repair"],
        "`gguf check --fix` repairs what has one right answer, `gguf edit` changes the rest; \
         `gguf check FILE --against hf:org/repo --repair` repairs a download",
    ),
    (&["test", "lint", "verify-file"], "`gguf check` validates a model"),
    (&["whisper", "speech", "stt"], "`gguf transcribe` transcribes audio with Whisper"),
    (&["update", "upgrade"], "install the new version over the old one"),
];

/// Returns what exists for a guess.
pub fn answer(word: &str) -> Option<&'static str> {
    GUESSES.iter().find(|(words, _)| words.contains(&word)).map(|(_, answer)| *answer)
}

/// Removes suggestions of the argument parser that are not misspelled by the word.
fn keep_near(error: &mut clap::Error, word: &str) {
    let Some(suggested) = error.remove(ContextKind::SuggestedSubcommand) else { return };
    let names = match suggested {
        ContextValue::String(name) => vec![name],
        ContextValue::Strings(names) => names,
        _ => return,
    };
    let is_near = |name: &String| suggest::distance(word, name, word.len().div_ceil(3)).is_some();
    let near: Vec<_> = names.into_iter().filter(is_near).collect();
    if !near.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
    }
}

/// Replaces the tip of an unknown command by one of [`GUESSES`], or names the command for a file.
pub fn explain(error: &mut clap::Error) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand).cloned()
    else {
        return;
    };
    let tip = match answer(&word) {
        Some(tip) => tip.to_owned(),
        None if Path::new(&word).exists() || word.starts_with("hf:") => {
            format!("`gguf inspect {word}` shows what is in it")
        }
        None if word.contains('/') => format!("a model of the Hub is named `hf:{word}`"),
        None => return keep_near(error, &word),
    };
    error.remove(ContextKind::SuggestedSubcommand);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}
