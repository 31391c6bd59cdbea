//! A validated view of the `tokenizer.ggml.*` keys.

use gguf::{Array, Error, Metadata};
use gguf_models::token::{self, TokenType};

use crate::error::{invalid, invalid_with_help};

/// Key of the tokenizer model.
pub(crate) const MODEL: &str = "tokenizer.ggml.model";
/// Key of the token texts.
pub(crate) const TOKENS: &str = "tokenizer.ggml.tokens";
const SCORES: &str = "tokenizer.ggml.scores";
/// Key of the token types.
pub(crate) const TYPES: &str = "tokenizer.ggml.token_type";

/// Vocabulary of a model: borrowed data with checked lengths and ids.
pub(crate) struct Vocabulary<'m> {
    /// All metadata, for keys that only one tokenizer model reads.
    pub metadata: &'m Metadata,
    /// Bytes of each token as in the file, by id.
    pub tokens: Vec<&'m [u8]>,
    /// Type of each token, by id; as many as tokens.
    pub types: Vec<TokenType>,
}

impl<'m> Vocabulary<'m> {
    /// # Errors
    /// If the tokens are missing, or there are fewer types than tokens.
    pub fn read(metadata: &'m Metadata) -> Result<Self, Error> {
        let tokens: Vec<&[u8]> = strings(metadata, TOKENS)?.collect();
        let bytes: u64 = tokens.iter().map(|token| token.len() as u64).sum();
        // Positions are stored in 32 bits, and the last id means no token.
        if bytes.max(tokens.len() as u64) >= u64::from(u32::MAX) {
            return Err(invalid(TOKENS, format!("has {bytes} bytes of text, which is too much")));
        }
        let types = match metadata.get(TYPES) {
            None => vec![TokenType::Normal; tokens.len()],
            Some(_) => {
                let types = array(metadata, TYPES)?;
                require_length(TYPES, types, tokens.len())?;
                let ids = types
                    .to_i64s()
                    .ok_or_else(|| invalid(TYPES, "is not an array of integers".to_owned()))?;
                // Unknown types count as unused, as type 0 (undefined) does.
                let kind = |id| TokenType::from_id(id).unwrap_or(TokenType::Unused);
                ids.into_iter().take(tokens.len()).map(kind).collect()
            }
        };
        Ok(Self { metadata, tokens, types })
    }

    /// Returns `tokenizer.ggml.model`.
    ///
    /// # Errors
    /// If it is missing.
    pub fn model(&self) -> Result<&'m str, Error> {
        self.metadata.str(MODEL).ok_or_else(|| invalid(MODEL, "is missing"))
    }

    /// Returns the score of each token, by id, as many as tokens; all 0 if the file has none.
    ///
    /// # Errors
    /// If there are fewer scores than tokens, or one is not a number.
    pub fn scores(&self) -> Result<Vec<f32>, Error> {
        if self.metadata.get(SCORES).is_none() {
            return Ok(vec![0.0; self.tokens.len()]);
        }
        let scores = array(self.metadata, SCORES)?;
        require_length(SCORES, scores, self.tokens.len())?;
        let numbers: Option<Vec<f32>> = scores
            .iter()
            .take(self.tokens.len())
            .map(|v| v.to_f64().or(v.to_i64().map(|v| v as f64)))
            .map(|score| score.filter(|score| !score.is_nan()).map(|score| score as f32))
            .collect();
        numbers.ok_or_else(|| invalid(SCORES, "has an element that is not a number"))
    }

    /// Returns the strings of `key`.
    ///
    /// # Errors
    /// If the key is missing or not an array of strings.
    pub fn strings(&self, key: &str) -> Result<impl Iterator<Item = &'m [u8]>, Error> {
        strings(self.metadata, key)
    }

    /// Returns a boolean, or a default that depends on the tokenizer model.
    pub fn flag(&self, key: &str, default: bool) -> bool {
        self.metadata.bool(&format!("tokenizer.ggml.{key}")).unwrap_or(default)
    }

    /// Whether a key, under any of its names, assigns an existing token to a role.
    pub fn names(&self, role: &str) -> bool {
        let Some(role) = token::role(role) else { return false };
        let mut keys = [role.id_key].into_iter().chain(role.alternative_key);
        keys.any(|key| matches!(self.id_of_key(key, None), Ok(Some(_))))
    }

    /// Returns the id of the token with a special role, such as `"bos"`; `default` if the file
    /// names none and the vocabulary has that id.
    ///
    /// # Errors
    /// If the file names an id outside the vocabulary.
    pub fn special_id(&self, role: &str, default: Option<u32>) -> Result<Option<u32>, Error> {
        match token::id_key(role) {
            Some(key) => self.id_of_key(key, default),
            None => Ok(None),
        }
    }

    /// Returns the id that a key holds.
    fn id_of_key(&self, key: &str, default: Option<u32>) -> Result<Option<u32>, Error> {
        let count = self.tokens.len() as u32;
        let Some(value) = self.metadata.get(key) else {
            return Ok(default.filter(|id| *id < count));
        };
        match value.to_i64() {
            // Old converters wrote -1, signed or unsigned, for a missing token.
            Some(-1 | 0xffff_ffff) => Ok(None),
            Some(id) if (0..i64::from(count)).contains(&id) => Ok(Some(id as u32)),
            _ => {
                let fault = format!("token {value} is outside the vocabulary of {count}");
                let help = "set the id of an existing token, or remove the key (`gguf edit`)";
                Err(invalid_with_help(key, fault, help))
            }
        }
    }
}

fn strings<'m>(metadata: &'m Metadata, key: &str) -> Result<impl Iterator<Item = &'m [u8]>, Error> {
    array(metadata, key)?.strings().ok_or_else(|| invalid(key, "is not an array of strings"))
}

fn array<'m>(metadata: &'m Metadata, key: &str) -> Result<&'m Array, Error> {
    let value = metadata.get(key).ok_or_else(|| invalid(key, "is missing"))?;
    value.as_array().ok_or_else(|| invalid(key, "is not an array"))
}

/// Checks that an array is at least as long as the vocabulary. As in other runtimes, elements of no token are ignored.
fn require_length(key: &str, array: &Array, tokens: usize) -> Result<(), Error> {
    if array.len() < tokens as u64 {
        let fault = format!("has {} elements for {tokens} tokens", array.len());
        return Err(invalid(key, fault));
    }
    Ok(())
}
