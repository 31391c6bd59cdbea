//! Selection of the tokenizer model.

use gguf::Error;

use super::{Model, bpe, rwkv, spm, unigram, wordpiece};
use crate::error::unknown;
use crate::options::TokenizerOptions;
use crate::vocabulary::{MODEL, Vocabulary};

/// Reads the model that `tokenizer.ggml.model` names.
pub(crate) fn read(
    vocabulary: &Vocabulary<'_>,
    options: TokenizerOptions,
) -> Result<Box<dyn Model>, Error> {
    Ok(match vocabulary.model()? {
        "llama" => Box::new(spm::Spm::read(vocabulary, options)?),
        "gpt2" | "gemma4" | "whitespace" => Box::new(bpe::Bpe::read(vocabulary, options)?),
        "bert" => Box::new(wordpiece::WordPiece::read(vocabulary, options)?),
        "t5" | "replit" => Box::new(unigram::Unigram::read(vocabulary, options)?),
        "rwkv" => Box::new(rwkv::Rwkv::read(vocabulary, options)?),
        other => {
            return Err(unknown(
                MODEL,
                other,
                "if it behaves like a supported one, set the key to that (`gguf edit`)",
            ));
        }
    })
}
