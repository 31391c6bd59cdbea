//! Tokenizers.

use gguf::{Error, Metadata};
use gguf_models::token::TokenType;
use gguf_tokenizer::{Compat, DecodeOptions, EncodeOptions, TokenizerOptions};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::error::Thrown;

/// Tokenizer of a model.
#[wasm_bindgen]
pub struct Tokenizer(gguf_tokenizer::Tokenizer);

impl Tokenizer {
    /// Reads the tokenizer.
    pub(crate) fn new(metadata: &Metadata, llama_cpp: bool) -> Result<Self, Thrown> {
        let compat = if llama_cpp { Compat::LlamaCpp } else { Compat::Original };
        let options = TokenizerOptions { compat, normalize: None };
        Ok(Self(gguf_tokenizer::Tokenizer::from_metadata(metadata, options)?))
    }
}

#[wasm_bindgen]
impl Tokenizer {
    /// Returns the number of tokens.
    #[wasm_bindgen(js_name = count)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Encodes a text.
    pub fn encode(&self, text: &str, add_special: bool, parse_special: bool) -> Vec<u32> {
        self.0.encode(text, EncodeOptions { add_special, parse_special })
    }

    /// Decodes ids to bytes.
    ///
    /// # Errors
    /// If an id does not exist.
    pub fn decode(&self, ids: &[u32], special: bool) -> Result<Vec<u8>, Thrown> {
        if let Some(id) = ids.iter().find(|id| **id as usize >= self.0.len()) {
            return Err(out_of_range(*id, self.0.len()).into());
        }
        Ok(self.0.decode(ids, DecodeOptions { special }))
    }

    /// Returns the bytes of a token within a text; `undefined` if the id does not exist.
    #[wasm_bindgen(js_name = tokenBytes)]
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.0.token_bytes(id)
    }

    /// Returns the id of the type of a token; `undefined` if the token does not exist.
    #[wasm_bindgen(js_name = tokenType)]
    pub fn token_type(&self, id: u32) -> Option<i32> {
        self.0.token_type(id).map(TokenType::id)
    }

    /// Returns the tokens that end a generation.
    #[wasm_bindgen(js_name = endOfGeneration)]
    pub fn end_of_generation(&self) -> Vec<u32> {
        self.0.end_of_generation().to_vec()
    }
}

fn out_of_range(id: u32, len: usize) -> Error {
    let last = len.saturating_sub(1);
    let what = format!("token id {id} is out of range; ids range from 0 to {last}");
    Error::request("input", what, "pass ids of this model's vocabulary")
}
