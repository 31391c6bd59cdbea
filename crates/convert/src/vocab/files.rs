//! The tokenizer files of a checkpoint directory, each parsed once.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_checkpoint::json;
use serde_json::{Map, Value};

use super::folder::Folder;
use super::tiktoken_line::is_tiktoken;

/// File name of a SentencePiece model.
pub(crate) const SENTENCEPIECE: &str = "tokenizer.model";

/// JSON files of a tokenizer.
pub(super) struct Files<'a> {
    folder: Folder<'a>,
    tokenizer: Option<Value>,
    /// File of `tokenizer`.
    tokenizer_path: PathBuf,
    /// Whether `tokenizer` has a pre-tokenizer.
    has_pre_tokenizer: bool,
    tokenizer_config: Option<Map<String, Value>>,
    config: Option<Map<String, Value>>,
}

impl<'a> Files<'a> {
    pub fn read(folder: Folder<'a>) -> Result<Self, Error> {
        Ok(Self {
            tokenizer: read_json(&folder, "tokenizer.json")?,
            tokenizer_path: folder.path("tokenizer.json"),
            has_pre_tokenizer: true,
            tokenizer_config: read_object(&folder, "tokenizer_config.json")?,
            config: read_object(&folder, "config.json")?,
            folder,
        })
    }

    /// Returns the path of a file for errors.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.folder.has(name)
    }

    /// Reads a file.
    pub fn bytes(&self, name: &str) -> Result<Cow<'_, [u8]>, Error> {
        self.folder.read(name)
    }

    /// Reads a text file.
    pub fn text(&self, name: &str) -> Result<String, Error> {
        self.folder.text(name)
    }

    /// Returns the directory.
    pub fn folder(&self) -> &Folder<'a> {
        &self.folder
    }

    /// Returns `tokenizer.json`, or the tokenizer assembled from other files.
    pub fn tokenizer(&self) -> Option<&Value> {
        self.tokenizer.as_ref()
    }

    /// Returns the file of [`Files::tokenizer`].
    pub fn tokenizer_path(&self) -> &Path {
        &self.tokenizer_path
    }

    /// Returns whether [`Files::tokenizer`] has a pre-tokenizer.
    pub fn has_pre_tokenizer(&self) -> bool {
        self.has_pre_tokenizer
    }

    /// Sets a tokenizer that was assembled from other files. `has_pre_tokenizer` is whether the files determine the
    /// pre-tokenizer, `roles` are fields of `tokenizer_config.json` that they imply.
    pub fn set_tokenizer(
        &mut self,
        tokenizer: Value,
        path: PathBuf,
        has_pre_tokenizer: bool,
        roles: Vec<(&'static str, &'static str)>,
    ) {
        let config = self.tokenizer_config.get_or_insert_default();
        for (role, text) in roles {
            config.entry(role).or_insert(text.into());
        }
        self.tokenizer = Some(tokenizer);
        self.tokenizer_path = path;
        self.has_pre_tokenizer = has_pre_tokenizer;
    }

    /// Returns the tokenizer.
    ///
    /// # Errors
    /// If there is none.
    pub fn require_tokenizer(&self) -> Result<&Value, Error> {
        self.tokenizer.as_ref().ok_or_else(|| {
            Error::input(
                "vocabulary-missing",
                &self.path(""),
                "no tokenizer: looked for tokenizer.model, tokenizer.json, vocab.json, vocab.txt \
                 and *.tiktoken",
                "copy the tokenizer files of the model into this directory",
            )
        })
    }

    /// Returns `tokenizer_config.json`.
    pub fn tokenizer_config(&self) -> Option<&Map<String, Value>> {
        self.tokenizer_config.as_ref()
    }

    /// Returns a boolean of `tokenizer_config.json`.
    pub fn tokenizer_config_bool(&self, key: &str) -> Option<bool> {
        self.tokenizer_config()?.get(key)?.as_bool()
    }

    /// Returns an integer of `config.json`, or else of its `text_config`.
    pub fn config_integer(&self, key: &str) -> Option<i64> {
        let root = self.config.as_ref()?;
        match root.get(key) {
            None | Some(Value::Null) => root.get("text_config")?.get(key)?.as_i64(),
            Some(value) => value.as_i64(),
        }
    }

    /// Returns a list of integers of `config.json`, or else of its `text_config`.
    pub fn config_list(&self, key: &str) -> Vec<i64> {
        let root = self.config.as_ref();
        let list = root.and_then(|root| match root.get(key) {
            None | Some(Value::Null) => root.get("text_config")?.get(key)?.as_array(),
            Some(value) => value.as_array(),
        });
        list.into_iter().flatten().filter_map(Value::as_i64).collect()
    }

    /// Reads another JSON file if it exists.
    pub fn object(&self, name: &str) -> Result<Option<Map<String, Value>>, Error> {
        read_object(&self.folder, name)
    }

    /// Returns whether there is a SentencePiece model. Some tiktoken files have the same name.
    pub fn has_sentencepiece(&self) -> bool {
        self.has(SENTENCEPIECE) && !is_tiktoken(&self.folder, SENTENCEPIECE)
    }

    /// Returns the entries of `added_tokens` in `tokenizer.json`.
    pub fn added_tokens(&self) -> impl Iterator<Item = &Value> {
        let list = self.tokenizer().and_then(|t| t.get("added_tokens")).and_then(Value::as_array);
        list.into_iter().flatten()
    }

    /// Returns the id of an added token.
    pub fn added_id(&self, text: &str) -> Option<u32> {
        let token = self.added_tokens().find(|token| token["content"] == text)?;
        u32::try_from(token["id"].as_u64()?).ok()
    }

    /// Returns the entries of `added_tokens_decoder` in `tokenizer_config.json`, with their ids.
    ///
    /// # Errors
    /// If a key is not an id.
    pub fn added_tokens_decoder(&self) -> Result<Vec<(u64, AddedToken)>, Error> {
        let entries = self.tokenizer_config().and_then(|c| c.get("added_tokens_decoder"));
        let entries = entries.and_then(Value::as_object).into_iter().flatten();
        let path = self.path("tokenizer_config.json");
        entries
            .map(|(key, value)| {
                let id = key.parse().ok();
                id.zip(AddedToken::parse(value)).ok_or_else(|| {
                    Error::input(
                        "vocabulary-damaged",
                        &path,
                        format!("added_tokens_decoder[{key:?}] has no valid id or no `content`"),
                        "correct the entry",
                    )
                })
            })
            .collect()
    }
}

