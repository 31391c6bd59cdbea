//! `tekken.json`, Mistral's own tokenizer: special tokens, then byte tokens by rank.

use std::collections::HashMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use gguf::{Array, Error};
use gguf_models::token::TokenType;
use serde_json::{Map, Value, json};

use super::chat_template::ChatTemplate;
use super::token::MAX_TOKENS;
use super::{Builder, bpe, pre};

/// File name.
pub(super) const FILE: &str = "tekken.json";

/// Special tokens of files that list none.
const DEFAULT_SPECIAL_TOKENS: [&str; 20] = [
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
];

/// Roles and the texts of their tokens.
const ROLES: [(&str, &str); 4] =
    [("bos", "<s>"), ("eos", "</s>"), ("unknown", "<unk>"), ("padding", "<pad>")];

/// Versions whose chat template runtimes know by name.
const TEMPLATES: [(&str, &str); 2] = [("v3", "mistral-v3-tekken"), ("v7", "mistral-v7-tekken")];

/// Maximum length of a token. Finding its merges takes quadratic time.
const MAX_LEN: usize = 1024;

/// Content of the file.
struct Tekken {
    special: Vec<String>,
    /// Byte tokens, in the order of ranks.
    tokens: Vec<Vec<u8>>,
    version: String,
    pattern: String,
}

impl Builder<'_> {
    pub(super) fn tekken(&mut self) -> Result<(), Error> {
        let root = self.files.object(FILE)?.unwrap_or_default();
        let fault = |what: String| {
            let help = "download the file again";
            Error::input("vocabulary-damaged", &self.files.path(FILE), what, help)
        };
        let tekken = Tekken::read(&root).map_err(fault)?;
        let merges = tekken.merges().map_err(fault)?;
        let id = |text: &str| tekken.special.iter().position(|special| special == text);
        let ids = ROLES.map(|(role, text)| {
            let id = id(text).ok_or_else(|| fault(format!("has no special token `{text}`")))?;
            Ok((role, id as u32))
        });
        let ids: Vec<_> = ids.into_iter().collect::<Result<_, Error>>()?;
        let pre = self.tekken_pre_tokenizer(&tekken.pattern)?;

        let normal = tekken.tokens.iter().map(|token| bpe::spell(token));
        let texts: Vec<String> = tekken.special.iter().cloned().chain(normal).collect();
        let kind =
            |id| if id < tekken.special.len() { TokenType::Control } else { TokenType::Normal };
        let types: Vec<i32> = (0..texts.len()).map(|id| kind(id).id()).collect();
        self.len = texts.len();
        let metadata = &mut self.metadata;
        metadata.set("tokenizer.ggml.model", "gpt2");
        metadata.set("tokenizer.ggml.pre", pre);
        metadata.set("tokenizer.ggml.merges", Array::from_strings(&merges));
        for (role, id) in ids {
            metadata.set(format!("tokenizer.ggml.{role}_token_id"), id);
        }
        metadata.set("tokenizer.ggml.tokens", Array::from_strings(&texts));
        // llama.cpp's converter writes zeros too, but of a type that llama.cpp rejects.
        metadata.set("tokenizer.ggml.scores", Array::from(&vec![0f32; texts.len()][..]));
        metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
        if let Some(architecture) = self.options.architecture {
            metadata.set(format!("{architecture}.vocab_size"), texts.len() as u32);
        }
        metadata.set("tokenizer.ggml.add_bos_token", true);
        metadata.set("tokenizer.ggml.add_eos_token", false);
        let known = TEMPLATES.iter().find(|(version, _)| *version == tekken.version);
        match ChatTemplate::read(&self.files, &Map::new(), &mut self.notes)? {
            Some(template) => template.write(&mut self.metadata),
            None => match known {
                Some((_, name)) => self.metadata.set("tokenizer.chat_template", *name),
                None => self.notes.push(format!(
                    "chat_template.jinja is missing, and runtimes have no built-in template for the \
                     version `{}` of {FILE}: set one with `gguf edit --chat-template-file`",
                    tekken.version
                )),
            },
        }
        Ok(())
    }

    /// Returns the name of the pre-tokenizer with this regex.
    fn tekken_pre_tokenizer(&mut self, pattern: &str) -> Result<String, Error> {
        if let Some(name) = self.options.pre {
            return Ok(pre::requested(name, &mut self.notes));
        }
        let split = json!({ "type": "Split", "pattern": { "Regex": pattern },
            "behavior": "Isolated", "invert": false });
        let bytes = json!({ "type": "ByteLevel", "add_prefix_space": false, "use_regex": false });
        let steps = json!({ "type": "Sequence", "pretokenizers": [split, bytes] });
        let tokenizer = json!({ "pre_tokenizer": steps, "model": { "ignore_merges": true } });
        let path = self.files.path(FILE);
        pre::recognize(&tokenizer, &["tekken"], &path, &mut self.notes)
    }
}

