//! EAGLE 3: drafts of one layer, which read what three layers of another model compute.

use gguf_checkpoint::config::Config;

use crate::convert::hparams;
use crate::eagle3::convert::DRAFT_VOCAB_SIZE;

/// Whether a model of another class is one of these by its fields.
pub(crate) fn is_meant(config: &Config) -> bool {
    config.find(&[DRAFT_VOCAB_SIZE]).is_some() && matches!(hparams::block_count(config), Ok(1))
}