fn read_json(folder: &Folder, name: &str) -> Result<Option<Value>, Error> {
    match folder.has(name) {
        true => json::parse(&folder.path(name), &folder.read(name)?).map(Some),
        false => Ok(None),
    }
}

fn read_object(folder: &Folder, name: &str) -> Result<Option<Map<String, Value>>, Error> {
    match read_json(folder, name)? {
        None => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(_) => Err(Error::input(
            "json-shape",
            &folder.path(name),
            "not a JSON object",
            "download the file again",
        )),
    }
}

/// Token that is matched by its text before pre-tokenization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AddedToken {
    /// Text.
    pub content: String,
    /// Whether the token is a control token.
    pub special: bool,
    /// Whether the token is matched in normalized text, so that `content` is normalized.
    pub normalized: bool,
}

impl AddedToken {
    /// Parses the description of a token; `None` if it has no content.
    pub fn parse(value: &Value) -> Option<Self> {
        let flag = |key| value.get(key).and_then(Value::as_bool);
        let special = flag("special").unwrap_or(false);
        Some(Self {
            content: value.get("content")?.as_str()?.to_owned(),
            special,
            normalized: flag("normalized").unwrap_or(!special),
        })
    }
}

/// Returns the text of a special token, which is a string or an object with `content`.
pub(super) fn special_token_text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content")?.as_str())
}
