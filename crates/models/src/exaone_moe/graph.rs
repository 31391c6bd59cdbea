//! Exaone 4 and K-Exaone: where some layers see a window, only these rotate.

use gguf::Finding;
use gguf_graph::Gating;

use crate::blocks::decoder;
use crate::exaone4::graph::usual;
use crate::graph::Builder;

/// Experts by the sigmoid of each.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = usual(builder)?;
    family.routing.gating = Gating::Sigmoid;
    decoder(builder, &family)
}
