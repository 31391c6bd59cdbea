//! Export of the `tokenizer.*` keys to tokenizer files, the inverse of [`crate::vocab`].

mod bpe;
mod json;
mod loader;
mod merges;
mod pairs;
mod plamo;
mod post_processor;
mod protobuf;
mod rwkv_world;
mod sentencepiece;
mod unigram;
mod word_piece;

use std::collections::BTreeMap;

use gguf::{Array, Error, Finding, Metadata};
use gguf_models::convert::VocabularyKind;
use gguf_models::token;
use gguf_models::token::TokenType;
use serde_json::{Map, Value, json};

use super::{File, json_file};
use crate::vocab;
use crate::vocab::{ADDED_SCORE, Folder};

/// Exported tokenizer.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    /// Files.
    pub files: Vec<File>,
    /// Fields of `config.json`: ids of special tokens, and the number of token types.
    pub config: Map<String, Value>,
    /// Notes for the user, such as keys that the files do not restore.
    pub notes: Vec<String>,
}

/// Vocabulary to export.
struct Vocabulary<'m> {
    metadata: &'m Metadata,
    tokens: Vec<Token<'m>>,
    kind: VocabularyKind,
}

/// Token of the GGUF.
#[derive(Clone, Copy)]
struct Token<'m> {
    text: &'m str,
    score: f32,
    kind: TokenType,
}

/// Roles of special tokens in Hugging Face's files.
const ROLES: [&str; 6] = ["bos", "eos", "unk", "sep", "pad", "mask"];

/// Key of the number of token types of an encoder.
const SEGMENTS: &str = "tokenizer.ggml.token_type_count";

/// Exports the vocabulary in `metadata` to tokenizer files for a converter with vocabularies of `kind` and the preferred
/// pre-tokenizers `hints`.
///
/// Converts the files again, with `config` as `config.json`, and notes keys that change.
///
/// # Errors
/// If the vocabulary is invalid.
pub fn tokenizer(
    metadata: &Metadata,
    kind: VocabularyKind,
    hints: &[&str],
    config: &Value,
) -> Result<Tokenizer, Error> {
    let Some(model) = metadata.str("tokenizer.ggml.model") else {
        return Ok(Tokenizer::noting("the file has no tokenizer".to_owned()));
    };
    if (model, kind) == (vocab::NO_VOCABULARY, VocabularyKind::Codes) {
        return Ok(Tokenizer { files: Vec::new(), config: Map::new(), notes: Vec::new() });
    }
    let vocabulary = Vocabulary { metadata, tokens: tokens(metadata)?, kind };
    let written = |write: Writer| {
        let mut out = vocabulary.written(write);
        let lost = not_restored(&vocabulary, hints, config, &out);
        let count = lost.len();
        out.notes.extend(lost);
        (out, count)
    };
    let writer: Writer = match model {
        "llama" if kind == VocabularyKind::Xverse => sentencepiece::write_json,
        "llama" => {
            let (out, lost) = written(sentencepiece::write_with_json);
            if lost == 0 {
                return Ok(out);
            }
            // Some loaders prefer `tokenizer.json`, which has less information than the model.
            let (alone, lost_alone) = written(sentencepiece::write);
            return Ok(if lost_alone < lost { alone } else { out });
        }
        "gpt2" => bpe::write,
        "bert" => word_piece::write,
        "t5" => unigram::write,
        "rwkv" => rwkv_world::write,
        vocab::PLAMO_MODEL => plamo::write,
        other => {
            return Ok(Tokenizer::noting(format!(
                "skipped the tokenizer: its kind `{other}` is unknown"
            )));
        }
    };
    Ok(written(writer).0)
}

/// Function that writes the files of a kind of vocabulary. The map becomes `tokenizer_config.json`.
type Writer = fn(&Vocabulary, &mut Tokenizer, &mut Map<String, Value>);

impl Tokenizer {
    /// Returns a result with only a note.
    fn noting(note: String) -> Self {
        Self { files: Vec::new(), config: Map::new(), notes: vec![note] }
    }
}

impl<'m> Vocabulary<'m> {
    /// Writes all files and fields.
    fn written(&self, write: Writer) -> Tokenizer {
        let mut out = Tokenizer { files: Vec::new(), config: Map::new(), notes: Vec::new() };
        let mut config = self.named_roles();
        write(self, &mut out, &mut config);
        for role in ROLES {
            if let Some(id) = token::id_key(role).and_then(|key| self.metadata.u64(key)) {
                out.config.insert(format!("{role}_token_id"), id.into());
            }
        }
        if let Some(count) = self.metadata.u64(SEGMENTS) {
            out.config.insert("type_vocab_size".into(), count.into());
        }
        if let Some(template) = chat_template(self.metadata) {
            config.insert("chat_template".into(), template);
        }
        out.files.push(json_file("tokenizer_config.json", &config.into()));
        out
    }

    /// Returns id and text of the token with a role.
    fn role(&self, role: &str) -> Option<(u64, &'m str)> {
        self.of_key(token::id_key(role)?)
    }

    /// Returns id and text of the token whose id a key has.
    fn of_key(&self, key: &str) -> Option<(u64, &'m str)> {
        let id = self.metadata.u64(key)?;
        Some((id, self.tokens.get(usize::try_from(id).ok()?)?.text))
    }

