//! XVERSE: a SentencePiece BPE `tokenizer.json` whose tokens get no scores.

use gguf::{Array, Error};
use gguf_models::token::{TokenType, byte_of_token};

use super::token::{MAX_TOKENS, Token};
use super::{Builder, bpe};

/// Replacement for the token of a zero byte, which some runtimes read as an empty string.
pub(crate) const ZERO: &str = "<b'\\x00'>";

impl Builder<'_> {
    pub(super) fn xverse(&mut self) -> Result<(), Error> {
        let model = bpe::model_vocab(&self.files, "BPE")?;
        let added = bpe::added_tokens(&self.files, &model)?;
        let ids = model.values().copied().chain(added.iter().map(|(id, _)| *id));
        let known = ids.max().map_or(0, |last| last.saturating_add(1));
        let rows = self.options.vocab_size.unwrap_or(known);
        if known > rows || rows > MAX_TOKENS {
            let what = format!("has {known} ids for {rows} rows of the embedding");
            let path = self.files.tokenizer_path();
            let help = "check that the tokenizer belongs to this model";
            return Err(Error::input("vocabulary-other-model", path, what, help));
        }
        let mut tokens: Vec<Token> = (0..rows as usize).map(|id| Token::padding(id, 0.0)).collect();
        let mut place = |id: u64, text: &str, kind| {
            let (text, kind) = match text {
                "\0" => (ZERO, TokenType::Byte),
                byte if byte_of_token(byte.as_bytes()).is_some() => (byte, TokenType::Byte),
                text => (text, kind),
            };
            tokens[id as usize] = Token { text: text.to_owned(), score: 0.0, kind };
        };
        for (text, id) in model {
            place(id, text, TokenType::Normal);
        }
        for (id, token) in &added {
            let kind = if token.special { TokenType::Control } else { TokenType::UserDefined };
            place(*id, &token.content, kind);
        }
        let texts = Array::from_strings(tokens.iter().map(|token| &token.text));
        let types: Vec<i32> = tokens.iter().map(|token| token.kind.id()).collect();
        self.len = tokens.len();
        self.metadata.set("tokenizer.ggml.model", "llama");
        self.metadata.set("tokenizer.ggml.pre", "default");
        self.metadata.set("tokenizer.ggml.tokens", texts);
        self.metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
        self.special_tokens(tokens.len())?.write(&mut self.metadata);
        Ok(())
    }
}
