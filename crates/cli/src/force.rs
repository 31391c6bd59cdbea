//! `--force`, of every command that writes files.

use std::path::Path;

use gguf_store::{Existing, Overwrite};

/// What becomes of outputs that exist.
#[derive(clap::Args)]
// Its group would bear the name of the one that it is part of.
#[group(skip)]
pub struct Force {
    /// Replace outputs that exist; never one of the inputs.
    #[arg(long)]
    force: bool,
}

impl Force {
    /// What outputs may replace if these are the inputs: files, or directories with checkpoints.
    pub fn protecting<P: AsRef<Path>>(&self, inputs: impl IntoIterator<Item = P>) -> Overwrite {
        gguf_kit::overwrite(self.existing()).protecting(inputs)
    }

    /// What becomes of them.
    pub fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Refuse }
    }
}
