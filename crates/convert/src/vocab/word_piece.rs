//! Vocabularies of pieces of words: BERT.

use gguf::Error;
use gguf_models::token::TokenType;

use super::token::Token;
use super::{Builder, bpe};

/// The only name that programs know; they cut all text as BERT does.
const PRE: &str = "bert-bge";

/// What stands in front of pieces that continue a word.
const CONTINUATION: &str = "##";

impl Builder<'_> {
    pub(super) fn word_piece(&mut self) -> Result<(), Error> {
        self.check_cuts()?;
        let vocab_size = self.options.vocab_size;
        let mut tokens = bpe::tokens(&self.files, "WordPiece", vocab_size, &mut self.notes)?;
        tokens.iter_mut().for_each(mark_start);
        self.token_type_count();
        let pre = self.options.pre.unwrap_or(PRE);
        self.tokens("bert", pre.to_owned(), &tokens, false);
        self.special_tokens(tokens.len())?.write(&mut self.metadata);
        Ok(())
    }

    /// Programs cut text for this kind of vocabulary in one way, whatever the file says.
    fn check_cuts(&mut self) -> Result<(), Error> {
        let tokenizer = self.files.require_tokenizer()?;
        for (part, expected) in
            [("normalizer", "BertNormalizer"), ("pre_tokenizer", "BertPreTokenizer")]
        {
            let found = &tokenizer[part]["type"];
            if self.options.pre.is_none() && found != expected {
                let what = format!("the {part} is {found}, programs know {expected}");
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
            let what = format!("pieces that continue a word begin with {prefix}");
            let help = format!("only {CONTINUATION:?} is known");
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

/// In a GGUF the mark is on the pieces that start a word instead of on the others.
fn mark_start(token: &mut Token) {
    if token.kind == TokenType::Control {
        return;
    }
    token.text = match token.text.strip_prefix(CONTINUATION) {
        Some(rest) => rest.to_owned(),
        None => format!("\u{2581}{}", token.text),
    };
}
