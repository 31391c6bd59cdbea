//! Draft models: a smaller model drafts the tokens that it would generate.

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_store::Progress;

use super::{DraftSource, DraftToken, TargetVocabulary, can_read, share_of_weights};
use crate::batch::Batch;
use crate::context::Context;
use crate::executor::Executor;

/// Number of the last tokens that the first drafts depend on.
const RECENT: usize = 32;

/// Drafts the most likely tokens of a model with the vocabulary of the target model.
pub struct DraftModel {
    context: Context,
    /// Position in the text of the first token in the context.
    start: usize,
    /// Tokens in the context.
    ids: Vec<u32>,
    /// Tokens drafted since it began to read at this position.
    drafted: usize,
    vocabulary: TargetVocabulary,
    /// Expected time of a token, as a share of that of the target model.
    expected_cost: f64,
}

impl DraftModel {
    /// Returns a draft model, given a context from which tokens can be removed. Until times are measured, a token takes a
    /// share of the time of one of the target model, which is that of the bytes of their weights.
    pub fn new(context: Context, target: &Executor, vocabulary: TargetVocabulary) -> Self {
        let expected_cost = share_of_weights(context.executor(), target);
        Self { context, start: 0, ids: Vec::new(), drafted: 0, vocabulary, expected_cost }
    }

    /// Returns the number of tokens in the context that a text has at their places.
    fn common(&self, text: &[u32]) -> usize {
        let rest = text.get(self.start..).unwrap_or_default();
        self.ids.iter().zip(rest).take_while(|(a, b)| a == b).count()
    }

    /// Chooses where the context begins in a text. A draft that may not help reads the last tokens only, and the whole text
    /// once it has drafted half as many as it left out.
    fn choose_start(&mut self, text: &[u32]) {
        let common = self.common(text);
        let start = match text.len().saturating_sub(self.start + common) {
            _ if common > 0 && self.start > 0 && self.drafted >= self.start / 2 => 0,
            unread if common > 0 && unread <= RECENT => return,
            _ => text.len().saturating_sub(RECENT),
        };
        self.context.clear(0);
        self.ids.clear();
        (self.start, self.drafted) = (start, 0);
    }

    /// Returns the logits after the text and its draft.
    fn logits(&mut self, all: &[u32], progress: &dyn Progress) -> Result<Vec<f32>, Error> {
        let common = self.common(all);
        let all = &all[self.start..];
        // The last token is computed again where it has been: only its logits are missing.
        let mut common = common.min(all.len() - 1);
        if !self.context.truncate(0, common) {
            self.context.clear(0);
            common = 0;
        }
        self.ids.clear();
        let batch = Batch::last_output(&all[common..], 0);
        match self.context.run(&batch, OutputKind::Logits, progress) {
            Ok(logits) => {
                self.ids.extend(all);
                Ok(logits.row(0).to_vec())
            }
            Err(error) => {
                self.context.clear(0);
                Err(error)
            }
        }
    }
}

impl DraftSource for DraftModel {
    fn expected_cost(&self) -> f64 {
        self.expected_cost
    }

    fn unread(&self, text: &[u32]) -> usize {
        text.len().saturating_sub(self.start + self.common(text)).min(RECENT)
    }

    fn next(
        &mut self,
        text: &[u32],
        draft: &[u32],
        progress: &dyn Progress,
    ) -> Result<Option<DraftToken>, Error> {
        if draft.is_empty() {
            self.choose_start(text);
        }
        let all = [text, draft].concat();
        if all.len() <= self.start || !can_read(&self.context, self.start, text, draft) {
            return Ok(None);
        }
        let logits = self.logits(&all, progress)?;
        let token = self.vocabulary.most_likely(&logits)?;
        self.drafted += 1;
        Ok(token)
    }
}
