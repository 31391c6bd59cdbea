//! Unigram vocabularies of T5 and XLM-RoBERTa, from SentencePiece models or `tokenizer.json`.

use std::collections::{HashMap, HashSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use gguf::Error;
use gguf_models::token::{self, TokenType};
use serde_json::Value;

use super::files::{Files, SENTENCEPIECE};
use super::sentencepiece::{self, Model, UNUSED_SCORE};
use super::special::named_special_tokens;
use super::token::{ADDED_SCORE, MAX_TOKENS, Token};
use super::{Array, Builder};

/// File name of XLM-RoBERTa's SentencePiece model.
pub(crate) const XLM_ROBERTA_MODEL: &str = "sentencepiece.bpe.model";

/// File name of T5's SentencePiece model.
pub(crate) const T5_MODEL: &str = "spiece.model";

/// Pieces and normalizer settings.
pub(super) struct Unigram {
    pub tokens: Vec<Token>,
    /// Whether a space is added in front of a text.
    pub space_prefix: bool,
    /// Whether extra spaces are removed.
    pub fold_spaces: bool,
    /// Precompiled character map of SentencePiece; may be empty.
    pub charsmap: Vec<u8>,
}

impl Builder<'_> {
    pub(super) fn t5(&mut self) -> Result<(), Error> {
        let Some(name) = t5_model(&self.files) else {
            let is_bpe = |tokenizer: &Value| tokenizer["model"]["type"] == "BPE";
            if self.files.tokenizer().is_some_and(is_bpe) {
                return self.bpe();
            }
            let unigram = self.unigram_from_json()?;
            return self.unigram(unigram, false);
        };
        let model = sentencepiece::read(&self.files, name)?;
        // Some T5 variants use BPE.
        if model.algorithm != sentencepiece::UNIGRAM {
            self.sentencepiece_model(name)?;
            return self.t5_ends();
        }
        let unigram = Unigram {
            space_prefix: model.add_dummy_prefix,
            fold_spaces: model.remove_extra_whitespaces,
            charsmap: model.charsmap.clone(),
            tokens: sentencepiece::pieces(
                model,
                &self.files,
                self.options.vocab_size,
                &mut self.notes,
            )?,
        };
        self.unigram(unigram, false)
    }

    /// Writes what the class of T5's tokenizers adds to a text, if the files do not say it: only EOS.
    fn t5_ends(&mut self) -> Result<(), Error> {
        for (role, add) in [("bos", false), ("eos", true)] {
            let key = token::add_key(role).filter(|key| self.metadata.get(key).is_none());
            if let Some(key) = key {
                self.metadata.set(key, add);
            }
        }
        Ok(())
    }

    pub(super) fn xlm_roberta(&mut self) -> Result<(), Error> {
        let unigram = match self.files.has(XLM_ROBERTA_MODEL) {
            true => self.with_shifted_ids(XLM_ROBERTA_MODEL)?,
            false => self.unigram_from_json()?,
        };
        self.unigram(unigram, true)
    }

    /// Writes the keys. Encoders have a number of token types.
    fn unigram(&mut self, unigram: Unigram, is_encoder: bool) -> Result<(), Error> {
        self.pieces(&unigram, is_encoder);
        let mut special = self.special_tokens(unigram.tokens.len())?;
        // Without a configuration, runtimes assume the ids of T5.
        let is_unknown = |token: &Token| token.kind == TokenType::Unknown;
        let unknown = unigram.tokens.iter().position(is_unknown);
        if self.files.tokenizer_config().is_none()
            && let Some(unknown) = unknown.and_then(|id| u32::try_from(id).ok())
        {
            special.default_id("unk", unknown);
        }
        special.write(&mut self.metadata);
        Ok(())
    }

    /// Writes the keys without those of special tokens.
    pub(super) fn pieces(&mut self, unigram: &Unigram, is_encoder: bool) {
        let Unigram { tokens, space_prefix, fold_spaces, charsmap } = unigram;
        self.tokens("t5", "default".to_owned(), tokens, true);
        self.metadata.set("tokenizer.ggml.add_space_prefix", *space_prefix);
        if is_encoder {
            self.token_type_count();
        }
        self.metadata.set("tokenizer.ggml.remove_extra_whitespaces", *fold_spaces);
        if !charsmap.is_empty() {
            self.metadata.set("tokenizer.ggml.precompiled_charsmap", Array::from(&charsmap[..]));
        }
    }

    /// Reads a SentencePiece model with XLM-RoBERTa's ids: its four special tokens replace the model's first three
    /// pieces, and the ids of all others increase by one.
    fn with_shifted_ids(&mut self, name: &str) -> Result<Unigram, Error> {
        let Model { pieces, add_dummy_prefix, remove_extra_whitespaces, charsmap, algorithm } =
            sentencepiece::read(&self.files, name)?;
        if algorithm != sentencepiece::UNIGRAM {
            let what = "is not a Unigram model";
            let help = "check that the tokenizer belongs to this model";
            return Err(Error::input("vocabulary-other-model", &self.files.path(name), what, help));
        }
        let rows = self.rows(pieces.len() as u64)?;
        let control = |text: &str, kind| Token { text: text.to_owned(), score: 0.0, kind };
        let mut tokens = vec![
            control("<s>", TokenType::Control),
            control("<pad>", TokenType::Control),
            control("</s>", TokenType::Control),
            control("<unk>", TokenType::Unknown),
        ];
        let padding = (pieces.len()..).map(|id| Token::padding(id, UNUSED_SCORE));
        tokens.extend(pieces.iter().cloned().chain(padding).skip(3).take(rows.saturating_sub(4)));
        Ok(Unigram {
            tokens,
            space_prefix: add_dummy_prefix,
            fold_spaces: remove_extra_whitespaces,
            charsmap,
        })
    }

    /// Returns the number of rows of the embedding, or the number of tokens if it is larger.
    fn rows(&self, tokens: u64) -> Result<usize, Error> {
        let rows = self.options.vocab_size.unwrap_or(0).max(tokens);
        if rows > MAX_TOKENS {
            let what = format!("vocab_size is {rows}");
            let help = "correct it to the number of rows of the embedding";
            return Err(Error::input("config-field", &self.files.path("config.json"), what, help));
        }
        Ok(rows as usize)
    }

    fn unigram_from_json(&self) -> Result<Unigram, Error> {
        let path = self.files.tokenizer_path();
        let fault = |what: String| {
            Error::input("vocabulary-damaged", path, what, "download the file again")
        };
        let tokenizer = self.files.require_tokenizer()?;
        let model = &tokenizer["model"];
        if model["type"] != "Unigram" {
            let what = format!("`model.type` is {}; expected Unigram", model["type"]);
            return Err(Error::input(
                "vocabulary-other-model",
                path,
                what,
                "check that the tokenizer belongs to this model",
            ));
        }
        let vocab =
            model["vocab"].as_array().ok_or_else(|| fault("model.vocab is missing".into()))?;
        let added: HashMap<u64, &str> = self
            .files
            .added_tokens()
            .filter_map(|token| Some((token["id"].as_u64()?, token["content"].as_str()?)))
            .collect();
        let unknown = self.unknown_id(&added).or(model["unk_id"].as_u64()).unwrap_or(3);
        let special: HashSet<String> = named_special_tokens(&self.files)?.into_iter().collect();

        let mut tokens = Vec::with_capacity(vocab.len());
        for (entry, id) in vocab.iter().zip(0u64..) {
            let (Some(piece), Some(score)) = (entry[0].as_str(), entry[1].as_f64()) else {
                return Err(fault(format!("piece {id} is {entry}; expected a string and a score")));
            };
            let text = added.get(&id).copied().unwrap_or(piece).to_owned();
            let kind = match added.contains_key(&id) {
                _ if id == unknown => TokenType::Unknown,
                _ if special.contains(&text) => TokenType::Control,
                true => TokenType::UserDefined,
                false => TokenType::Normal,
            };
            tokens.push(Token { text, score: score as f32, kind });
        }
        let behind = added.keys().map(|id| id.saturating_add(1)).max().unwrap_or(0);
        let rows = self.rows(behind.max(tokens.len() as u64))?;
        tokens.extend((tokens.len()..rows).map(|id| match added.get(&(id as u64)) {
            Some(&text) => {
                let is_special = special.contains(text);
                let kind = if is_special { TokenType::Control } else { TokenType::UserDefined };
                Token { text: text.to_owned(), score: ADDED_SCORE, kind }
            }
            None => Token::padding(id, UNUSED_SCORE),
        }));
        let charsmap = charsmap(&tokenizer["normalizer"]).map(|text| BASE64.decode(text));
        let charsmap = charsmap.transpose().map_err(|error| {
            fault(format!("precompiled_charsmap of the normalizer is not base64: {error}"))
        })?;
        let stated = |key| self.files.tokenizer_config_bool(key);
        Ok(Unigram {
            tokens,
            space_prefix: stated("add_prefix_space")
                .unwrap_or_else(|| adds_space_prefix(&tokenizer["pre_tokenizer"])),
            fold_spaces: match self.files.tokenizer_config() {
                Some(_) => stated("clean_up_tokenization_spaces").unwrap_or(true),
                None => folds_spaces(tokenizer),
            },
            charsmap: charsmap.unwrap_or_default(),
        })
    }

    /// Returns the id of the unknown token of `tokenizer_config.json`.
    fn unknown_id(&self, added: &HashMap<u64, &str>) -> Option<u64> {
        let named = self.files.tokenizer_config()?.get("unk_token")?;
        let named = super::files::special_token_text(named)?;
        added.iter().find(|(_, text)| **text == named).map(|(&id, _)| id)
    }
}

