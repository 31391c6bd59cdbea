//! BERT and what follows it: encoders of text, whose norms stand behind the sums. The latest, ModernBERT,
//! NeoBERT and EuroBERT, are decoders that see both sides.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, Windows, decoder};
use crate::eurobert::graph::on_both_sides;
use crate::graph::Builder;

/// Of three layers all but the first have a window.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        windows: Windows::AllButFirst(3),
        ..on_both_sides(Decoder::rotated(builder, RopeLayout::Neox)?)
    };
    decoder(builder, &family)
}
