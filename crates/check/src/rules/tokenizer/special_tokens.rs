//! Rules on special tokens: ids within the vocabulary, texts and types that fit their roles, and whether the
//! tokenizer adds BOS.

use std::ops::ControlFlow;

use gguf::{Array, Finding, Metadata, Severity, Sink, Subject};
use gguf_models::token::{TokenType, byte_of_token};

use super::vocabulary_family::Family;
use super::{MODEL, TYPES, is_text_model, shortened};

pub(crate) const BOS: &str = "tokenizer.ggml.bos_token_id";
pub(crate) const EOS: &str = "tokenizer.ggml.eos_token_id";
pub(crate) const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
const TEMPLATE: &str = "tokenizer.chat_template";

/// Id that old converters wrote, as unsigned -1, for a token that does not exist.
const NO_TOKEN: u64 = u32::MAX as u64;

/// Control tokens that delimit the turns of a conversation in published models. A file in which they are
/// ordinary text splits them into letters.
const CONTROL_TEXTS: &[&str] = &[
    "<|im_start|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|START_OF_TURN_TOKEN|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|return|>",
    "<|call|>",
    "<\u{ff5c}begin\u{2581}of\u{2581}sentence\u{ff5c}>",
    "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
];

/// Texts of BOS in published models.
const BOS_TEXTS: &[&str] = &[
    "<s>",
    "<bos>",
    "<|begin_of_text|>",
    "<|startoftext|>",
    "<BOS_TOKEN>",
    "<\u{ff5c}begin\u{2581}of\u{2581}sentence\u{ff5c}>",
];

/// Type of a token in a file.
fn kind(value: Option<gguf::Value>) -> Option<TokenType> {
    TokenType::from_id(value?.to_i64()?)
}

/// Whether a text has the form of a special token, such as `</s>`, `<|im_end|>` or `[SEP]`.
pub(crate) fn looks_special(text: &[u8]) -> bool {
    let text = text.strip_prefix("\u{2581}".as_bytes()).unwrap_or(text);
    let within = |open: &[u8], close: &[u8]| {
        text.len() > open.len() + close.len() && text.starts_with(open) && text.ends_with(close)
    };
    (within(b"<", b">") && byte_of_token(text).is_none()) || within(b"[", b"]")
}

/// Whether published models use a text as a control token.
pub(crate) fn is_control_text(text: &[u8]) -> bool {
    CONTROL_TEXTS.iter().any(|known| known.as_bytes() == text)
}

pub(super) fn check(subject: &Subject, tokens: &Array, sink: &mut dyn Sink) -> ControlFlow<()> {
    ids(subject, tokens, sink)?;
    types(subject, tokens, sink)?;
    if is_text_model(subject) {
        end(subject, sink)?;
        beginning(subject, tokens, sink)?;
    }
    ControlFlow::Continue(())
}

/// Checks that the ids of special tokens are in the vocabulary, and that their tokens are not ordinary text.
fn ids(subject: &Subject, tokens: &Array, sink: &mut dyn Sink) -> ControlFlow<()> {
    let metadata = &subject.header.metadata;
    let mut roles = Vec::new();
    for (i, (key, value)) in metadata.iter().enumerate() {
        let is_id = key.starts_with("tokenizer.ggml.") && key.ends_with("_token_id");
        let Some(id) = value.to_u64().filter(|_| is_id) else { continue };
        if id < tokens.len() {
            roles.push((id, key, subject.value_of(i)));
        } else if id != NO_TOKEN {
            let message = format!("token {id} is not in the vocabulary of {}", tokens.len());
            sink.report(
                Finding::warning("token-id-range", message)
                    .key(key)
                    .at(subject.value_of(i))
                    .help("set the id of a token that exists, or remove the key"),
            )?;
        }
    }
    roles.sort_unstable();
    let mut roles = roles.into_iter().peekable();
    let mut types = metadata.array(TYPES).into_iter().flat_map(Array::iter);
    for (id, text) in (0..).zip(tokens.strings().into_iter().flatten()) {
        let kind = kind(types.next());
        while let Some((_, key, at)) = roles.next_if(|(role, ..)| *role == id) {
            use TokenType::{Byte, Normal, Unused};
            let Some(kind @ (Normal | Unused | Byte)) = kind else { continue };
            let finding = if looks_special(text) {
                let message = format!(
                    "token {id} has type {} in token_type instead of 3, control",
                    kind.id()
                );
                Finding::warning("token-type", message)
                    .help("user input can contain the token as ordinary text")
            } else {
                let text = shortened(text);
                let message = format!("token {id}, {text}, is ordinary text");
                Finding::warning("token-role", message)
                    .help("the id is wrong: set the right token with `gguf edit --special-token`")
            };
            sink.report(finding.key(key).at(at))?;
        }
        if roles.peek().is_none() {
            break;
        }
    }
    ControlFlow::Continue(())
}

