//! Rules on the tokenizer: equal lengths of arrays, ids, merges and byte tokens within the vocabulary.
//!
//! Each array takes one pass. Texts are borrowed from the file and may be any bytes; one set of tokens is
//! the only allocation per token.

pub(crate) mod pre_tokenizer;
pub(crate) mod special_tokens;
pub(crate) mod vocabulary_family;

use std::collections::HashSet;
use std::ops::ControlFlow;

use gguf::{Array, FileKind, Finding, Sink, Subject};
use gguf_models::schema;
use gguf_models::token::byte_of_token;

pub(crate) const TOKENS: &str = "tokenizer.ggml.tokens";
pub(crate) const TYPES: &str = "tokenizer.ggml.token_type";
pub(crate) const MODEL: &str = "tokenizer.ggml.model";
pub(crate) const PRE: &str = "tokenizer.ggml.pre";
const SCORES: &str = "tokenizer.ggml.scores";
const MERGES: &str = "tokenizer.ggml.merges";

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let metadata = &subject.header.metadata;
    if metadata.get(MODEL).is_none() && is_text_model(subject) {
        sink.report(
            Finding::error("tokenizer-missing", "the tokenizer is missing").key(MODEL).help(
                "loaders reject the model; convert it again from a directory with its tokenizer",
            ),
        )?;
    }
    pre_tokenizer::model(subject, sink)?;
    let Some(tokens) = metadata.array(TOKENS) else { return missing(subject, sink) };
    // The rules on keys report arrays of another type.
    if tokens.strings().is_none() {
        return ControlFlow::Continue(());
    }
    lengths(subject, tokens.len(), sink)?;
    special_tokens::check(subject, tokens, sink)?;
    pre_tokenizer::check(subject, tokens, sink)?;
    let is_bpe = metadata.str(MODEL) == Some("gpt2");
    // Kimi K2 has no merges; models without text input, such as Whisper, do not encode text.
    let encodes_text = metadata.str(PRE) != Some("kimi-k2") && is_text_model(subject);
    if is_bpe && encodes_text && metadata.get(MERGES).is_none() {
        sink.report(
            Finding::error("tokenizer-merges-missing", "a BPE tokenizer has no merges")
                .key(MERGES)
                .help(
                    "loaders reject the model; convert it again from a directory with its tokenizer",
                ),
        )?;
    }
    if is_bpe && metadata.get(PRE).is_none() {
        sink.report(
            Finding::warning("tokenizer-pre-missing", "the pre-tokenizer is missing")
                .key(PRE)
                .help(
                    "loaders use a default that may produce other tokens; convert the model again",
                ),
        )?;
    }
    let known = vocabulary(subject, tokens, sink)?;
    merges(subject, &known, sink)?;
    if metadata.str(MODEL) == Some("llama") {
        bytes(subject, tokens, sink)?;
        scores(subject, sink)?;
    }
    ControlFlow::Continue(())
}

/// Returns true if the file is a model that runs on text.
fn is_text_model(subject: &Subject) -> bool {
    let architecture = subject.header.metadata.architecture().and_then(schema::architecture);
    architecture.is_some_and(|architecture| !architecture.open)
        && matches!(FileKind::detect(subject.header), FileKind::Model | FileKind::FirstShard)
}

/// Reports a tokenizer without tokens.
fn missing(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let named = subject.header.metadata.str(MODEL);
    if named.is_none_or(|name| matches!(name, "none" | "no_vocab" | "rwkv"))
        || subject.header.metadata.get(TOKENS).is_some()
    {
        return ControlFlow::Continue(());
    }
    sink.report(
        Finding::error("tokenizer-tokens-missing", "the tokenizer has no tokens")
            .key(TOKENS)
            .help("convert the model again from a directory with its tokenizer"),
    )
}

/// Checks the lengths of arrays per token, and the vocabulary sizes.
fn lengths(subject: &Subject, tokens: u64, sink: &mut dyn Sink) -> ControlFlow<()> {
    let metadata = &subject.header.metadata;
    for key in [SCORES, TYPES] {
        if let Some(array) = metadata.array(key)
            && array.len() != tokens
        {
            let message = format!("has {} elements for {tokens} tokens", array.len());
            // Loaders read one element per token, past the end of a short array.
            let finding = match array.len() < tokens {
                true => Finding::error("tokenizer-length", message),
                false => Finding::warning("tokenizer-length", message),
            };
            sink.report(
                finding
                    .key(key)
                    .at(subject.value_at(key))
                    .help("the array must have one element for each token"),
            )?;
        }
    }
    let Some(name) = metadata.architecture() else { return ControlFlow::Continue(()) };
    let key = format!("{name}.vocab_size");
    if let Some(size) = metadata.u64(&key)
        && size != tokens
    {
        let message = format!("is {size}, but there are {tokens} tokens");
        let at = subject.value_at(&key);
        sink.report(Finding::warning("vocab-size", message).key(key).at(at))?;
    }
    let mut tensors = subject.header.tensors.iter().enumerate();
    if let Some((i, tensor)) = tensors.find(|(_, tensor)| tensor.name == "token_embd.weight")
        && let Some(&rows) = tensor.shape.get(1)
        && rows != tokens
    {
        let message = format!("has {rows} rows for {tokens} tokens");
        // The rules on architectures report the shape for known ones.
        let (known, padded) = (schema::architecture(name).is_some(), rows > tokens);
        let finding = match (known, padded) {
            (true, false) => return ControlFlow::Continue(()),
            (true, true) => Finding::error("vocab-padding", message)
                .help("the vocabulary lacks its padding tokens; run `gguf check --fix`"),
            (false, _) => Finding::warning("vocab-rows", message),
        };
        sink.report(finding.tensor("token_embd.weight").at(subject.tensor_at(i)))?;
    }
    ControlFlow::Continue(())
}

