//! Tokenizer files from the `tokenizer.*` keys.

mod bpe;
mod sentencepiece;

use gguf::{Array, Metadata};
use serde_json::{Map, Value, json};

use super::{File, json_file};
use crate::Error;

/// A token of the GGUF.
struct Token<'a> {
    text: &'a str,
    score: f32,
    /// As in `tokenizer.ggml.token_type`.
    kind: i64,
}

const NORMAL: i64 = 1;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;
const UNUSED: i64 = 5;

/// Roles of special tokens: name in the files, key.
const ROLES: [(&str, &str); 6] = [
    ("bos", "tokenizer.ggml.bos_token_id"),
    ("eos", "tokenizer.ggml.eos_token_id"),
    ("unk", "tokenizer.ggml.unknown_token_id"),
    ("sep", "tokenizer.ggml.seperator_token_id"), // spelled so in the format
    ("pad", "tokenizer.ggml.padding_token_id"),
    ("mask", "tokenizer.ggml.mask_token_id"),
];

/// The files for the vocabulary in `metadata`; `config` gets the ids of special tokens.
///
/// # Errors
/// If the vocabulary is broken.
pub(super) fn files(
    metadata: &Metadata,
    config: &mut Value,
    notes: &mut Vec<String>,
) -> Result<Vec<File>, Error> {
    let Some(model) = metadata.str("tokenizer.ggml.model") else {
        notes.push("the file has no tokenizer".to_owned());
        return Ok(Vec::new());
    };
    let tokens = tokens(metadata)?;
    let mut files = Vec::new();
    let mut tokenizer_config = Map::new();
    match model {
        "llama" => {
            let prefix = metadata.bool("tokenizer.ggml.add_space_prefix");
            if let Some(prefix) = prefix {
                tokenizer_config.insert("add_prefix_space".into(), prefix.into());
            }
            let (bytes, added) = sentencepiece::file(&tokens, prefix.unwrap_or(true));
            files.push(File { name: "tokenizer.model", bytes });
            tokenizer_config.insert("added_tokens_decoder".into(), added.into());
            tokenizer_config.insert("tokenizer_class".into(), "LlamaTokenizer".into());
        }
        "gpt2" => {
            files.push(json_file("tokenizer.json", &bpe::file(metadata, &tokens, notes)));
            tokenizer_config.insert("tokenizer_class".into(), "PreTrainedTokenizerFast".into());
        }
        other => notes.push(format!("left out the tokenizer: `{other}` has no export yet")),
    }
    let named = named_roles(metadata);
    for (i, (role, key)) in ROLES.into_iter().enumerate() {
        let Some(id) = metadata.u64(key) else { continue };
        config[format!("{role}_token_id")] = id.into();
        let token = usize::try_from(id).ok().and_then(|id| tokens.get(id));
        if let (Some(token), true) = (token, named.contains(&i)) {
            tokenizer_config.insert(format!("{role}_token"), token.text.into());
        }
    }
    for role in ["bos", "eos", "sep"] {
        if let Some(add) = metadata.bool(&format!("tokenizer.ggml.add_{role}_token")) {
            tokenizer_config.insert(format!("add_{role}_token"), add.into());
        }
    }
    if let Some(template) = chat_template(metadata) {
        tokenizer_config.insert("chat_template".into(), template);
    }
    files.push(json_file("tokenizer_config.json", &tokenizer_config.into()));
    Ok(files)
}

/// The roles that the tokenizer's configuration named, by index: the converter takes these first,
/// in the order of the table, and then those that only the model's configuration names.
fn named_roles(metadata: &Metadata) -> Vec<usize> {
    let role_of = |key: &str| ROLES.iter().position(|(_, role_key)| *role_key == key);
    let mut named: Vec<usize> = Vec::new();
    for role in metadata.iter().filter_map(|(key, _)| role_of(key)) {
        if named.last().is_some_and(|last| *last > role) {
            break;
        }
        named.push(role);
    }
    named
}

/// One template as a text, several as a list with names.
fn chat_template(metadata: &Metadata) -> Option<Value> {
    let default = metadata.str("tokenizer.chat_template");
    let names = metadata.array("tokenizer.chat_templates").and_then(Array::strings);
    let Some(names) = names else { return default.map(Value::from) };
    let entry = |name: &str, template: &str| json!({ "name": name, "template": template });
    let named = names.filter_map(|name| {
        let name = std::str::from_utf8(name).ok()?;
        Some(entry(name, metadata.str(&format!("tokenizer.chat_template.{name}"))?))
    });
    let all: Vec<Value> =
        default.map(|text| entry("default", text)).into_iter().chain(named).collect();
    Some(all.into())
}

fn tokens<'m>(metadata: &'m Metadata) -> Result<Vec<Token<'m>>, Error> {
    let broken = |what: &str| Error::Request {
        what: format!("the vocabulary {what}"),
        help: "look at it with `gguf check`".into(),
    };
    let texts = metadata.array("tokenizer.ggml.tokens").and_then(Array::strings);
    let texts = texts.ok_or_else(|| broken("has no texts"))?;
    let mut scores = metadata.array("tokenizer.ggml.scores").map(|a| a.iter());
    let mut kinds = metadata.array("tokenizer.ggml.token_type").map(|a| a.iter());
    texts
        .map(|text| {
            let score = scores.as_mut().and_then(|s| s.next()).and_then(|v| v.to_f64());
            let kind = kinds.as_mut().and_then(|k| k.next()).and_then(|v| v.to_i64());
            Ok(Token {
                text: std::str::from_utf8(text)
                    .map_err(|_| broken("has texts that are not UTF-8"))?,
                score: score.unwrap_or(0.0) as f32,
                kind: kind.unwrap_or(NORMAL),
            })
        })
        .collect()
}

/// True for the tokens that fill up the rows of an embedding.
fn is_padding(id: usize, token: &Token) -> bool {
    token.kind == UNUSED && token.text == format!("[PAD{id}]")
}
