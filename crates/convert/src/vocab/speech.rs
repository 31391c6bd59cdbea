//! Vocabularies of text-to-speech models: text tokens, then audio tokens.

use gguf::Error;
use gguf_models::token::TokenType;
use serde_json::Value;

use super::files::SENTENCEPIECE;
use super::token::{ADDED_SCORE, MAX_TOKENS, Token};
use super::unigram::Unigram;
use super::{Builder, assembled, bpe, sentencepiece};

impl Builder<'_> {
    /// Converts a byte-level vocabulary followed by named codec tokens, without a chat template.
    pub(super) fn text_then_codes(&mut self) -> Result<(), Error> {
        let names = self.names_of_codes()?;
        assembled::assemble(&mut self.files, &mut self.notes)?;
        let pre = self.pre()?;
        let texts = self.options.vocab_size.map(|all| all.saturating_sub(names.len() as u64));
        let mut tokens = bpe::tokens(&self.files, "BPE", texts, &mut self.notes)?;
        let code = |text| Token { text, score: 0.0, kind: TokenType::Control };
        tokens.extend(names.into_iter().map(code));
        self.byte_level(pre, &tokens)?.write(&mut self.metadata);
        self.metadata.remove("tokenizer.chat_template");
        Ok(())
    }

    /// Returns the names of codec tokens: by number, or by the field of the configuration that has the number.
    fn names_of_codes(&self) -> Result<Vec<String>, Error> {
        let path = self.files.path("config.json");
        let fault = |what: String| {
            Error::input("config-field", &path, what, "take the file from the model's repository")
        };
        let config = self.files.object("config.json")?.unwrap_or_default();
        let talker = config.get("talker_config").and_then(Value::as_object);
        let talker = talker.ok_or_else(|| fault("has no object `talker_config`".into()))?;
        let count =
            talker.get("vocab_size").and_then(Value::as_u64).filter(|&count| count <= MAX_TOKENS);
        let count =
            count.ok_or_else(|| fault("has no valid `vocab_size` in `talker_config`".into()))?;
        let mut names: Vec<String> = (0..count).map(|code| format!("<|codec_{code}|>")).collect();
        let mut name = |field: &str, code: &Value, name: String| {
            let place = code.as_u64().and_then(|code| names.get_mut(usize::try_from(code).ok()?));
            let fault = || {
                fault(format!(
                    "field `{field}` is {code}; expected a number below {count}, the number of codec tokens"
                ))
            };
            *place.ok_or_else(fault)? = name;
            Ok::<(), Error>(())
        };
        for (field, value) in talker {
            let Some(stem) = field.strip_suffix("_id") else { continue };
            match value {
                Value::Number(_) => name(field, value, format!("<|{stem}|>"))?,
                Value::Object(several) => {
                    for (which, code) in several {
                        name(field, code, format!("<|{stem}_{which}|>"))?;
                    }
                }
                _ => {}
            }
        }
        Ok(names)
    }

    /// Converts a Unigram vocabulary whose last tokens stand for embedding rows without text.
    pub(super) fn text_then_vectors(&mut self, voice: bool) -> Result<(), Error> {
        let model = sentencepiece::read(&self.files, SENTENCEPIECE)?;
        if model.algorithm != sentencepiece::UNIGRAM {
            let what = "is not a Unigram model";
            let help = "check that the tokenizer belongs to this model";
            let path = self.files.path(SENTENCEPIECE);
            return Err(Error::input("vocabulary-other-model", &path, what, help));
        }
        let (space_prefix, fold_spaces) = (model.add_dummy_prefix, model.remove_extra_whitespaces);
        let charsmap = model.charsmap.clone();
        let rows = self.options.vocab_size;
        let mut tokens = sentencepiece::tokens(model, &self.files, rows, &mut self.notes)?;
        let vectors = ["<|pad|>", "<|bos_before_voice|>", "<|audio_bos|>"];
        let vectors = vectors.into_iter().filter(|text| voice || !text.contains("voice"));
        for (token, text) in tokens.iter_mut().rev().zip(vectors.rev()) {
            *token = Token { text: text.into(), score: ADDED_SCORE, kind: TokenType::Control };
        }
        self.pieces(&Unigram { tokens, space_prefix, fold_spaces, charsmap }, false);
        self.metadata.set("tokenizer.ggml.add_bos_token", false);
        self.metadata.set("tokenizer.ggml.add_eos_token", false);
        Ok(())
    }
}
