//! Vocabularies of most probable pieces: T5 and XLM-RoBERTa, from SentencePiece models or from
//! `tokenizer.json`.

use std::collections::{HashMap, HashSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use gguf::Error;
use gguf_models::token::TokenType;
use serde_json::Value;

use super::files::{Files, SENTENCEPIECE};
use super::sentencepiece::{self, Model, UNUSED_SCORE};
use super::special::named_special_tokens;
use super::token::{MAX_TOKENS, Token};
use super::{Array, Builder};

/// What XLM-RoBERTa calls its SentencePiece model.
pub(crate) const XLM_ROBERTA_MODEL: &str = "sentencepiece.bpe.model";

/// What T5 calls its own.
pub(crate) const T5_MODEL: &str = "spiece.model";

/// Pieces and the preparation of text, from either kind of file.
pub(super) struct Unigram {
    pub tokens: Vec<Token>,
    /// Whether a space is put in front of a text.
    pub space_prefix: bool,
    /// Whether runs of spaces are folded.
    pub fold_spaces: bool,
    /// What is written in place of what, as SentencePiece stores it; may be empty.
    pub charsmap: Vec<u8>,
}

impl Builder<'_> {
    pub(super) fn t5(&mut self) -> Result<(), Error> {
        let Some(name) = t5_model(&self.files) else {
            let unigram = self.unigram_of_json()?;
            return self.unigram(unigram, false);
        };
        let model = sentencepiece::read(&self.files, name)?;
        match model.algorithm {
            sentencepiece::UNIGRAM => {}
            // Some relatives of T5 merge pairs.
            _ if self.files.has_sentencepiece() => return self.sentencepiece(),
            _ => {
                let what = "merges pairs instead of finding the most probable pieces";
                let path = self.files.path(name);
                return Err(Error::input(
                    "vocabulary-missing",
                    &path,
                    what,
                    "rename it to tokenizer.model",
                ));
            }
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

    pub(super) fn xlm_roberta(&mut self) -> Result<(), Error> {
        let unigram = match self.files.has(XLM_ROBERTA_MODEL) {
            true => self.realigned(XLM_ROBERTA_MODEL)?,
            false => self.unigram_of_json()?,
        };
        self.unigram(unigram, true)
    }

    /// Writes the keys; encoders say how many kinds of segments there are.
    fn unigram(&mut self, unigram: Unigram, is_encoder: bool) -> Result<(), Error> {
        self.pieces(&unigram, is_encoder);
        self.special_tokens(unigram.tokens.len())?.write(&mut self.metadata);
        Ok(())
    }

    /// The same without special tokens.
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

    /// A SentencePiece model with ids as XLM-RoBERTa has them: four special tokens of its own
    /// take the place of the model's three, and all others move up by one.
    fn realigned(&mut self, name: &str) -> Result<Unigram, Error> {
        let Model { pieces, add_dummy_prefix, remove_extra_whitespaces, charsmap, algorithm } =
            sentencepiece::read(&self.files, name)?;
        if algorithm != sentencepiece::UNIGRAM {
            let what = "is no model of most probable pieces";
            let help = "check that the tokenizer is this model's";
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

    /// Rows of the embedding, or tokens if there are more.
    fn rows(&self, tokens: u64) -> Result<usize, Error> {
        let rows = self.options.vocab_size.unwrap_or(0).max(tokens);
        if rows > MAX_TOKENS {
            let what = format!("vocab_size is {rows}");
            let help = "correct it to the number of rows of the embedding";
            return Err(Error::input("config-field", &self.files.path("config.json"), what, help));
        }
        Ok(rows as usize)
    }

    fn unigram_of_json(&self) -> Result<Unigram, Error> {
        let path = self.files.tokenizer_path();
        let fault = |what: String| {
            Error::input("vocabulary-damaged", path, what, "download the file again")
        };
        let tokenizer = self.files.require_tokenizer()?;
        let model = &tokenizer["model"];
        if model["type"] != "Unigram" {
            let what = format!("the model is {}, this family needs Unigram", model["type"]);
            return Err(Error::input(
                "vocabulary-other-model",
                path,
                what,
                "check that the tokenizer is this model's",
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
                return Err(fault(format!("piece {id} is {entry}, not a text with a score")));
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
        let rows = self.rows(tokens.len() as u64)?;
        tokens.extend((tokens.len()..rows).map(|id| Token::padding(id, UNUSED_SCORE)));
        let charsmap = charsmap(&tokenizer["normalizer"]).map(|text| BASE64.decode(text));
        let charsmap = charsmap.transpose().map_err(|error| {
            fault(format!("precompiled_charsmap of the normalizer is not base64: {error}"))
        })?;
        let stated = |key| self.files.tokenizer_config_bool(key);
        Ok(Unigram {
            tokens,
            space_prefix: stated("add_prefix_space")
                .unwrap_or_else(|| puts_space_in_front(&tokenizer["pre_tokenizer"])),
            fold_spaces: stated("clean_up_tokenization_spaces").unwrap_or(true),
            charsmap: charsmap.unwrap_or_default(),
        })
    }

    /// The id of the token that `tokenizer_config.json` names as unknown.
    fn unknown_id(&self, added: &HashMap<u64, &str>) -> Option<u64> {
        let named = self.files.tokenizer_config()?.get("unk_token")?;
        let named = super::files::special_token_text(named)?;
        added.iter().find(|(_, text)| **text == named).map(|(&id, _)| id)
    }
}

/// The SentencePiece model under one of its two names.
fn t5_model(files: &Files) -> Option<&'static str> {
    if files.has_sentencepiece() {
        return Some(SENTENCEPIECE);
    }
    Some(T5_MODEL).filter(|name| files.has(name))
}

/// The map in a normalizer, which may be a sequence.
fn charsmap(normalizer: &Value) -> Option<&str> {
    let parts = normalizer["normalizers"].as_array();
    normalizer["precompiled_charsmap"].as_str().or_else(|| parts?.iter().find_map(charsmap))
}

/// Whether a pre-tokenizer, which may be a sequence, marks the start of a text as a space.
fn puts_space_in_front(part: &Value) -> bool {
    if let Some(parts) = part["pretokenizers"].as_array() {
        return parts.iter().all(puts_space_in_front);
    }
    part["type"] != "Metaspace"
        || part["prepend_scheme"] != "never" && part["add_prefix_space"] != false
}
