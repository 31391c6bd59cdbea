//! Commands that people expect and that have another name, or do not exist.

use std::path::Path;

use clap::error::{ContextKind, ContextValue};

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

/// Replaces the tip of an unknown command by one of [`GUESSES`], or names the command for a file.
pub fn explain(error: &mut clap::Error) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand).cloned()
    else {
        return;
    };
    let guess = GUESSES.iter().find(|(words, _)| words.contains(&&*word));
    let tip = match guess {
        Some((_, tip)) => (*tip).to_owned(),
        None if Path::new(&word).exists() || word.starts_with("hf:") => {
            format!("`gguf inspect {word}` shows what is in it")
        }
        None => return,
    };
    error.remove(ContextKind::SuggestedSubcommand);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}
