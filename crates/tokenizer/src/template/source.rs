//! Source of a template: its text, and the special tokens that it can use.

use gguf::Metadata;
use gguf_models::token;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::Error;
use crate::llama_cpp::Settings;

/// Maximum length of a template in bytes; the longest published ones have 17 thousand.
const MAX_LEN: usize = 64 << 10;

/// Roles of special tokens that a template can use as variables `ROLE_token`.
const ROLES: [&str; 7] = ["bos", "eos", "unk", "sep", "pad", "cls", "mask"];

/// Engine that renders a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// jinja2 with the environment of `transformers`.
    #[default]
    Transformers,
    /// llama.cpp's own engine, which changes conversations to what the template can render.
    LlamaCpp,
}

/// An unparsed template of a model file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TemplateSource {
    /// Jinja text of at most 64 KB.
    pub(super) text: String,
    /// Variables with special tokens; those that the vocabulary lacks are undefined.
    pub(super) tokens: Map<String, Json>,
    /// Template that llama.cpp takes if there are tools, and its settings; `None` for jinja2.
    pub(super) llama_cpp: Option<LlamaCpp>,
}

/// Parts of a model file that llama.cpp reads besides a template.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LlamaCpp {
    pub settings: Settings,
    /// Template for conversations with tools.
    pub tool_use: Option<String>,
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
        Ok(Self { text: text.to_owned(), tokens: Map::new(), llama_cpp: None })
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

    /// Sets the engine. llama.cpp takes BOS and EOS from the model file, and for conversations with tools its template
    /// `tool_use`, if this one is the default.
    #[must_use]
    pub fn with_engine(self, engine: Engine, metadata: &Metadata) -> Self {
        let llama_cpp = (engine == Engine::LlamaCpp).then(|| {
            let is_default = metadata.str(Self::KEY) == Some(self.text.as_str());
            let tool_use = Self::from_metadata(metadata, Some("tool_use")).ok().flatten();
            LlamaCpp {
                settings: settings(metadata),
                tool_use: tool_use.filter(|_| is_default).map(|source| source.text),
            }
        });
        Self { llama_cpp, ..self }
    }

    /// Returns a prompt without the BOS and EOS that the tokenizer adds.
    pub(super) fn without_ends<'t>(&self, prompt: &'t str) -> &'t str {
        let Some(LlamaCpp { settings, .. }) = &self.llama_cpp else { return prompt };
        let start = Some(settings.bos.as_str()).filter(|_| settings.adds_bos);
        let end = Some(settings.eos.as_str()).filter(|_| settings.adds_eos);
        let prompt = start.and_then(|bos| prompt.strip_prefix(bos)).unwrap_or(prompt);
        end.and_then(|eos| prompt.strip_suffix(eos)).unwrap_or(prompt)
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

/// Returns the texts of BOS and EOS, and whether the tokenizer adds them.
fn settings(metadata: &Metadata) -> Settings {
    let tokens = special_tokens(metadata);
    let text = |name: &str| tokens.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
    let adds = |role: &str, default: bool| {
        metadata.bool(&format!("tokenizer.ggml.add_{role}_token")).unwrap_or(default)
    };
    // llama.cpp's defaults by tokenizer model.
    let model = metadata.str("tokenizer.ggml.model").unwrap_or_default();
    Settings {
        bos: text("bos_token"),
        eos: text("eos_token"),
        adds_bos: adds("bos", ["llama", "bert", "gemma4"].contains(&model)),
        adds_eos: adds("eos", model == "t5"),
    }
}
