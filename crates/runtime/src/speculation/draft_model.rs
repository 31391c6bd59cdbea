//! Draft models: a smaller model drafts the tokens that it would generate.

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_store::Progress;

use super::{DraftSource, DraftToken};
use crate::batch::Batch;
use crate::context::Context;
use crate::executor::Executor;

/// Drafts the most likely tokens of a model with the vocabulary of the target model.
pub struct DraftModel {
    context: Context,
    /// Tokens in the context.
    ids: Vec<u32>,
    /// Size of the vocabulary of the target model.
    vocabulary: usize,
    /// Expected time of a token, as a share of that of the target model.
    expected_cost: f64,
}

impl DraftModel {
    /// Returns a draft model, given a context from which tokens can be removed, and the size of the vocabulary of the
    /// target model: further tokens are not drafted. Until times are measured, a token takes a share of the time of one of
    /// the target model, which is that of the bytes of their weights.
    pub fn new(context: Context, target: &Executor, vocabulary: usize) -> Self {
        let [own, target] = [context.executor(), target].map(|model| model.matrix_bytes() as f64);
        Self { context, ids: Vec::new(), vocabulary, expected_cost: own / target.max(1.0) }
    }

    /// Returns the logits after the text and its draft.
    fn logits(&mut self, all: &[u32], progress: &dyn Progress) -> Result<Vec<f32>, Error> {
        let common = self.ids.iter().zip(all).take_while(|(a, b)| a == b).count();
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

    fn next(
        &mut self,
        text: &[u32],
        draft: &[u32],
        progress: &dyn Progress,
    ) -> Result<Option<DraftToken>, Error> {
        let all = [text, draft].concat();
        let room = self.context.len(0) + self.context.room(0);
        let known = self.context.executor().vocabulary_len().unwrap_or(0);
        if all.is_empty() || all.len() > room || all.iter().any(|id| *id as usize >= known) {
            return Ok(None);
        }
        let logits = self.logits(&all, progress)?;
        let logits = &logits[..logits.len().min(self.vocabulary)];
        DraftToken::most_likely(logits).map(Some)
    }
}
