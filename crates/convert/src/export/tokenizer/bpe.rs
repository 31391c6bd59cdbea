//! `tokenizer.json` of byte-level vocabularies.

use gguf::{Array, Metadata};
use serde_json::{Map, Value, json};

use super::{CONTROL, Token, USER_DEFINED, is_padding};
use crate::vocab::{decode_bytes, pre_tokenizer};

/// The file.
pub(super) fn file(metadata: &Metadata, tokens: &[Token], notes: &mut Vec<String>) -> Value {
    let (mut vocab, mut added) = (Map::new(), Vec::new());
    for (id, token) in tokens.iter().enumerate() {
        match token.kind {
            CONTROL | USER_DEFINED => added.push(json!({
                "id": id,
                "content": token.text,
                "single_word": false,
                "lstrip": false,
                "rstrip": false,
                // Texts that look like transcribed bytes are matched as they stand.
                "normalized": decode_bytes(token.text) != token.text,
                "special": token.kind == CONTROL,
            })),
            _ if is_padding(id, token) => {}
            _ => {
                vocab.insert(token.text.to_owned(), id.into());
            }
        }
    }
    // Readers number added tokens that the vocabulary lacks themselves, from its end on.
    let end = vocab.len();
    if added.iter().zip(end..).any(|(token, id)| token["id"] != id) {
        vocab.extend(added.iter().filter_map(|token| {
            Some((token["content"].as_str()?.to_owned(), token["id"].clone()))
        }));
    }
    let merges = metadata.array("tokenizer.ggml.merges").and_then(Array::strings);
    let merges: Vec<Value> = merges
        .into_iter()
        .flatten()
        .map(|merge| String::from_utf8_lossy(merge).into_owned().into())
        .collect();
    let name = metadata.str("tokenizer.ggml.pre").unwrap_or("default");
    let structure = pre_tokenizer(name).unwrap_or_else(|| {
        notes
            .push(format!("how `{name}` cuts text is not known: as GPT-2 does, in tokenizer.json"));
        pre_tokenizer("gpt-2").unwrap_or_default()
    });
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": structure.normalizer,
        "pre_tokenizer": structure.pre_tokenizer,
        "post_processor": post_processor(metadata, tokens),
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": true,
            "trim_offsets": true,
            "use_regex": true,
        },
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": structure.ignore_merges,
            "vocab": vocab,
            "merges": merges,
        },
    })
}

/// Puts the tokens around a text that runtimes put around it; null if there are none.
fn post_processor(metadata: &Metadata, tokens: &[Token]) -> Value {
    let special = |role: &str| {
        let add = metadata.bool(&format!("tokenizer.ggml.add_{role}_token")).unwrap_or(false);
        let id = metadata.u64(&format!("tokenizer.ggml.{role}_token_id")).filter(|_| add)?;
        Some((id, tokens.get(usize::try_from(id).ok()?)?.text))
    };
    let (bos, eos) = (special("bos"), special("eos"));
    if bos.is_none() && eos.is_none() {
        return Value::Null;
    }
    let token = |(_, text): (u64, &str), segment: u8| json!({ "SpecialToken": { "id": text, "type_id": segment } });
    let around = |sequence: &str, segment: u8| {
        let text = json!({ "Sequence": { "id": sequence, "type_id": segment } });
        let bos = bos.map(|bos| token(bos, segment));
        let eos = eos.map(|eos| token(eos, segment));
        bos.into_iter().chain([text]).chain(eos).collect::<Vec<_>>()
    };
    let special_tokens: Map<String, Value> = [bos, eos]
        .into_iter()
        .flatten()
        .map(|(id, text)| (text.to_owned(), json!({ "id": text, "ids": [id], "tokens": [text] })))
        .collect();
    let pair = [around("A", 0), around("B", 1)].concat();
    json!({
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": pair,
        "special_tokens": special_tokens,
    })
}