/// Checks that no token of a known text has the type of ordinary text.
fn types(subject: &Subject, tokens: &Array, sink: &mut dyn Sink) -> ControlFlow<()> {
    let metadata = &subject.header.metadata;
    let Some(types) = metadata.array(TYPES) else { return ControlFlow::Continue(()) };
    let has_bytes = metadata.str(MODEL) == Some("llama");
    let roles = role_ids(metadata);
    let (mut bytes, mut control) = (0u64, Vec::new());
    let texts = tokens.strings().into_iter().flatten();
    for (id, (text, value)) in (0..).zip(texts.zip(types.iter())) {
        if kind(Some(value)) != Some(TokenType::Normal) {
            continue;
        }
        if has_bytes && byte_of_token(text).is_some() {
            bytes += 1;
        } else if is_control_text(text) && !roles.contains(&id) {
            control.push((id, text));
        }
    }
    let at = subject.value_at(TYPES);
    if bytes > 0 {
        let message = format!("{bytes} byte tokens such as <0x0A> have type 1, normal");
        let finding = Finding::warning("byte-tokens-type", message).key(TYPES).at(at);
        sink.report(finding.help("they are printed as text, and byte fallback fails"))?;
    }
    if let [(id, first), rest @ ..] = &control[..] {
        let text = shortened(first);
        let more = match rest.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let message =
            format!("token {id}, {text},{more} has type 1, normal, instead of 3, control");
        let finding = Finding::warning("token-type", message).key(TYPES).at(at);
        sink.report(finding.help("chat templates that contain it are split into ordinary text"))?;
    }
    ControlFlow::Continue(())
}

/// Returns the ids that keys assign to roles.
fn role_ids(metadata: &Metadata) -> Vec<u64> {
    let is_id = |key: &str| key.starts_with("tokenizer.ggml.") && key.ends_with("_token_id");
    metadata.iter().filter(|(key, _)| is_id(key)).filter_map(|(_, value)| value.to_u64()).collect()
}

/// Returns the id of a key; `None` if it is missing or means no token.
fn id(metadata: &Metadata, key: &str) -> Option<u64> {
    metadata.u64(key).filter(|id| *id != NO_TOKEN)
}

/// Returns the text of a token.
pub(crate) fn text(tokens: &Array, id: u64) -> Option<&[u8]> {
    tokens.strings()?.nth(usize::try_from(id).ok()?)
}

/// Reports a model without EOS.
fn end(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let metadata = &subject.header.metadata;
    let generates = matches!(metadata.str(MODEL), Some("llama" | "gpt2"));
    if !generates || id(metadata, EOS).is_some() {
        return ControlFlow::Continue(());
    }
    let (severity, help) = match metadata.get(TEMPLATE) {
        Some(_) => {
            (Severity::Warning, "answers never end in some programs: set the EOS of the model")
        }
        None => (Severity::Note, "loaders assume a token: set the EOS of the model"),
    };
    let finding = Finding { severity, ..Finding::error("eos-missing", "the EOS token is missing") };
    sink.report(finding.key(EOS).help(help))
}

/// Checks that the tokenizer adds BOS if the model was trained with it, and that BOS exists.
fn beginning(subject: &Subject, tokens: &Array, sink: &mut dyn Sink) -> ControlFlow<()> {
    let metadata = &subject.header.metadata;
    let bos = id(metadata, BOS);
    let adds = metadata.bool(ADD_BOS);
    if bos.is_none() && adds == Some(true) {
        let finding = Finding::warning("bos-missing", "the tokenizer adds BOS, which is missing");
        let help = match missing_bos(metadata, tokens) {
            Some(_) => "set the BOS of the model, or run `gguf check --fix`",
            None => "set the BOS of the model with `gguf edit --special-token`",
        };
        sink.report(finding.key(BOS).help(help))?;
    }
    let Some(family) = Family::of(metadata) else { return ControlFlow::Continue(()) };
    let (Some(expected), Some(adds)) = (family.adds_bos, adds) else {
        return ControlFlow::Continue(());
    };
    let bos_text = bos.and_then(|id| text(tokens, id)).unwrap_or_default();
    // Models with further tokens may have their own BOS.
    if expected == adds || (!expected && BOS_TEXTS.iter().any(|known| known.as_bytes() == bos_text))
    {
        return ControlFlow::Continue(());
    }
    let finding = match adds {
        true => Finding::warning(
            "add-bos-wrong",
            format!("is true, but models with the vocabulary of {} have no BOS", family.name),
        )
        .help("prompts begin with a token that the model did not see in training: set it to false"),
        // Chat templates can contain BOS themselves.
        false if template_has_bos(metadata, bos_text) => Finding::note(
            "add-bos-wrong",
            format!("is false; BOS of {} comes only from the chat template", family.name),
        )
        .help("prompts without the template lack BOS, which the model was trained with"),
        false => Finding::warning(
            "add-bos-wrong",
            format!("is false, but models with the vocabulary of {} need BOS", family.name),
        )
        .help("answers are worse without BOS: set it to true, or run `gguf check --fix`"),
    };
    sink.report(finding.key(ADD_BOS).at(subject.value_at(ADD_BOS)))
}

/// Whether the default chat template writes BOS.
pub(crate) fn template_has_bos(metadata: &Metadata, bos: &[u8]) -> bool {
    let Some(template) = metadata.get(TEMPLATE).and_then(|value| value.as_bytes()) else {
        return false;
    };
    let contains =
        |part: &[u8]| !part.is_empty() && template.windows(part.len()).any(|window| window == part);
    contains(b"bos_token") || contains(bos)
}

/// Returns the id of the BOS of a file without one: the only token with the text of a BOS of published models.
pub(crate) fn missing_bos(metadata: &Metadata, tokens: &Array) -> Option<u32> {
    if id(metadata, BOS).is_some() {
        return None;
    }
    let is_bos = |text: &[u8]| BOS_TEXTS.iter().any(|known| known.as_bytes() == text);
    let mut found = (0u32..).zip(tokens.strings()?).filter(|(_, text)| is_bos(text));
    match (found.next(), found.next()) {
        (Some((id, _)), None) => Some(id),
        _ => None,
    }
}
