//! Rules on the tokenizer model and the pre-tokenizer: known names, and names that fit the vocabulary.

use std::ops::ControlFlow;

use gguf::suggest::{did_you_mean, nearest};
use gguf::{Array, Finding, Sink, Subject};
use gguf_models::pre_tokenizer::{NAMES, aliases};

use super::vocabulary_family::Family;
use super::{MODEL, PRE, shortened};

/// Values of `tokenizer.ggml.model` that loaders know.
const MODELS: &[&str] = &[
    "none",
    "no_vocab",
    "llama",
    "gpt2",
    "bert",
    "t5",
    "rwkv",
    "plamo2",
    "gemma4",
    "whitespace",
    "replit",
];

/// Space of SentencePiece, and of byte-level BPE.
const SENTENCEPIECE_SPACE: &str = "\u{2581}";
const BYTE_LEVEL_SPACE: &str = "\u{120}";

pub(super) fn check(subject: &Subject, tokens: &Array, sink: &mut dyn Sink) -> ControlFlow<()> {
    let metadata = &subject.header.metadata;
    if metadata.str(MODEL) == Some("gpt2") {
        names(subject, sink)?;
    }
    alphabet(subject, tokens, sink)
}

/// Reports a tokenizer model that no loader knows.
pub(super) fn model(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let Some(model) = subject.header.metadata.str(MODEL).filter(|name| !MODELS.contains(name))
    else {
        return ControlFlow::Continue(());
    };
    let hint = hint(model, MODELS.iter().copied());
    let message =
        format!("is {}, which is not a known tokenizer model{hint}", shortened(model.as_bytes()));
    sink.report(
        Finding::error("tokenizer-unknown", message)
            .key(MODEL)
            .at(subject.value_at(MODEL))
            .help("loaders reject the model; set the name with `gguf edit --set`"),
    )
}

/// Returns "; did you mean ...?" if a known name is close.
fn hint(name: &str, known: impl IntoIterator<Item = &'static str>) -> String {
    match &nearest(name, known)[..] {
        [] => String::new(),
        near => format!("; {}", did_you_mean(near)),
    }
}

/// Reports a pre-tokenizer that no loader knows, or that is not the one of the vocabulary.
fn names(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let metadata = &subject.header.metadata;
    let Some(pre) = metadata.str(PRE) else { return ControlFlow::Continue(()) };
    let at = subject.value_at(PRE);
    let family = Family::of(metadata).filter(|family| !family.has_pre(pre));
    let right = family.and_then(|family| Some((family.name, family.pre()?)));
    if aliases(pre).is_empty() {
        let hint = match right {
            Some((family, name)) => format!("; the vocabulary is that of {family}: `{name}`"),
            None => hint(pre, NAMES.iter().copied().flatten().copied()),
        };
        let message =
            format!("is {}, which is not a known pre-tokenizer{hint}", shortened(pre.as_bytes()));
        return sink.report(Finding::error("tokenizer-unknown", message).key(PRE).at(at).help(
            "loaders reject the model; set the name of its pre-tokenizer with `gguf edit --set`",
        ));
    }
    let Some((family, name)) = right else { return ControlFlow::Continue(()) };
    let message = format!("is {pre:?}, but the vocabulary is that of {family}: `{name}`");
    sink.report(
        Finding::warning("tokenizer-pre-wrong", message)
            .key(PRE)
            .at(at)
            .help("the model gets other tokens than in training; run `gguf check --fix`"),
    )
}

/// Reports a vocabulary that is written as another tokenizer model writes it.
fn alphabet(subject: &Subject, tokens: &Array, sink: &mut dyn Sink) -> ControlFlow<()> {
    /// Fraction of tokens with a leading space in every vocabulary of the kind, as a divisor.
    const PART: u64 = 10;
    let metadata = &subject.header.metadata;
    // These pre-tokenizers do not map bytes to characters.
    let plain = matches!(metadata.str(PRE), Some("gemma4" | "sarvam-moe" | "whitespace"));
    let (own, other, message) = match metadata.str(MODEL) {
        Some("gpt2") if !plain => (
            BYTE_LEVEL_SPACE,
            SENTENCEPIECE_SPACE,
            "the tokens are those of SentencePiece: `llama`",
        ),
        Some("llama") => (
            SENTENCEPIECE_SPACE,
            BYTE_LEVEL_SPACE,
            "the tokens are those of byte-level BPE: `gpt2`",
        ),
        _ => return ControlFlow::Continue(()),
    };
    let count = |space: &str| {
        let texts = tokens.strings().into_iter().flatten();
        texts.filter(|text| text.starts_with(space.as_bytes())).count() as u64
    };
    let (own, other) = (count(own), count(other));
    if other < tokens.len() / PART || other <= own * PART || other < PART {
        return ControlFlow::Continue(());
    }
    let model = metadata.str(MODEL).unwrap_or_default();
    let message = format!(
        "is {model:?}, but {message} ({other} tokens of {} begin with its space)",
        tokens.len()
    );
    sink.report(
        Finding::warning("tokenizer-model-wrong", message)
            .key(MODEL)
            .at(subject.value_at(MODEL))
            .help("text is split into single bytes; convert the model again from a directory with its tokenizer"),
    )
}
