//! The `--force` flag of commands that write files.

use std::path::Path;

use gguf_store::{Existing, Overwrite};

/// Overwriting of existing outputs.
#[derive(clap::Args)]
// Without `skip`, clap's group would take the name of the parent struct.
#[group(skip)]
pub struct Force {
    /// Overwrite existing outputs. Inputs are never overwritten.
    #[arg(long)]
    force: bool,
}

impl Force {
    /// Returns which files outputs may replace, given the inputs: files, or checkpoint directories.
    pub fn protecting<P: AsRef<Path>>(&self, inputs: impl IntoIterator<Item = P>) -> Overwrite {
        gguf_kit::overwrite(self.existing()).protecting(inputs)
    }

    /// Returns whether the flag was given.
    pub fn is_given(&self) -> bool {
        self.force
    }

    /// Returns how to treat existing outputs.
    pub fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Refuse }
    }
}
