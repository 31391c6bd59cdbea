//! WordPiece vocabularies: BERT.

use gguf::Error;
use gguf_models::token::TokenType;

use super::token::Token;
use super::{Builder, bpe};

/// The only pre-tokenizer that runtimes know for WordPiece.
const PRE: &str = "bert-bge";

/// Prefix of pieces that continue a word.
const CONTINUATION: &str = "##";

impl Builder<'_> {
    pub(super) fn word_piece(&mut self) -> Result<(), Error> {
        self.check_pre_tokenizer()?;
        let vocab_size = self.options.vocab_size;
        let mut tokens = bpe::tokens(&self.files, "WordPiece", vocab_size, &mut self.notes)?;
        tokens.iter_mut().for_each(mark_start);
        self.token_type_count();
        let pre = self.options.pre.unwrap_or(PRE);
        self.tokens("bert", pre.to_owned(), &tokens, false);
        self.special_tokens(tokens.len())?.write(&mut self.metadata);
        Ok(())
    }

    /// Fails if normalizer or pre-tokenizer is not BERT's, the only ones that runtimes know for WordPiece.
    fn check_pre_tokenizer(&mut self) -> Result<(), Error> {
        let tokenizer = self.files.require_tokenizer()?;
        for (part, expected) in
            [("normalizer", "BertNormalizer"), ("pre_tokenizer", "BertPreTokenizer")]
        {
            let found = &tokenizer[part]["type"];
            if self.options.pre.is_none() && found != expected {
                let what = format!("the {part} is {found}; expected {expected}");
                let help = "convert with --pre bert-bge if the difference does not matter";
                return Err(Error::input(
                    "vocabulary-unsupported",
                    self.files.tokenizer_path(),
                    what,
                    help,
                ));
            }
        }
        let prefix = &tokenizer["model"]["continuing_subword_prefix"];
        if !prefix.is_null() && prefix != CONTINUATION {
            let what =
                format!("`continuing_subword_prefix` is {prefix}; expected {CONTINUATION:?}");
            let help = "runtimes support no other prefix";
            return Err(Error::input(
                "vocabulary-unsupported",
                self.files.tokenizer_path(),
                what,
                help,
            ));
        }
        Ok(())
    }
}

/// Moves the mark from pieces that continue a word to pieces that start a word, as GGUF has it.
fn mark_start(token: &mut Token) {
    if token.kind == TokenType::Control {
        return;
    }
    token.text = match token.text.strip_prefix(CONTINUATION) {
        Some(rest) => rest.to_owned(),
        None => format!("\u{2581}{}", token.text),
    };
}