impl Tekken {
    /// Parses the file. Errors are predicates of a sentence about it.
    fn read(root: &Map<String, Value>) -> Result<Self, String> {
        let config = root.get("config").unwrap_or(&Value::Null);
        let text = |field: &str| {
            config[field]
                .as_str()
                .map(str::to_owned)
                .ok_or(format!("has no string `config.{field}`"))
        };
        let count = |field: &str| {
            let count = config[field].as_u64().filter(|count| *count <= MAX_TOKENS);
            count.ok_or(format!("has no valid number `config.{field}`"))
        };
        let (all, special) = (count("default_vocab_size")?, count("default_num_special_tokens")?);
        let vocab = root.get("vocab").and_then(Value::as_array);
        let vocab = vocab.ok_or("has no list `vocab`")?;
        let normal = all.checked_sub(special).filter(|normal| *normal <= vocab.len() as u64);
        let normal = normal.ok_or_else(|| {
            format!(
                "has {all} tokens by `config`, {special} of them special, but {} in `vocab`",
                vocab.len()
            )
        })?;
        let entry = |(rank, entry): (u64, &Value)| {
            let bytes = entry["token_bytes"].as_str().and_then(|text| BASE64.decode(text).ok());
            bytes
                .filter(|bytes| (1..=MAX_LEN).contains(&bytes.len()))
                .filter(|_| entry["rank"] == rank)
                .ok_or(format!("vocab[{rank}] has another `rank`, or no `token_bytes` in base64"))
        };
        let tokens = (0..normal).zip(vocab).map(entry).collect::<Result<_, _>>()?;
        Ok(Self {
            special: special_tokens(root.get("special_tokens"), special as usize)?,
            tokens,
            version: text("version")?,
            pattern: text("pattern")?,
        })
    }

    /// Returns every pair of tokens that forms another token.
    fn merges(&self) -> Result<Vec<String>, String> {
        let ranks: HashMap<&[u8], usize> =
            self.tokens.iter().enumerate().map(|(rank, token)| (&token[..], rank)).collect();
        if ranks.len() < self.tokens.len() {
            return Err("has a duplicate token in `vocab`".to_owned());
        }
        let mut merges = Vec::new();
        for (rank, token) in self.tokens.iter().enumerate() {
            if rank < 256 {
                if token.len() > 1 {
                    return Err(format!(
                        "vocab[{rank}] has several bytes; the first 256 tokens must be single bytes"
                    ));
                }
                continue;
            }
            let mut pairs: Vec<_> = (1..token.len())
                .filter_map(|at| Some((*ranks.get(&token[..at])?, *ranks.get(&token[at..])?)))
                .collect();
            if pairs.is_empty() {
                return Err(format!("vocab[{rank}] is not a merge of two other tokens"));
            }
            pairs.sort_unstable();
            let spelled = |rank: usize| bpe::spell(&self.tokens[rank]);
            merges.extend(pairs.into_iter().map(|(a, b)| format!("{} {}", spelled(a), spelled(b))));
        }
        Ok(merges)
    }
}

/// Returns the special tokens in the order of ids. Ids behind the end of the list get numbered tokens.
fn special_tokens(listed: Option<&Value>, count: usize) -> Result<Vec<String>, String> {
    let mut special: Vec<String> = match listed {
        None | Some(Value::Null) => {
            DEFAULT_SPECIAL_TOKENS.iter().take(count).map(|text| (*text).to_owned()).collect()
        }
        Some(list) => {
            let list = list.as_array().ok_or("has no list `special_tokens`")?;
            let entry = |(id, entry): (usize, &Value)| {
                let text = entry["token_str"].as_str().filter(|_| entry["rank"] == id);
                text.map(str::to_owned)
                    .ok_or(format!("special_tokens[{id}] has another `rank`, or no `token_str`"))
            };
            list.iter().enumerate().map(entry).collect::<Result<_, _>>()?
        }
    };
    if special.len() > count {
        return Err(format!(
            "has {} entries in `special_tokens`, but `config` has {count}",
            special.len()
        ));
    }
    special.extend((special.len()..count).map(|id| format!("<SPECIAL_{id}>")));
    Ok(special)
}
