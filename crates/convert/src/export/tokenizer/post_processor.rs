//! Post-processor of `tokenizer.json` from the flags of a GGUF.
//!
//! The reader uses the heuristics of llama.cpp's converter. The writer tries candidates, the most usual first, and uses
//! the first that the reader maps to the flags.

use serde_json::{Map, Value, json};

use super::Vocabulary;
use crate::vocab::{FLAGS, read_post_processor};

/// Sets `post_processor` of `tokenizer`. Flags that it does not determine go into `config`, which must already name the
/// special tokens.
pub(super) fn fill(
    vocabulary: &Vocabulary,
    tokenizer: &mut Value,
    config: &mut Map<String, Value>,
) {
    let wanted = |role: &str| vocabulary.flag(role);
    for candidate in candidates(vocabulary, config) {
        tokenizer["post_processor"] = candidate;
        let told = read_post_processor(tokenizer, config);
        if FLAGS.iter().all(|role| told.get(role).is_none() || told.get(role) == wanted(role)) {
            // Loaders rebuild the template if the configuration has a flag.
            let open = FLAGS.iter().filter(|role| told.get(role).is_none());
            for (role, add) in open.filter_map(|role| Some((role, wanted(role)?))) {
                config.insert(format!("add_{role}_token"), add.into());
            }
            return;
        }
    }
}

/// Returns the candidates, the most usual first. The last one is null.
fn candidates(vocabulary: &Vocabulary, config: &Map<String, Value>) -> Vec<Value> {
    let around = |role: &str| match vocabulary.flag(role) {
        Some(true) => vocabulary.role(role),
        _ => None,
    };
    let (first, last) = (around("bos"), around("eos"));
    let mut all = Vec::new();
    match (first, last) {
        (None, None) if vocabulary.is_byte_level() => all.push(json!({
            "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true,
        })),
        (None, None) => {}
        _ => {
            // Its last token is always the named one.
            let names_last = last
                .is_some_and(|(_, text)| config.get("eos_token").is_some_and(|eos| eos == text));
            if let (Some(first), Some(last), true) =
                (first, last, vocabulary.is_roberta() && names_last)
            {
                all.push(json!({
                    "type": "RobertaProcessing", "sep": [last.1, last.0],
                    "cls": [first.1, first.0], "trim_offsets": true, "add_prefix_space": false,
                }));
            }
            all.extend(whisper(vocabulary));
            // Separators of two texts.
            let [first_text, last_text] = [first, last].map(|token| token.map(|(_, text)| text));
            let both: Vec<&str> = last_text.into_iter().chain(first_text).collect();
            let once: Vec<&str> = last_text.into_iter().collect();
            let twice: Vec<&str> = once.repeat(2);
            let between = match config.contains_key("cls_token") {
                true => [once, twice, both, vec![]],
                false => [both, twice, once, vec![]],
            };
            let first: Vec<_> = first.into_iter().collect();
            all.extend(between.iter().map(|between| template(&first, between, last)));
        }
    }
    all.push(Value::Null);
    all
}

/// Returns the post-processor of Whisper's tokenizers, which the flags do not determine.
fn whisper(vocabulary: &Vocabulary) -> Option<Value> {
    if vocabulary.metadata.architecture() != Some("whisper") {
        return None;
    }
    let token = |wanted: &str| {
        let id = vocabulary.tokens.iter().position(|token| token.text == wanted)?;
        Some((id as u64, vocabulary.tokens.get(id)?.text))
    };
    let first = [token("<|startoftranscript|>")?, token("<|notimestamps|>")?];
    Some(template(&first, &[], vocabulary.role("eos")))
}

type Special<'t> = (u64, &'t str);

/// Returns a template that adds `first` and `last` to one and two texts, and `between` between two texts.
fn template(first: &[Special], between: &[&str], last: Option<Special>) -> Value {
    let special =
        |text: &str, segment: u8| json!({ "SpecialToken": { "id": text, "type_id": segment } });
    let text = |id: &str, segment: u8| json!({ "Sequence": { "id": id, "type_id": segment } });
    let last_text = last.map(|(_, text)| text);
    let begin: Vec<Value> =
        (first.iter().map(|(_, token)| special(token, 0))).chain([text("A", 0)]).collect();
    let end = |segment| last_text.map(|token| special(token, segment));
    // A token that starts a text has the type id of the second text, other separators that of the first.
    let between = between.iter().map(|&token| {
        let begins = first.iter().any(|(_, text)| *text == token) && last_text != Some(token);
        special(token, u8::from(begins))
    });
    let single: Vec<Value> = begin.iter().cloned().chain(end(0)).collect();
    let pair: Vec<Value> =
        begin.into_iter().chain(between).chain([text("B", 1)]).chain(end(1)).collect();
    let special_tokens: Map<String, Value> = (first.iter().copied().chain(last))
        .map(|(id, text)| (text.to_owned(), json!({ "id": text, "ids": [id], "tokens": [text] })))
        .collect();
    json!({
        "type": "TemplateProcessing",
        "single": single,
        "pair": pair,
        "special_tokens": special_tokens,
    })
}
