//! WordPiece vocabularies: BERT.

use gguf::Error;
use gguf_models::token::TokenType;

use super::token::Token;
use super::{Builder, bpe, post_processor};

/// The only pre-tokenizer that runtimes know for WordPiece.
const PRE: &str = "bert-bge";

/// Maximum length of a word in runtimes.
const MAX_WORD_CHARS: u64 = 100;

/// Prefix of pieces that continue a word.
const CONTINUATION: &str = "##";

impl Builder<'_> {
    pub(super) fn word_piece(&mut self) -> Result<(), Error> {
        self.check_pre_tokenizer()?;
        self.note_lost_settings()?;
        let vocab_size = self.options.vocab_size;
        let mut tokens = bpe::tokens(&self.files, "WordPiece", vocab_size, &mut self.notes)?;
        tokens.iter_mut().for_each(mark_start);
        self.token_type_count();
        let pre = self.options.pre.unwrap_or(PRE);
        self.tokens("bert", pre.to_owned(), &tokens, false);
        let mut special = self.special_tokens(tokens.len())?;
        // Without a configuration, runtimes assume the ids of the first BERT.
        for (role, id) in post_processor::ids(self.files.require_tokenizer()?) {
            if let Ok(id) = u32::try_from(id) {
                special.default_id(if role == "eos" { "sep" } else { role }, id);
            }
        }
        if let Some(unknown) = bpe::unknown_id(&self.files) {
            special.default_id("unk", unknown);
        }
        special.write(&mut self.metadata);
        Ok(())
    }

    /// Notes settings for which GGUF has no key.
    fn note_lost_settings(&mut self) -> Result<(), Error> {
        let tokenizer = self.files.require_tokenizer()?;
        let normalizer = &tokenizer["normalizer"];
        for (setting, what) in [
            ("clean_text", "remove control characters"),
            ("handle_chinese_chars", "split between Chinese characters"),
        ] {
            if normalizer[setting] == false {
                self.notes.push(format!(
                    "`{setting}` is false in tokenizer.json, but runtimes {what}: texts with them get other ids"
                ));
            }
        }
        let longest = &tokenizer["model"]["max_input_chars_per_word"];
        if !longest.is_null() && longest != MAX_WORD_CHARS {
            self.notes.push(format!(
                "`max_input_chars_per_word` is {longest} in tokenizer.json, but {MAX_WORD_CHARS} in runtimes: longer \
                 words get other ids"
            ));
        }
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
    // Added tokens are matched in the text as they are.
    if matches!(token.kind, TokenType::Control | TokenType::UserDefined) {
        return;
    }
    token.text = match token.text.strip_prefix(CONTINUATION) {
        Some(rest) => rest.to_owned(),
        None => format!("\u{2581}{}", token.text),
    };
}