    /// Returns whether runtimes add the token of a role.
    fn flag(&self, role: &str) -> Option<bool> {
        self.metadata.bool(&format!("tokenizer.ggml.add_{role}_token"))
    }

    /// Writes all flags to `tokenizer_config.json`.
    fn set_flags(&self, config: &mut Map<String, Value>) {
        for role in vocab::FLAGS {
            if let Some(add) = self.flag(role) {
                config.insert(format!("add_{role}_token"), add.into());
            }
        }
    }

    fn is_byte_level(&self) -> bool {
        self.metadata.str("tokenizer.ggml.model") == Some("gpt2")
    }

    /// Returns whether this is a byte-level vocabulary of an encoder.
    fn is_roberta(&self) -> bool {
        self.kind == VocabularyKind::Encoder && self.is_byte_level()
    }

    /// Returns the tokens without the padding tokens at the end, which have this score.
    fn without_padding(&self, score: f32) -> &[Token<'m>] {
        let last = (self.tokens.iter().enumerate())
            .rposition(|(id, token)| !(is_padding(id, token) && token.score == score));
        &self.tokens[..last.map_or(0, |last| last + 1)]
    }

    /// Returns the fields of `tokenizer_config.json` for special tokens. Loaders treat named tokens as control tokens, so
    /// only control tokens are named. `config.json` has the ids of others.
    fn named_roles(&self) -> Map<String, Value> {
        let named = ROLES.iter().filter_map(|role| {
            let (id, text) = self.role(role)?;
            let kind = self.tokens.get(usize::try_from(id).ok()?)?.kind;
            let special = matches!(kind, TokenType::Control | TokenType::Unknown);
            special.then(|| (format!("{role}_token"), text.into()))
        });
        named.collect()
    }
}

/// Returns notes about faults for loaders and about keys that converting the files changes.
fn not_restored(
    vocabulary: &Vocabulary,
    hints: &[&str],
    config: &Value,
    out: &Tokenizer,
) -> Vec<String> {
    let mut config = config.clone();
    if let Some(fields) = config.as_object_mut() {
        fields.extend(out.config.clone());
    }
    let vocab_size = config["vocab_size"].as_u64().or(Some(vocabulary.tokens.len() as u64));
    let config = config.to_string();
    let files = out.files.iter().map(|file| (file.name, &file.bytes[..]));
    let files: BTreeMap<&str, &[u8]> = files.chain([("config.json", config.as_bytes())]).collect();
    let options = vocab::VocabularyOptions { pre: None, hints, vocab_size, architecture: None };
    let restored = match vocab::load_from(Folder::Memory(files), vocabulary.kind, &options) {
        Ok(restored) => restored.metadata,
        Err(error) => {
            return vec![format!("the exported tokenizer files do not convert: {error}")];
        }
    };
    let refused = refused(out);
    let of_tokenizer = |key: &str| key.starts_with("tokenizer.");
    let metadata = vocabulary.metadata;
    let lost = metadata.iter().filter(|(key, value)| {
        of_tokenizer(key) && restored.get(key).is_none_or(|restored| restored != *value)
    });
    let lost = lost.map(|(key, value)| match (key, value.as_str()) {
        ("tokenizer.ggml.pre", Some(pre)) => format!(
            "the exported tokenizer files do not determine the pre-tokenizer: convert them with \
             --pre {pre}"
        ),
        _ => format!("the tokenizer files do not express `{key}`"),
    });
    let added = restored.iter().filter(|(key, _)| metadata.get(key).is_none());
    let added = added.map(|(key, _)| format!("converting the export adds `{key}`"));
    refused.into_iter().chain(lost).chain(added).collect()
}

/// Returns notes about faults of `tokenizer.json` for the `tokenizers` library.
fn refused(out: &Tokenizer) -> Vec<String> {
    let file = out.files.iter().find(|file| file.name == "tokenizer.json");
    let tokenizer = file.and_then(|file| serde_json::from_slice(&file.bytes).ok());
    let faults = tokenizer.as_ref().map(loader::faults).unwrap_or_default();
    let note =
        |fault| format!("the `tokenizers` library reads tokenizer.json differently: {fault}");
    faults.into_iter().map(note).collect()
}

/// Returns one template as a string, or several as a list with names.
fn chat_template(metadata: &Metadata) -> Option<Value> {
    let default = metadata.str("tokenizer.chat_template");
    // The name of a built-in template.
    if default == Some(vocab::RWKV_CHAT_TEMPLATE) {
        return None;
    }
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
    let broken = |what: &str| {
        let what = format!("the vocabulary {what}");
        Error::from(Finding::error("vocabulary-broken", what).help("look at it with `gguf check`"))
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
                kind: kind.and_then(TokenType::from_id).unwrap_or(TokenType::Normal),
            })
        })
        .collect()
}

/// Returns whether a token is padding up to the rows of the embedding. Older programs gave padding the type unknown.
fn is_padding(id: usize, token: &Token) -> bool {
    matches!(token.kind, TokenType::Unused | TokenType::Unknown)
        && token.text == format!("[PAD{id}]")
}

/// Returns whether a token was added to a vocabulary with scores after training.
fn is_added(token: &Token) -> bool {
    token.score == ADDED_SCORE && matches!(token.kind, TokenType::UserDefined | TokenType::Control)
}
