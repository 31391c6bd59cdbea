//! `tokenizer.json` of byte-level vocabularies.

use gguf_models::pre_tokenizer::composes;
use gguf_models::token::TokenType;
use serde_json::{Map, Value, json};

use super::json::{added, case, file, sequence, vocab};
use super::merges::Merges;
use super::{Token, Tokenizer, Vocabulary, json_file, post_processor};
use crate::vocab::{decode_bytes, pre_tokenizer};

pub(super) fn write(vocabulary: &Vocabulary, out: &mut Tokenizer, config: &mut Map<String, Value>) {
    let name = vocabulary.metadata.str("tokenizer.ggml.pre").unwrap_or("default");
    let structure = pre_tokenizer(name).unwrap_or_else(|| {
        out.notes
            .push(format!("how `{name}` cuts text is not known: as GPT-2 does, in tokenizer.json"));
        pre_tokenizer("gpt-2").unwrap_or_default()
    });
    let is_byte_level = structure.pre_tokenizer.to_string().contains("ByteLevel");
    let tokens = vocabulary.without_padding(0.0);
    let merges = Merges::read(vocabulary.metadata, tokens);
    if merges.left_out > 0 {
        out.notes.push(format!(
            "left out {} merges: they name no tokens of the vocabulary, so they never apply",
            merges.left_out
        ));
    }
    let mut tokenizer = file(json!({
        "type": "BPE",
        "dropout": null,
        "unk_token": null,
        "continuing_subword_prefix": null,
        "end_of_word_suffix": null,
        "fuse_unk": false,
        "byte_fallback": !is_byte_level,
        "ignore_merges": structure.ignore_merges,
        "vocab": vocab(tokens, merges.reach),
        "merges": merges.list(),
    }));
    let is_added = |(_, token): &(usize, &Token)| {
        matches!(token.kind, TokenType::Control | TokenType::UserDefined)
    };
    tokenizer["added_tokens"] = (tokens.iter().enumerate().filter(is_added))
        .map(|(id, token)| {
            // Texts that look like transcribed bytes are matched as they stand.
            let normalized = is_byte_level && decode_bytes(token.text) != token.text;
            added(vocabulary, id, token.text, token.kind, normalized)
        })
        .collect();
    let normalizer = Some(structure.normalizer).filter(|part| !part.is_null());
    let architecture = vocabulary.metadata.architecture().unwrap_or_default();
    let compose = Some(json!({ "type": "NFC" })).filter(|_| composes(name, architecture));
    let normalizers = compose.into_iter().chain(case(vocabulary)).chain(normalizer);
    tokenizer["normalizer"] = sequence("normalizers", normalizers.collect());
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
    // A reader takes for the end of a turn what ended texts before the template said otherwise.
    let turn = vocabulary.of_key("tokenizer.ggml.eot_token_id");
    if let (Some((_, turn)), Some(true)) = (turn, vocabulary.flag("eos")) {
        config.insert("eos_token".into(), turn.into());
    }
    post_processor::fill(vocabulary, &mut tokenizer, config);
    config.insert("tokenizer_class".into(), "PreTrainedTokenizerFast".into());
    out.files.push(json_file("tokenizer.json", &tokenizer));
}
