//! The vocabulary of the target model, as a draft model sees it.

use gguf::Error;

use super::DraftToken;

/// Vocabulary of the target model for a draft model, which may have padding, or only some of the tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetVocabulary {
    /// Number of tokens of the target model. Tokens from this id on are not drafted.
    pub len: usize,
    /// Id in the target model for each id of the draft model; empty if they are equal.
    pub ids: Vec<u32>,
}

impl TargetVocabulary {
    /// Returns the vocabulary of a target model of `len` tokens, whose ids are those of the draft model.
    pub fn with_equal_ids(len: usize) -> Self {
        Self { len, ids: Vec::new() }
    }

    /// Returns the most likely token, given the logits of the draft model; `None` if the target model does not have it.
    ///
    /// # Errors
    /// `weights-unusable` if the logits contain NaN or infinity.
    pub(super) fn most_likely(&self, logits: &[f32]) -> Result<Option<DraftToken>, Error> {
        let len = if self.ids.is_empty() { self.len } else { logits.len() };
        let mut token = DraftToken::most_likely(&logits[..logits.len().min(len)])?;
        if let Some(id) = self.ids.get(token.id as usize) {
            token.id = *id;
        }
        Ok(Some(token).filter(|token| (token.id as usize) < self.len))
    }
}
