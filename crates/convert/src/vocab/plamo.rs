//! The vocabulary of PLaMo 2 and 3: a text file with a JSON list per line, which starts with text, score and type
//! of a token.

use gguf::Error;
use gguf_models::token::{TokenType, id_key};
use serde_json::Value;

use super::Builder;
use super::chat_template::ChatTemplate;
use super::files::special_token_text;
use super::token::{ADDED_SCORE, MAX_TOKENS, Token};

/// File name.
pub(crate) const FILE: &str = "tokenizer.jsonl";

/// `tokenizer.ggml.model`.
pub(crate) const MODEL: &str = "plamo2";

/// Id of `<|plamo:op|>`, which starts the next turn.
const END_OF_TURN: u32 = 4;

/// Roles in the order in which llama.cpp's converter writes them.
const ROLES: [&str; 5] = ["bos", "eos", "pad", "sep", "unk"];

impl Builder<'_> {
    pub(super) fn plamo(&mut self, template: bool) -> Result<(), Error> {
        let tokens = self.plamo_tokens()?;
        self.tokens(MODEL, "default".to_owned(), &tokens, true);
        let config = self.files.tokenizer_config().cloned().unwrap_or_default();
        for role in ROLES {
            let named = config.get(&format!("{role}_token")).and_then(special_token_text);
            let (Some(text), Some(key)) = (named, id_key(role)) else { continue };
            let id = tokens.iter().position(|token| token.text == text).ok_or_else(|| {
                let what = format!("names the {role} token {text:?}, which is missing from {FILE}");
                let path = self.files.path("tokenizer_config.json");
                let help = "check that both files belong to this model";
                Error::input("vocabulary-other-model", &path, what, help)
            })?;
            self.metadata.set(key, id as u32); // at most `MAX_TOKENS`
        }
        self.metadata.set("tokenizer.ggml.eot_token_id", END_OF_TURN);
        self.metadata.set("tokenizer.ggml.add_space_prefix", false);
        if template
            && let Some(template) = ChatTemplate::read(&self.files, &config, &mut self.notes)?
        {
            template.write(&mut self.metadata);
        }
        Ok(())
    }

    fn plamo_tokens(&self) -> Result<Vec<Token>, Error> {
        let (path, text) = (self.files.path(FILE), self.files.text(FILE)?);
        let mut tokens = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            tokens.push(entry(line).ok_or_else(|| {
                let what = format!("line {} is not a list of a token and its score", number + 1);
                Error::input("vocabulary-damaged", &path, what, "download the file again")
            })?);
        }
        let rows = self.options.vocab_size.unwrap_or(tokens.len() as u64);
        if (tokens.len() as u64).max(rows) > MAX_TOKENS {
            let what = format!("has {} tokens for {rows} rows of the embedding", tokens.len());
            let help = "check that the tokenizer belongs to this model";
            return Err(Error::input("vocabulary-other-model", &path, what, help));
        }
        let missing = (rows as usize).saturating_sub(tokens.len());
        tokens.extend((1..=missing).map(|number| Token::padding(number, ADDED_SCORE)));
        Ok(tokens)
    }
}

fn entry(line: &str) -> Option<Token> {
    let line: Value = serde_json::from_str(line).ok()?;
    let (text, score) = (line.get(0)?.as_str()?, line.get(1)?.as_f64()?);
    let kind = match line.get(2).and_then(Value::as_str) {
        Some("UNKNOWN") => TokenType::Unknown,
        Some("CONTROL") => TokenType::Control,
        Some("BYTE") => TokenType::Byte,
        _ if text.starts_with("<|plamo:") && text.ends_with("|>") => TokenType::Control,
        _ => TokenType::Normal,
    };
    Some(Token { text: text.to_owned(), score: score as f32, kind })
}
