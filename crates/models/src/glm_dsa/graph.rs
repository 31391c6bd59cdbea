//! DeepSeek 3.2, GLM 5 and dots 3: compressed attention to the tokens that an indexer chooses.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::deepseek32::graph::indexed;
use crate::graph::Builder;

/// GLM 5: some layers look at what one before them has chosen.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    indexed(builder, RopeLayout::Interleaved)
}
