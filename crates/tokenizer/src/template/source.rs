//! Where a template comes from: its text, and the special tokens that it may name.

use gguf::Metadata;
use gguf_models::token;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::Error;

/// Bytes of a template; the longest ones of published models have 17 thousand.
const LEN: usize = 64 << 10;

/// Roles of the special tokens that a template can name: the variables are these with `_token`.
const ROLES: [&str; 7] = ["bos", "eos", "unk", "sep", "pad", "cls", "mask"];

/// A template as a model file has it, which nobody has parsed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Source {
    /// Jinja, at most 64 KB.
    pub(super) text: String,
    /// Variables that hold special tokens; those that the vocabulary lacks are undefined.
    pub(super) tokens: Map<String, Json>,
}

impl Source {
    /// The key of the template that is used unless another one is asked for; the keys of others
    /// are this one, a dot and a name.
    pub const KEY: &str = "tokenizer.chat_template";

    /// A template of this Jinja text, without special tokens.
    ///
    /// # Errors
    /// If the text is too long.
    pub fn new(text: &str) -> Result<Self, Error> {
        if text.len() > LEN {
            return Err(Error::limit(format!("{} KB of source", LEN >> 10)));
        }
        Ok(Self { text: text.to_owned(), tokens: Map::new() })
    }

    /// The template of a model file: the one called `name`, or the default one; `None` if the file
    /// has no such template.
    ///
    /// # Errors
    /// If the value is no text, or too long.
    pub fn from_metadata(metadata: &Metadata, name: Option<&str>) -> Result<Option<Self>, Error> {
        let key = name.map_or(Self::KEY.to_owned(), |name| format!("{}.{name}", Self::KEY));
        Self::of_key(metadata, &key)
    }

    /// The template that this key of a model file holds; `None` if the file has no such key, or
    /// keys of this name hold something else.
    ///
    /// # Errors
    /// If the value is no text, or too long.
    pub fn of_key(metadata: &Metadata, key: &str) -> Result<Option<Self>, Error> {
        let Some(value) = metadata.get(key).filter(|_| Self::is_key(key)) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| Error::NotText(key.to_owned()))?;
        Ok(Some(Self { tokens: special_tokens(metadata), ..Self::new(text)? }))
    }

    /// Tells whether keys of this name hold templates.
    pub(super) fn is_key(key: &str) -> bool {
        key.strip_prefix(Self::KEY).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// The texts of the special tokens that the vocabulary has. One that is longer than a whole
/// template is no token that anybody could mean.
fn special_tokens(metadata: &Metadata) -> Map<String, Json> {
    let Some(tokens) = metadata.array("tokenizer.ggml.tokens") else { return Map::new() };
    let text = |key| {
        let id = usize::try_from(metadata.u64(key)?).ok()?;
        let token = tokens.strings()?.nth(id).filter(|token| token.len() <= LEN)?;
        Some(String::from_utf8_lossy(token).into_owned())
    };
    let variable = |role| Some((format!("{role}_token"), text(token::id_key(role)?)?.into()));
    ROLES.into_iter().filter_map(variable).collect()
}
