//! The tokenizer files of a checkpoint directory, each parsed once.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_checkpoint::json;
use serde_json::{Map, Value};

use super::folder::Folder;
use super::tiktoken_line::is_tiktoken;

/// A SentencePiece model.
pub(crate) const SENTENCEPIECE: &str = "tokenizer.model";

/// The JSON files that describe a tokenizer, where they exist.
pub(super) struct Files<'a> {
    folder: Folder<'a>,
    tokenizer: Option<Value>,
    /// What `tokenizer` was read from.
    tokenizer_path: PathBuf,
    /// Whether `tokenizer` tells how text is cut before merging.
    states_cuts: bool,
    tokenizer_config: Option<Map<String, Value>>,
    config: Option<Map<String, Value>>,
}

impl<'a> Files<'a> {
    pub fn read(folder: Folder<'a>) -> Result<Self, Error> {
        Ok(Self {
            tokenizer: read_json(&folder, "tokenizer.json")?,
            tokenizer_path: folder.path("tokenizer.json"),
            states_cuts: true,
            tokenizer_config: read_object(&folder, "tokenizer_config.json")?,
            config: read_object(&folder, "config.json")?,
            folder,
        })
    }

    /// How errors call a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.folder.has(name)
    }

    /// The content of a file.
    pub fn bytes(&self, name: &str) -> Result<Cow<'_, [u8]>, Error> {
        self.folder.read(name)
    }

    /// The content of a text file.
    pub fn text(&self, name: &str) -> Result<String, Error> {
        self.folder.text(name)
    }

    /// All files.
    pub fn folder(&self) -> &Folder<'a> {
        &self.folder
    }

    /// `tokenizer.json`.
    pub fn tokenizer(&self) -> Option<&Value> {
        self.tokenizer.as_ref()
    }

    /// What [`Files::tokenizer`] was read from.
    pub fn tokenizer_path(&self) -> &Path {
        &self.tokenizer_path
    }

    /// Whether [`Files::tokenizer`] tells how text is cut before merging.
    pub fn states_cuts(&self) -> bool {
        self.states_cuts
    }

    /// Takes a tokenizer that other files have for `tokenizer.json`. `states_cuts` is whether they
    /// tell how text is cut, `roles` are fields of `tokenizer_config.json` that they imply.
    pub fn set_tokenizer(
        &mut self,
        tokenizer: Value,
        path: PathBuf,
        states_cuts: bool,
        roles: Vec<(&'static str, &'static str)>,
    ) {
        let config = self.tokenizer_config.get_or_insert_default();
        for (role, text) in roles {
            config.entry(role).or_insert(text.into());
        }
        self.tokenizer = Some(tokenizer);
        self.tokenizer_path = path;
        self.states_cuts = states_cuts;
    }

    /// `tokenizer.json`, without which there is no byte-level vocabulary.
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

    /// `tokenizer_config.json`.
    pub fn tokenizer_config(&self) -> Option<&Map<String, Value>> {
        self.tokenizer_config.as_ref()
    }

    /// A truth value of `tokenizer_config.json`.
    pub fn tokenizer_config_bool(&self, key: &str) -> Option<bool> {
        self.tokenizer_config()?.get(key)?.as_bool()
    }

    /// An integer of `config.json`: of its root, or else of the text model inside.
    pub fn config_integer(&self, key: &str) -> Option<i64> {
        let root = self.config.as_ref()?;
        match root.get(key) {
            None | Some(Value::Null) => root.get("text_config")?.get(key)?.as_i64(),
            Some(value) => value.as_i64(),
        }
    }

    /// A list of integers of `config.json`: of its root, or else of the text model inside.
    pub fn config_list(&self, key: &str) -> Vec<i64> {
        let root = self.config.as_ref();
        let list = root.and_then(|root| match root.get(key) {
            None | Some(Value::Null) => root.get("text_config")?.get(key)?.as_array(),
            Some(value) => value.as_array(),
        });
        list.into_iter().flatten().filter_map(Value::as_i64).collect()
    }

    /// The object in another JSON file of the directory, if there is one.
    pub fn object(&self, name: &str) -> Result<Option<Map<String, Value>>, Error> {
        read_object(&self.folder, name)
    }

    /// Whether there is a SentencePiece model; some call a tiktoken file by its name.
    pub fn has_sentencepiece(&self) -> bool {
        self.has(SENTENCEPIECE) && !is_tiktoken(&self.folder, SENTENCEPIECE)
    }

    /// The entries of `added_tokens` in `tokenizer.json`.
    pub fn added_tokens(&self) -> impl Iterator<Item = &Value> {
        let list = self.tokenizer().and_then(|t| t.get("added_tokens")).and_then(Value::as_array);
        list.into_iter().flatten()
    }

    /// The id of an added token.
    pub fn added_id(&self, text: &str) -> Option<u32> {
        let token = self.added_tokens().find(|token| token["content"] == text)?;
        u32::try_from(token["id"].as_u64()?).ok()
    }

    /// The entries of `added_tokens_decoder` in `tokenizer_config.json`: id, then description.
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
                        format!("added_tokens_decoder[{key:?}] is not an id with its content"),
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

/// A token that is matched by its text before the tokenizer's rules apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AddedToken {
    /// Its text.
    pub content: String,
    /// No text but a control token.
    pub special: bool,
    /// Matched in normalized text: then `content` already stands as it is matched.
    pub normalized: bool,
}

impl AddedToken {
    /// The description in a file; `None` if it has no content.
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

/// The text of a special token: files give it as a string, or as an object around one.
pub(super) fn special_token_text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content")?.as_str())
}
