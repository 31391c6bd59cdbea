//! Vocabulary and chat template.

use gguf::{Metadata, ValueType};
use gguf_models::token::{ROLES, add_key};

/// Vocabulary in the metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vocabulary {
    /// `tokenizer.ggml.model`.
    pub model: Option<String>,
    /// `tokenizer.ggml.pre`.
    pub pre: Option<String>,
    /// Number of tokens.
    pub tokens: Option<u64>,
    /// Special tokens.
    pub special: Vec<SpecialToken>,
    /// Chat template.
    pub template: Option<Template>,
}

/// A special token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialToken {
    /// Role: `bos`, `eos`, `pad` ...
    pub role: &'static str,
    /// Token id.
    pub id: u64,
    /// Text; `None` if the id is not in the vocabulary.
    pub text: Option<String>,
    /// Whether it is added to texts; `None` without a key.
    pub added: Option<bool>,
}

/// A chat template.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Template {
    /// Length in bytes.
    pub bytes: usize,
    /// Names of other chat templates.
    pub others: Vec<String>,
}

impl Vocabulary {
    /// Reads the vocabulary.
    pub(super) fn of(metadata: &Metadata) -> Self {
        let text = |key: &str| metadata.str(key).map(str::to_owned);
        let tokens = metadata.array("tokenizer.ggml.tokens");
        let tokens = tokens.filter(|tokens| tokens.element_type() == ValueType::String);
        let special = ROLES.iter().filter_map(|role| {
            let id = metadata.u64(role.id_key).or_else(|| metadata.u64(role.alternative_key?))?;
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
