//! Drafts from hidden states of the target model: EAGLE 3, and layers for multi-token prediction (MTP).
//!
//! The draft model has a row for each token but the first. Row `j` reads the features of token `j` and the id of token
//! `j + 1`, and predicts token `j + 2`. The features are those of the target model, and behind the text, where the target
//! model has computed none, those that the draft model returned for the row before.

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_store::Progress;

use super::pending_features::PendingFeatures;
use super::{DraftSource, DraftToken, TargetVocabulary, can_read, share_of_weights};
use crate::batch::Batch;
use crate::context::Context;
use crate::executor::Executor;
use crate::value::Value;

/// Drafts the most likely tokens of a model that reads features of the target model.
pub struct FeatureDraft {
    context: Context,
    vocabulary: TargetVocabulary,
    expected_cost: f64,
    /// Position in the text of the first row.
    start: usize,
    /// Number of rows in the context that were computed from features of the target model.
    rows: usize,
    /// Ids of the tokens after these rows, and their features, which are not computed yet.
    pending_ids: Vec<u32>,
    pending: PendingFeatures,
    /// Outputs of the last of these rows, then of the rows of drafted tokens.
    outputs: Vec<RowOutput>,
    /// Drafted tokens whose rows are in the context too.
    drafted: Vec<u32>,
}

/// Output of a row.
struct RowOutput {
    features: Vec<f32>,
    token: Option<DraftToken>,
}

impl FeatureDraft {
    /// Returns a draft model, given an empty context from which tokens can be removed, whose model computes logits and
    /// features. Until times are measured, a token takes a share of the time of one of the target model, which is that of
    /// the bytes of their weights.
    pub fn new(context: Context, target: &Executor, vocabulary: TargetVocabulary) -> Self {
        Self {
            expected_cost: share_of_weights(context.executor(), target),
            context,
            vocabulary,
            start: 0,
            rows: 0,
            pending_ids: Vec::new(),
            pending: PendingFeatures::default(),
            outputs: Vec::new(),
            drafted: Vec::new(),
        }
    }

    /// Forgets all rows; the next one is that of a position.
    fn restart(&mut self, position: usize) {
        self.context.clear(0);
        (self.start, self.rows) = (position, 0);
        self.pending_ids.clear();
        self.pending = PendingFeatures::default();
        self.outputs.clear();
        self.drafted.clear();
    }

    /// Forgets the features of a position and later ones.
    fn forget_from(&mut self, position: usize) {
        let kept = position.saturating_sub(self.start);
        let end = self.rows + self.pending.len();
        if position < self.start || kept > end || !self.context.truncate(0, kept.min(self.rows)) {
            return self.restart(position);
        }
        if kept < end {
            self.outputs.clear();
        }
        self.outputs.truncate(1);
        self.drafted.clear();
        let pending = kept.saturating_sub(self.rows);
        self.rows = kept.min(self.rows);
        self.pending_ids.truncate(pending);
        self.pending.truncate(pending);
    }

    /// Computes rows of the pending features, given the token after each. The last one's output is kept.
    fn compute_pending(&mut self, next: &[u32], progress: &dyn Progress) -> Result<(), Error> {
        let rows = next.len();
        self.pending_ids.drain(..rows);
        let mut features = self.pending.take(rows);
        if self.context.executor().graph().encoder().is_some() {
            features = self.context.encode(0, &features, progress)?;
        }
        self.outputs.clear();
        self.compute(next, &features, progress)?;
        self.rows += rows;
        Ok(())
    }

    /// Computes rows, and adds the output of the last one.
    fn compute(
        &mut self,
        ids: &[u32],
        features: &Value,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let kinds = [OutputKind::Logits, OutputKind::Features];
        let batch = Batch::last_output(ids, 0);
        let found = self.context.run_kinds(&batch, Some(features), &kinds, progress)?;
        let [logits, features] = &found[..] else { return Ok(()) };
        let token = self.vocabulary.most_likely(logits.row(0))?;
        self.outputs.push(RowOutput { features: features.row(0).to_vec(), token });
        Ok(())
    }

    /// Returns the most likely token after the text and its draft; `None` if the features of the text are missing.
    fn token(
        &mut self,
        text: &[u32],
        draft: &[u32],
        progress: &dyn Progress,
    ) -> Result<Option<DraftToken>, Error> {
        if self.start + self.rows + self.pending.len() + 1 != text.len() {
            return Ok(None);
        }
        let common = self.drafted.iter().zip(draft).take_while(|(a, b)| a == b).count();
        if self.pending.len() > 0 {
            self.context.truncate(0, self.rows);
            self.drafted.clear();
            self.compute_pending(&text[self.start + self.rows + 1..], progress)?;
        } else {
            self.context.truncate(0, self.rows + common);
            self.drafted.truncate(common);
            self.outputs.truncate(common + 1);
        }
        for id in draft.iter().skip(self.drafted.len()) {
            let Some(last) = self.outputs.last() else { return Ok(None) };
            let width = last.features.len();
            let features = Value { rows: 1, width, data: last.features.clone() };
            self.compute(&[*id], &features, progress)?;
            self.drafted.push(*id);
        }
        Ok(self.outputs.last().and_then(|last| last.token))
    }
}

impl DraftSource for FeatureDraft {
    fn expected_cost(&self) -> f64 {
        self.expected_cost
    }

    fn unread(&self, _: &[u32]) -> usize {
        self.pending.len()
    }

    fn next(
        &mut self,
        text: &[u32],
        draft: &[u32],
        progress: &dyn Progress,
    ) -> Result<Option<DraftToken>, Error> {
        if !can_read(&self.context, self.start, text, draft) {
            return Ok(None);
        }
        let token = self.token(text, draft, progress);
        if token.is_err() {
            self.restart(0);
        }
        token
    }

    fn read(
        &mut self,
        position: usize,
        ids: &[u32],
        features: &Value,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        self.forget_from(position);
        let rows = ids.len().min(features.rows);
        self.pending_ids.extend(&ids[..rows]);
        self.pending.extend(features, rows);
        // A prompt is read with the target model; the token after the last one is not known yet.
        if self.pending.are_due(&self.context) {
            let next = self.pending_ids[1..].to_vec();
            self.compute_pending(&next, progress)?;
        }
        Ok(())
    }
}
