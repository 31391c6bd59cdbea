//! Which kind a file has.

use gguf::Error;

use super::{Model, bpe, rwkv, spm, unigram, wordpiece};
use crate::error::unknown;
use crate::options::Options;
use crate::vocabulary::{MODEL, Vocabulary};

/// The model that `tokenizer.ggml.model` names.
pub(crate) fn read(vocabulary: &Vocabulary<'_>, options: Options) -> Result<Box<dyn Model>, Error> {
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
                "if it behaves as a known one does, set the key to that (`gguf edit`)",
            ));
        }
    })
}
