//! What `tokenizer.json` puts around a text, from the flags of a GGUF.
//!
//! The reader of this part guesses, as llama.cpp's converter does. So what can be written is tried
//! from the most usual on, and the first that is read as the flags say is taken.

use serde_json::{Map, Value, json};

use super::Vocabulary;
use crate::vocab::{FLAGS, read_post_processor};

/// Fills in `post_processor` of `tokenizer`; what it does not tell becomes a flag of `config`,
/// which must name the special tokens already.
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
            // A loader takes a stated flag for an order to write the template anew.
            let open = FLAGS.iter().filter(|role| told.get(role).is_none());
            for (role, add) in open.filter_map(|role| Some((role, wanted(role)?))) {
                config.insert(format!("add_{role}_token"), add.into());
            }
            return;
        }
    }
}

/// The most usual first; the last one says nothing.
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
            // Its last token cannot be another than the one that is named.
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
            // What stands between two texts.
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

/// What Whisper's tokenizers put around a text, of which the flags tell nothing.
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

/// Puts `first` and `last` around a text and around two, and `between` between two.
fn template(first: &[Special], between: &[&str], last: Option<Special>) -> Value {
    let special =
        |text: &str, segment: u8| json!({ "SpecialToken": { "id": text, "type_id": segment } });
    let text = |id: &str, segment: u8| json!({ "Sequence": { "id": id, "type_id": segment } });
    let last_text = last.map(|(_, text)| text);
    let begin: Vec<Value> =
        (first.iter().map(|(_, token)| special(token, 0))).chain([text("A", 0)]).collect();
    let end = |segment| last_text.map(|token| special(token, segment));
    // What begins a text belongs to the second, all else between them to the first.
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