/// Returns the set of all tokens; reports duplicates.
fn vocabulary<'d>(
    subject: &Subject<'d>,
    tokens: &'d Array,
    sink: &mut dyn Sink,
) -> ControlFlow<(), HashSet<&'d [u8]>> {
    let mut known = HashSet::new();
    let (mut repeated, mut empty) = (Faults::default(), 0u64);
    for (id, token) in tokens.strings().into_iter().flatten().enumerate() {
        if token.is_empty() {
            empty += 1;
        } else if known.insert(token) {
            continue;
        } else {
            repeated.add(id, token);
        }
    }
    let at = subject.value_at(TOKENS);
    if let Some(which) = repeated.describe() {
        let message = format!("tokens have the same text as another: {which}");
        let finding = Finding::error("token-duplicate", message).key(TOKENS).at(at);
        sink.report(finding.help("loaders abort, or choose different ids"))?;
    }
    if empty > 1 {
        let message = format!("{empty} tokens have no text");
        sink.report(Finding::warning("token-empty", message).key(TOKENS).at(at))?;
    }
    ControlFlow::Continue(known)
}

/// Checks that merges consist of two known tokens with a known result.
fn merges(subject: &Subject, known: &HashSet<&[u8]>, sink: &mut dyn Sink) -> ControlFlow<()> {
    let Some(merges) = subject.header.metadata.array(MERGES) else {
        return ControlFlow::Continue(());
    };
    let (mut malformed, mut dangling) = (Faults::default(), Faults::default());
    let mut joined = Vec::new();
    for (i, merge) in merges.strings().into_iter().flatten().enumerate() {
        // A token may begin with a space: search from the second byte on.
        let space = merge.iter().skip(1).position(|&byte| byte == b' ').map(|at| at + 1);
        let Some((left, right)) = space.and_then(|at| {
            let (left, right) = merge.split_at_checked(at)?;
            Some((left, right.get(1..)?)).filter(|(_, right)| !right.is_empty())
        }) else {
            malformed.add(i, merge);
            continue;
        };
        joined.clear();
        joined.extend_from_slice(left);
        joined.extend_from_slice(right);
        if !(known.contains(left) && known.contains(right) && known.contains(&joined[..])) {
            dangling.add(i, merge);
        }
    }
    let at = subject.value_at(MERGES);
    if let Some(which) = malformed.describe() {
        let message = format!("not two tokens separated by a space: {which}");
        sink.report(Finding::warning("merge-malformed", message).key(MERGES).at(at))?;
    }
    if let Some(which) = dangling.describe() {
        let message = format!("tokens or their result are not in the vocabulary: {which}");
        let help =
            "these merges are never applied; vocabulary and merges may belong to different models";
        sink.report(Finding::warning("merge-unknown", message).key(MERGES).at(at).help(help))?;
    }
    ControlFlow::Continue(())
}

/// Checks that the byte fallback tokens `<0x00>` to `<0xFF>` are complete.
fn bytes(subject: &Subject, tokens: &Array, sink: &mut dyn Sink) -> ControlFlow<()> {
    let mut found = [false; 256];
    for token in tokens.strings().into_iter().flatten() {
        if let Some(byte) = byte_of_token(token) {
            found[usize::from(byte)] = true;
        }
    }
    let Some(first) = found.iter().position(|&found| !found) else {
        return ControlFlow::Continue(());
    };
    let count = found.iter().filter(|&&found| !found).count();
    let message = format!("{count} of 256 byte tokens are missing; the first is <0x{first:02X}>");
    sink.report(
        Finding::warning("byte-tokens-missing", message)
            .key(TOKENS)
            .at(subject.value_at(TOKENS))
            .help("byte fallback fails for text outside of the vocabulary"),
    )
}

/// Checks that the scores of SentencePiece tell tokens apart: they decide which tokens are merged.
fn scores(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    /// Size from which on a vocabulary without scores is not one of a test.
    const MIN_TOKENS: u64 = 1000;
    let Some(scores) = subject.header.metadata.array(SCORES) else {
        return ControlFlow::Continue(());
    };
    let mut values = scores.iter().map(|value| value.to_f64());
    let first = values.next().flatten();
    if scores.len() < MIN_TOKENS || first.is_none() || values.any(|value| value != first) {
        return ControlFlow::Continue(());
    }
    let message = format!("all {} scores are the same", scores.len());
    sink.report(
        Finding::warning("tokenizer-scores", message)
            .key(SCORES)
            .at(subject.value_at(SCORES))
            .help("text is split into other tokens than in training; convert the model again from a directory with its tokenizer"),
    )
}

/// Number of elements with a fault, and the first of them.
#[derive(Default)]
struct Faults {
    count: u64,
    first: Option<String>,
}

impl Faults {
    fn add(&mut self, i: usize, text: &[u8]) {
        self.count += 1;
        self.first.get_or_insert_with(|| format!("element {i}, {}", shortened(text)));
    }

    fn describe(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        Some(match self.count {
            1 => first.clone(),
            count => format!("{count} elements, the first is {first}"),
        })
    }
}

/// Formats a text, shortened: texts in broken files can be as long as the file.
fn shortened(text: &[u8]) -> String {
    const SHOWN: usize = 40;
    let text = text.get(..SHOWN).unwrap_or(text);
    format!("{:?}", String::from_utf8_lossy(text))
}
