//! Drafts of whole blocks: DFlash, and DSpark with its Markov head.
//!
//! The context of the draft model has the keys and values of all tokens but the last, computed from features of the target
//! model. One run then predicts a block: the last token of the text, followed by mask tokens, all of which attend to each
//! other. The block is removed from the context afterwards.

use std::iter::{once, repeat};

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_store::Progress;

use super::pending_features::PendingFeatures;
use super::{DraftSource, DraftToken, TargetVocabulary, can_read, share_of_weights};
use crate::batch::Batch;
use crate::context::Context;
use crate::executor::Executor;
use crate::value::Value;

/// Layout of the blocks of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of tokens of a block.
    pub len: usize,
    /// Id of the mask token, which stands for unknown tokens.
    pub mask: u32,
    /// Whether the first row, that of the last token of the text, predicts the token after it. Otherwise the first
    /// mask token does.
    pub predicts_from_anchor: bool,
}

/// Drafts blocks of tokens with a model that reads features of the target model.
pub struct BlockDraft {
    context: Context,
    /// A context of the Markov head, which computes a term of the logits from the token before.
    markov: Option<Context>,
    block: Block,
    vocabulary: TargetVocabulary,
    expected_cost: f64,
    /// Position in the text of the first token in the context.
    start: usize,
    pending: PendingFeatures,
    /// The block that was predicted last.
    drafted: Vec<DraftToken>,
}

impl BlockDraft {
    /// Returns a draft model, given an empty context from which tokens can be removed, whose model computes logits, and
    /// whose encoder stores keys and values of features ([`Context::append_features`]). `markov` is a context of a model
    /// without states that computes a term of the logits from the id of the token before. Until times are measured, a block
    /// takes a share of the time of a token of the target model, which is that of the bytes of their weights.
    pub fn new(
        context: Context,
        markov: Option<Context>,
        block: Block,
        target: &Executor,
        vocabulary: TargetVocabulary,
    ) -> Self {
        Self {
            expected_cost: share_of_weights(context.executor(), target),
            context,
            markov,
            block,
            vocabulary,
            start: 0,
            pending: PendingFeatures::default(),
            drafted: Vec::new(),
        }
    }

    /// Forgets all features; the next ones are those of a position.
    fn restart(&mut self, position: usize) {
        self.context.clear(0);
        self.start = position;
        self.pending = PendingFeatures::default();
        self.drafted.clear();
    }

    /// Forgets the features of a position and later ones.
    fn forget_from(&mut self, position: usize) {
        self.drafted.clear();
        let (kept, rows) = (position.saturating_sub(self.start), self.context.len(0));
        let is_known = position >= self.start && kept <= rows + self.pending.len();
        if !is_known || !self.context.truncate(0, kept.min(rows)) {
            return self.restart(position);
        }
        self.pending.truncate(kept.saturating_sub(rows));
    }

    /// Stores the keys and values of the pending features in the context.
    fn store_pending(&mut self, progress: &dyn Progress) -> Result<(), Error> {
        match self.pending.len() {
            0 => Ok(()),
            rows => self.context.append_features(0, &self.pending.take(rows), progress),
        }
    }

    /// Predicts the block of the last token of a text.
    fn predict(&mut self, last: u32, progress: &dyn Progress) -> Result<(), Error> {
        self.store_pending(progress)?;
        let (rows, room) = (self.context.len(0), self.context.room(0));
        let len = self.block.len.min(room);
        let ids: Vec<u32> = once(last).chain(repeat(self.block.mask)).take(len).collect();
        let batch = Batch::for_sequence(&ids, 0);
        let logits = self.context.run(&batch, OutputKind::Logits, progress);
        self.context.truncate(0, rows);
        let logits = logits?;
        let mut before = last;
        for row in usize::from(!self.block.predicts_from_anchor)..len {
            let mut logits = logits.row(row).to_vec();
            if let Some(markov) = &mut self.markov {
                let batch = Batch::for_sequence(&[before], 0);
                let term = markov.run(&batch, OutputKind::Logits, progress)?;
                logits.iter_mut().zip(term.row(0)).for_each(|(logit, term)| *logit += term);
            }
            let Some(token) = self.vocabulary.most_likely(&logits)? else { break };
            self.drafted.push(token);
            before = token.id;
        }
        Ok(())
    }
}

impl DraftSource for BlockDraft {
    fn expected_cost(&self) -> f64 {
        self.expected_cost
    }

    fn drafts_blocks(&self) -> bool {
        true
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
        if draft.is_empty() {
            self.drafted.clear();
            let Some(last) = text.last() else { return Ok(None) };
            let known = self.start + self.context.len(0) + self.pending.len();
            if known + 1 != text.len() || !can_read(&self.context, self.start, text, draft) {
                return Ok(None);
            }
            if let Err(error) = self.predict(*last, progress) {
                self.restart(0);
                return Err(error);
            }
        }
        let is_of_block =
            self.drafted.iter().map(|token| token.id).take(draft.len()).eq(draft.iter().copied());
        Ok(self.drafted.get(draft.len()).filter(|_| is_of_block).copied())
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
        self.pending.extend(features, rows);
        if self.pending.are_due(&self.context) {
            self.store_pending(progress)?;
        }
        Ok(())
    }
}