/// Returns the file name of the SentencePiece model, which has one of two names.
fn t5_model(files: &Files) -> Option<&'static str> {
    if files.has_sentencepiece() {
        return Some(SENTENCEPIECE);
    }
    Some(T5_MODEL).filter(|name| files.has(name))
}

/// Returns the character map in a normalizer, which may be a sequence.
fn charsmap(normalizer: &Value) -> Option<&str> {
    let parts = normalizer["normalizers"].as_array();
    normalizer["precompiled_charsmap"].as_str().or_else(|| parts?.iter().find_map(charsmap))
}

/// Returns whether the normalizer or the pre-tokenizer removes extra spaces.
fn folds_spaces(tokenizer: &Value) -> bool {
    let parts = |part: &str, list: &str| {
        let part = &tokenizer[part];
        part[list].as_array().map_or(std::slice::from_ref(part), Vec::as_slice)
    };
    let folds = |part: &Value| part["pattern"]["Regex"] == " {2,}";
    parts("normalizer", "normalizers").iter().any(folds)
        || parts("pre_tokenizer", "pretokenizers")
            .iter()
            .any(|part| part["type"] == "WhitespaceSplit")
}

/// Returns whether a pre-tokenizer, which may be a sequence, adds a space in front of a text.
fn adds_space_prefix(part: &Value) -> bool {
    if let Some(parts) = part["pretokenizers"].as_array() {
        return parts.iter().all(adds_space_prefix);
    }
    part["type"] != "Metaspace"
        || part["prepend_scheme"] != "never" && part["add_prefix_space"] != false
}
