//! Prompt lookup: tokens that followed the same tokens before are likely to follow again.
//!
//! Source: Apoorv Saxena, *Prompt Lookup Decoding*, 2023.

use std::collections::HashMap;

use gguf::Error;
use gguf_store::Progress;

use super::{DraftSource, DraftToken};

/// Lengths of the sequences of tokens that are looked up, the longest first.
const LENGTHS: [usize; 2] = [3, 2];

/// Lengths of equal sequences, the longest first, and the probability that the next token is equal, too.
const CONFIDENCES: [(usize, f64); 5] = [(16, 0.93), (8, 0.85), (4, 0.7), (3, 0.55), (0, 0.4)];

/// Drafts tokens from the text itself.
#[derive(Clone, Debug, Default)]
pub struct PromptLookup {
    ids: Vec<u32>,
    /// Position after the last occurrence of each sequence, except the one at the end.
    after: HashMap<Vec<u32>, usize>,
    last: Option<Found>,
}

/// A drafted token.
#[derive(Clone, Copy, Debug)]
struct Found {
    id: u32,
    /// Its position in the text, where it was found.
    at: usize,
    /// Its position in the text that it continues.
    position: usize,
    /// Number of equal tokens before both positions.
    equal: usize,
}

impl PromptLookup {
    /// Follows the text to its end.
    fn read(&mut self, text: &[u32]) {
        if !text.starts_with(&self.ids) {
            *self = Self::default();
        }
        for id in &text[self.ids.len()..] {
            self.ids.push(*id);
            let end = self.ids.len() - 1;
            for len in LENGTHS.into_iter().filter(|len| *len <= end) {
                self.after.insert(self.ids[end - len..end].to_vec(), end);
            }
        }
    }

    /// Finds the tokens at the end of the text and its draft somewhere before.
    fn find(&self, all: &[u32]) -> Option<Found> {
        let tails = LENGTHS.into_iter().filter_map(|len| all.len().checked_sub(len));
        let at = *tails.into_iter().find_map(|start| self.after.get(&all[start..]))?;
        let most = CONFIDENCES[0].0;
        let before = all[..at].iter().rev().zip(all.iter().rev());
        let equal = before.take(most).take_while(|(a, b)| a == b).count();
        Some(Found { id: all[at], at, position: all.len(), equal })
    }
}

impl DraftSource for PromptLookup {
    fn next(
        &mut self,
        text: &[u32],
        draft: &[u32],
        _: &dyn Progress,
    ) -> Result<Option<DraftToken>, Error> {
        self.read(text);
        let all = [text, draft].concat();
        // A draft continues the text that it began with.
        let continues = |last: &Found| {
            !draft.is_empty() && last.position + 1 == all.len() && all.last() == Some(&last.id)
        };
        self.last = match self.last.filter(continues) {
            Some(Found { at, equal, .. }) => {
                let (at, equal) = (at + 1, equal + 1);
                Some(Found { id: all[at], at, position: all.len(), equal })
            }
            None => self.find(&all),
        };
        Ok(self.last.map(|Found { id, equal, .. }| {
            let row = CONFIDENCES.iter().find(|(least, _)| equal >= *least);
            DraftToken { id, confidence: row.map_or(0.0, |(_, confidence)| *confidence) }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drafts a number of tokens after a text.
    fn drafted(text: &[u32], count: usize) -> Vec<u32> {
        let mut lookup = PromptLookup::default();
        let mut draft = Vec::new();
        while draft.len() < count
            && let Some(token) = lookup.next(text, &draft, &()).unwrap()
        {
            draft.push(token.id);
        }
        draft
    }

    #[test]
    fn tokens_after_the_same_tokens_are_drafted() {
        assert_eq!(drafted(&[1, 2, 3, 4, 5, 1, 2], 3), [3, 4, 5]);
        // The last occurrence of the longest sequence.
        assert_eq!(drafted(&[1, 2, 3, 9, 8, 2, 3, 7, 6, 1, 2, 3], 2), [9, 8]);
        assert_eq!(drafted(&[2, 3, 9, 4, 2, 3, 7, 4, 2, 3], 1), [7]);
        assert_eq!(drafted(&[1, 2, 3], 8), [0; 0]);
        assert_eq!(drafted(&[], 8), [0; 0]);
        // A draft may continue into itself.
        assert_eq!(drafted(&[5, 5, 5], 4), [5, 5, 5, 5]);
        assert_eq!(drafted(&[1, 2, 3, 1, 2, 3, 1], 7), [2, 3, 1, 2, 3, 1, 2]);
    }

    #[test]
    fn longer_sequences_are_surer() {
        let mut lookup = PromptLookup::default();
        let text: Vec<u32> = (0..40).chain(0..3).collect();
        let mut draft = Vec::new();
        let mut confidences = Vec::new();
        for _ in 0..14 {
            let token = lookup.next(&text, &draft, &()).unwrap().unwrap();
            draft.push(token.id);
            confidences.push(token.confidence);
        }
        assert_eq!(draft, (3..17).collect::<Vec<_>>());
        assert_eq!(confidences[..2], [0.55, 0.7]);
        assert_eq!(confidences[4..6], [0.7, 0.85]);
        assert_eq!(confidences[13], 0.93);
    }

    #[test]
    fn drafts_of_other_sources_are_looked_up() {
        let mut lookup = PromptLookup::default();
        let text = [1, 2, 3, 4, 5, 6, 1, 2];
        assert_eq!(lookup.next(&text, &[], &()).unwrap().unwrap().id, 3);
        // Another source drafted 4.
        assert_eq!(lookup.next(&text, &[4], &()).unwrap(), None);
        assert_eq!(lookup.next(&text, &[4, 5], &()).unwrap().unwrap().id, 6);
    }

    #[test]
    fn another_text_is_read_again() {
        let mut lookup = PromptLookup::default();
        assert_eq!(lookup.next(&[1, 2, 3, 1, 2], &[], &()).unwrap().unwrap().id, 3);
        assert_eq!(lookup.next(&[1, 2, 4, 1, 2], &[], &()).unwrap().unwrap().id, 4);
        assert_eq!(lookup.next(&[9], &[], &()).unwrap(), None);
    }
}
