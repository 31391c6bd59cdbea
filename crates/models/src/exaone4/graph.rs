//! Exaone 4 and K-Exaone: where some layers see a window, only these rotate.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, Windows, decoder};
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = usual(builder)?;
    decoder(builder, &family)
}

pub(crate) fn usual(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let mut family =
        Decoder { windows: Windows::AllButLast(4), ..Decoder::gated(builder, RopeLayout::Neox)? };
    let has_window = builder.hyper.stated(key::ATTENTION_SLIDING_WINDOW).is_some();
    if has_window && builder.size(key::ATTENTION_SLIDING_WINDOW)? > 0 {
        family.rotation = None;
    }
    Ok(family)
}
