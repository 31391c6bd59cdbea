//! `tokenizer.json` of byte-level vocabularies.

use std::collections::HashSet;

use gguf::Array;
use serde_json::{Map, Value, json};

use super::json::{added, case, file, sequence};
use super::post_processor;
use super::{CONTROL, Token, Tokenizer, USER_DEFINED, Vocabulary, is_padding, json_file};
use crate::vocab::{Kind, decode_bytes, pre_tokenizer};

pub(super) fn write(vocabulary: &Vocabulary, out: &mut Tokenizer, config: &mut Map<String, Value>) {
    let name = vocabulary.metadata.str("tokenizer.ggml.pre").unwrap_or("default");
    let structure = pre_tokenizer(name).unwrap_or_else(|| {
        out.notes
            .push(format!("how `{name}` cuts text is not known: as GPT-2 does, in tokenizer.json"));
        pre_tokenizer("gpt-2").unwrap_or_default()
    });
    let is_byte_level = structure.pre_tokenizer.to_string().contains("ByteLevel");
    let merges = vocabulary.metadata.array("tokenizer.ggml.merges").and_then(Array::strings);
    let merges: Vec<Value> = merges
        .into_iter()
        .flatten()
        .map(|merge| String::from_utf8_lossy(merge).into_owned().into())
        .collect();
    let tokens = vocabulary.without_padding(0.0);
    let mut tokenizer = file(json!({
        "type": "BPE",
        "dropout": null,
        "unk_token": null,
        "continuing_subword_prefix": null,
        "end_of_word_suffix": null,
        "fuse_unk": false,
        "byte_fallback": !is_byte_level,
        "ignore_merges": structure.ignore_merges,
        "vocab": vocab(tokens),
        "merges": merges,
    }));
    let is_added = |(_, token): &(usize, &Token)| is_added(token);
    tokenizer["added_tokens"] = (tokens.iter().enumerate().filter(is_added))
        .map(|(id, token)| {
            // Texts that look like transcribed bytes are matched as they stand.
            let normalized = is_byte_level && decode_bytes(token.text) != token.text;
            added(id, token.text, token.kind, normalized)
        })
        .collect();
    let normalizer = Some(structure.normalizer).filter(|part| !part.is_null());
    tokenizer["normalizer"] =
        sequence("normalizers", case(vocabulary).into_iter().chain(normalizer).collect());
    tokenizer["pre_tokenizer"] = structure.pre_tokenizer;
    tokenizer["decoder"] = match is_byte_level {
        true => json!({
            "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true,
        }),
        false => json!({ "type": "Sequence", "decoders": [
            { "type": "Replace", "pattern": { "String": "\u{2581}" }, "content": " " },
            { "type": "ByteFallback" },
            { "type": "Fuse" },
        ] }),
    };

    if vocabulary.is_roberta() && config.contains_key("bos_token") {
        config.insert("cls_token".into(), config["bos_token"].clone());
    }
    // A reader takes the end of a turn for what ended texts before the template said otherwise;
    // these families know it by itself.
    let knows_turns = matches!(vocabulary.kind, Kind::Glm4 | Kind::ChatGlm);
    let turn = vocabulary.of_key("tokenizer.ggml.eot_token_id").filter(|_| !knows_turns);
    if let (Some((_, turn)), Some(true)) = (turn, vocabulary.flag("eos")) {
        config.insert("eos_token".into(), turn.into());
    }
    post_processor::fill(vocabulary, &mut tokenizer, config);
    config.insert("tokenizer_class".into(), class(vocabulary).into());
    out.files.push(json_file("tokenizer.json", &tokenizer));
}

/// What loaders outside of this program build. Any would do that builds what the file says.
fn class(vocabulary: &Vocabulary) -> &'static str {
    match vocabulary.metadata.architecture() {
        // Puts more in front of a text than a template can tell.
        Some("whisper") => "WhisperTokenizer",
        _ => "PreTrainedTokenizerFast",
    }
}

fn is_added(token: &Token) -> bool {
    matches!(token.kind, CONTROL | USER_DEFINED)
}

/// The trained tokens, and those added ones whose ids do not follow by themselves: loaders number
/// tokens that are only added from the number of the others on.
fn vocab(tokens: &[Token]) -> Map<String, Value> {
    let has_gaps = tokens.iter().enumerate().any(|(id, token)| is_padding(id, token));
    let last = tokens.iter().rposition(|token| !is_added(token)).map_or(0, |last| last + 1);
    let trained = if has_gaps { tokens.len() } else { last };
    let texts: HashSet<&str> =
        tokens.iter().filter(|token| !is_added(token)).map(|token| token.text).collect();
    let listed = tokens.iter().enumerate().take(trained).filter(|(id, token)| {
        !is_padding(*id, token) && !(is_added(token) && texts.contains(token.text))
    });
    listed.map(|(id, token)| (token.text.to_owned(), id.into())).collect()
}
