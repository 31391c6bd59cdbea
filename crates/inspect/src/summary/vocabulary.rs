//! The vocabulary of a model, and its chat template.

use gguf::{Metadata, ValueType};
use gguf_models::token::{ROLES, add_key};

/// What the keys say of the vocabulary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vocabulary {
    /// `tokenizer.ggml.model`.
    pub model: Option<String>,
    /// `tokenizer.ggml.pre`.
    pub pre: Option<String>,
    /// How many tokens.
    pub tokens: Option<u64>,
    /// Tokens with a role of their own.
    pub special: Vec<SpecialToken>,
    /// The chat template.
    pub template: Option<Template>,
}

/// A token with a role of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialToken {
    /// The name of the role: `bos`, `eos`, `pad` ...
    pub role: &'static str,
    /// Its number.
    pub id: u64,
    /// Its text; `None` if the vocabulary has no such number.
    pub text: Option<String>,
    /// Whether programs put it around a text; `None` if no key says so.
    pub added: Option<bool>,
}

/// A program that makes one text of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its length in bytes.
    pub bytes: usize,
    /// Names of further ones.
    pub others: Vec<String>,
}

impl Vocabulary {
    /// What the keys say.
    pub(super) fn of(metadata: &Metadata) -> Self {
        let text = |key: &str| metadata.str(key).map(str::to_owned);
        let tokens = metadata.array("tokenizer.ggml.tokens");
        let tokens = tokens.filter(|tokens| tokens.element_type() == ValueType::String);
        let special = ROLES.iter().filter_map(|role| {
            let id = metadata.u64(role.id_key).or_else(|| metadata.u64(role.other_key?))?;
            let mut strings = tokens.and_then(|tokens| tokens.strings());
            let bytes = usize::try_from(id).ok().and_then(|id| strings.as_mut()?.nth(id));
            Some(SpecialToken {
                role: role.name,
                id,
                text: bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
                added: add_key(role.name).and_then(|key| metadata.bool(key)),
            })
        });
        const TEMPLATE: &str = "tokenizer.chat_template";
        let others = metadata
            .iter()
            .filter_map(|(key, _)| Some(key.strip_prefix(TEMPLATE)?.strip_prefix('.')?.to_owned()));
        let template = metadata.str(TEMPLATE);
        Self {
            model: text("tokenizer.ggml.model"),
            pre: text("tokenizer.ggml.pre"),
            tokens: tokens.map(|tokens| tokens.len()),
            special: special.collect(),
            template: template.map(|text| Template { bytes: text.len(), others: others.collect() }),
        }
    }
}
