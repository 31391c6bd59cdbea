//! Special tokens: their ids, and whether runtimes add them to a text.
//!
//! The decisions and the order of keys are those of `SpecialVocab` in llama.cpp's `gguf` package.

use gguf::{Error, Metadata};
use gguf_models::token;
use serde_json::{Map, Value};

use super::chat_template::ChatTemplate;
use super::files::{AddedToken, Files, special_token_text};
use super::post_processor;
use super::roles::{Flags, ROLES};

/// Settings of a tokenizer besides its tokens.
#[derive(Debug, Default)]
pub(super) struct SpecialTokens {
    ids: Vec<(&'static str, u32)>,
    add: Flags,
    chat_template: Option<ChatTemplate>,
    lowercase: Option<bool>,
    strip_accents: Option<bool>,
}

impl SpecialTokens {
    /// Reads the files for these roles. Ids from `limit` on are skipped, with a note.
    pub fn read(
        files: &Files,
        types: &[&'static str],
        limit: Option<u64>,
        notes: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let mut special = Self::default();
        let mut types = types.to_vec();
        let mut config = files.tokenizer_config().cloned().unwrap_or_default();
        if let Some(tokenizer) = files.tokenizer() {
            special.normalizer(&tokenizer["normalizer"]);
            special.add = post_processor::read(tokenizer, &mut config, &mut types, notes);
        }
        // An empty configuration counts as missing.
        if !config.is_empty() {
            special.chat_template = ChatTemplate::read(files, &config, notes)?;
            for &role in &types {
                special.named(role, files, &config, limit, notes);
            }
        }
        if let Some(tokenizer) = files.tokenizer() {
            for (role, id) in post_processor::ids(tokenizer) {
                if special.add.get(role) == Some(true) {
                    special.set_id(role, id, limit, notes);
                }
            }
        }
        for &role in &types {
            if let Some(id) = files.config_integer(&format!("{role}_token_id")) {
                special.set_id(role, id, limit, notes);
            }
        }
        Ok(special)
    }

    fn normalizer(&mut self, normalizer: &Value) {
        match normalizer["type"].as_str() {
            Some("Lowercase") => self.lowercase = Some(true),
            Some("StripAccents") => self.strip_accents = Some(true),
            Some("BertNormalizer") => {
                self.lowercase = normalizer["lowercase"].as_bool();
                self.strip_accents = normalizer["strip_accents"].as_bool();
            }
            Some("Sequence") => {
                for part in normalizer["normalizers"].as_array().into_iter().flatten() {
                    self.normalizer(part);
                }
            }
            _ => {}
        }
    }

    /// Reads flag and id of a role in `tokenizer_config.json`.
    fn named(
        &mut self,
        role: &'static str,
        files: &Files,
        config: &Map<String, Value>,
        limit: Option<u64>,
        notes: &mut Vec<String>,
    ) {
        let add = config.get(&format!("add_{role}_token")).and_then(Value::as_bool);
        match (add, self.add.get(role)) {
            (Some(add), Some(decided)) if add != decided => notes.push(format!(
                "add_{role}_token is {add} in tokenizer_config.json, but {decided} in the post-processor of \
                 tokenizer.json: wrote {decided}"
            )),
            (Some(add), None) => self.add.set(role, add),
            _ => {}
        }
        let text = config.get(&format!("{role}_token")).and_then(special_token_text);
        let id = text.and_then(|text| {
            let mut added = files.added_tokens();
            added.find(|token| token["content"] == text)?["id"].as_i64()
        });
        if let Some(id) = id {
            self.set_id(role, id, limit, notes);
        }
    }

    /// Sets the id of a role that has none.
    pub fn default_id(&mut self, role: &'static str, id: u32) {
        if !self.ids.iter().any(|(r, _)| *r == role) {
            self.ids.push((role, id));
        }
    }

    /// Sets whether runtimes add the token of a role, if the files do not say it.
    pub fn default_add(&mut self, role: &'static str, add: bool) {
        self.add.set_default(role, add);
    }

    /// Sets or replaces the id of a role.
    pub fn replace_id(&mut self, role: &'static str, id: u32) {
        match self.ids.iter_mut().find(|(r, _)| *r == role) {
            Some((_, old)) => *old = id,
            None => self.ids.push((role, id)),
        }
    }

    /// Sets the id of a role that has none, if it is valid.
    fn set_id(&mut self, role: &'static str, id: i64, limit: Option<u64>, notes: &mut Vec<String>) {
        let fits = |id: &u32| limit.is_none_or(|limit| u64::from(*id) < limit);
        match u32::try_from(id).ok().filter(fits) {
            Some(_) if self.has(role) => {}
            Some(id) => self.ids.push((role, id)),
            None => notes
                .push(format!("skipped the {role} token: its id {id} is not in the vocabulary")),
        }
    }

    /// Sets or replaces the id of a role, whatever the files say.
    pub fn assign(&mut self, role: &'static str, id: u32) {
        match self.ids.iter_mut().find(|(r, _)| *r == role) {
            Some(entry) => entry.1 = id,
            None => self.ids.push((role, id)),
        }
    }

    /// Returns whether a role has an id.
    pub fn has(&self, role: &str) -> bool {
        self.ids.iter().any(|(r, _)| *r == role)
    }

    /// Sets the chat template if the files have none.
    pub fn default_chat_template(&mut self, text: &str) {
        self.chat_template.get_or_insert_with(|| ChatTemplate::single(text.to_owned()));
    }

    /// Writes the keys.
    pub fn write(self, metadata: &mut Metadata) {
        for (role, id) in self.ids {
            // llama.cpp has no key for the CLS token.
            if let Some(key) = token::id_key(role).filter(|_| role != "cls") {
                metadata.set(key, id);
            }
        }
        for (role, add) in self.add.in_order() {
            if let Some(key) = token::add_key(role) {
                metadata.set(key, add);
            }
        }
        if let Some(template) = self.chat_template {
            template.write(metadata);
        }
        if let Some(lowercase) = self.lowercase {
            metadata.set("tokenizer.ggml.normalizer.lowercase", lowercase);
        }
        if let Some(strip) = self.strip_accents {
            metadata.set("tokenizer.ggml.normalizer.strip_accents", strip);
        }
    }
}

/// Default special tokens of tokenizer classes: prefix of the class name, role, text.
const CLASS_DEFAULTS: &[(&str, &str, &str)] = &[
    ("LlamaTokenizer", "bos", "<s>"),
    ("LlamaTokenizer", "eos", "</s>"),
    ("LlamaTokenizer", "unk", "<unk>"),
    ("XLMRobertaTokenizer", "bos", "<s>"),
    ("XLMRobertaTokenizer", "eos", "</s>"),
    ("XLMRobertaTokenizer", "unk", "<unk>"),
    ("XLMRobertaTokenizer", "pad", "<pad>"),
    ("XLMRobertaTokenizer", "mask", "<mask>"),
    ("T5Tokenizer", "eos", "</s>"),
    ("T5Tokenizer", "unk", "<unk>"),
    ("T5Tokenizer", "pad", "<pad>"),
];

/// Returns the texts of the special tokens that the configuration names. In vocabularies with scores, only these are
/// control tokens, whatever `tokenizer.json` marks as special; without a configuration, its flags count.
pub(super) fn named_special_tokens(files: &Files) -> Result<Vec<String>, Error> {
    let mut config = files.tokenizer_config().cloned().unwrap_or_default();
    // Newer configurations list their added tokens, and the map is only a copy.
    if !config.contains_key("added_tokens_decoder") {
        config.extend(files.object("special_tokens_map.json")?.into_iter().flatten());
    }
    let named = ROLES.iter().filter_map(|role| config.get(&format!("{role}_token")));
    let listed = config.get("additional_special_tokens").and_then(Value::as_array);
    let mut texts: Vec<String> = named
        .chain(listed.into_iter().flatten())
        .filter_map(special_token_text)
        .map(str::to_owned)
        .collect();
    if files.tokenizer_config().is_none() {
        let flagged = files.added_tokens().filter_map(AddedToken::parse);
        texts.extend(flagged.filter(|token| token.special).map(|token| token.content));
    }
    let class = config.get("tokenizer_class").and_then(Value::as_str).unwrap_or_default();
    for (start, role, text) in CLASS_DEFAULTS {
        if class.starts_with(start) && !config.contains_key(&format!("{role}_token")) {
            texts.push((*text).to_owned());
        }
    }
    Ok(texts)
}
