//! Features of tokens that a draft model has not computed yet.

use crate::context::Context;
use crate::value::Value;

/// Number of features that wait for the next draft; so many take hardly more time than one.
const READ_LATER: usize = 8;

/// Features of the target model for the tokens after those in the context of a draft model.
#[derive(Default)]
pub(super) struct PendingFeatures(Value);

impl PendingFeatures {
    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.0.rows
    }

    /// Whether a draft model should compute them before the next draft: they are many, as those of a prompt, and fit into its
    /// context.
    pub fn are_due(&self, context: &Context) -> bool {
        self.len() > READ_LATER && context.room(0) >= self.len()
    }

    /// Appends the first rows of features.
    pub fn extend(&mut self, features: &Value, rows: usize) {
        self.0.width = features.width;
        self.0.rows += rows;
        self.0.data.extend(&features.data[..rows * features.width]);
    }

    /// Keeps the first rows.
    pub fn truncate(&mut self, rows: usize) {
        self.0.rows = self.0.rows.min(rows);
        self.0.data.truncate(self.0.rows * self.0.width);
    }

    /// Removes the first rows.
    pub fn take(&mut self, rows: usize) -> Value {
        let Value { width, ref mut data, .. } = self.0;
        let rest = data.split_off(rows * width);
        let data = std::mem::replace(data, rest);
        self.0.rows -= rows;
        Value { rows, width, data }
    }
}
