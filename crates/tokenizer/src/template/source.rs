//! Source of a template: its text, and the special tokens that it can use.

use gguf::Metadata;
use gguf_models::token;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::Error;

/// Maximum length of a template in bytes; the longest published ones have 17 thousand.
const MAX_LEN: usize = 64 << 10;

/// Roles of special tokens that a template can use as variables `ROLE_token`.
const ROLES: [&str; 7] = ["bos", "eos", "unk", "sep", "pad", "cls", "mask"];

/// An unparsed template of a model file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TemplateSource {
    /// Jinja text of at most 64 KB.
    pub(super) text: String,
    /// Variables with special tokens; those that the vocabulary lacks are undefined.
    pub(super) tokens: Map<String, Json>,
}

impl TemplateSource {
    /// Key of the default template; the key of a named template is this one, a dot and the name.
    pub const KEY: &str = "tokenizer.chat_template";

    /// Creates a template without special tokens.
    ///
    /// # Errors
    /// If the text is too long.
    pub fn new(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_LEN {
            return Err(Error::limit(format!("{} KB of source", MAX_LEN >> 10)));
        }
        Ok(Self { text: text.to_owned(), tokens: Map::new() })
    }

    /// Reads the template of a model file with this name, or the default one; `None` if the file
    /// has no such template.
    ///
    /// # Errors
    /// If the value is not a string, or too long.
    pub fn from_metadata(metadata: &Metadata, name: Option<&str>) -> Result<Option<Self>, Error> {
        let key = name.map_or(Self::KEY.to_owned(), |name| format!("{}.{name}", Self::KEY));
        Self::from_key(metadata, &key)
    }

    /// Reads the template under this key of a model file; `None` if the key is missing or is not a
    /// template key.
    ///
    ///
    /// # Errors
    /// If the value is not a string, or too long.
    pub fn from_key(metadata: &Metadata, key: &str) -> Result<Option<Self>, Error> {
        let Some(value) = metadata.get(key).filter(|_| Self::is_key(key)) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| Error::NotText(key.to_owned()))?;
        Ok(Some(Self { tokens: special_tokens(metadata), ..Self::new(text)? }))
    }

    /// Whether a key of this name holds a template.
    pub(super) fn is_key(key: &str) -> bool {
        key.strip_prefix(Self::KEY).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// Returns the texts of the special tokens in the vocabulary, except those longer than a whole
/// template.
///
fn special_tokens(metadata: &Metadata) -> Map<String, Json> {
    let Some(tokens) = metadata.array("tokenizer.ggml.tokens") else { return Map::new() };
    let text = |key| {
        let id = usize::try_from(metadata.u64(key)?).ok()?;
        let token = tokens.strings()?.nth(id).filter(|token| token.len() <= MAX_LEN)?;
        Some(String::from_utf8_lossy(token).into_owned())
    };
    let variable = |role| Some((format!("{role}_token"), text(token::id_key(role)?)?.into()));
    ROLES.into_iter().filter_map(variable).collect()
}
