//! Tables of the standard keys.

pub(crate) mod clip;
pub(crate) mod general;
pub(crate) mod model;
pub(crate) mod side;
pub(crate) mod tokenizer;

use crate::schema::key_schema::Section;

/// All standard keys, in the sections of `docs/metadata.md`.
pub static SECTIONS: &[Section] = &[
    Section { title: "General", keys: general::GENERAL },
    Section { title: "Source, parent models and data sets", keys: general::ORIGIN },
    Section { title: "Recommended sampling", keys: general::SAMPLING },
    Section { title: "Model", keys: model::MODEL },
    Section { title: "Mixture of experts", keys: model::EXPERTS },
    Section { title: "Attention", keys: model::ATTENTION },
    Section { title: "Rotary position embedding (RoPE)", keys: model::ROPE },
    Section { title: "State-space models and recurrence", keys: model::RECURRENT },
    Section { title: "Keys of single architectures", keys: model::SPECIAL },
    Section { title: "Encoder and decoder (Whisper)", keys: model::ENCODER_DECODER },
    Section { title: "Tokenizer", keys: tokenizer::TOKENIZER },
    Section { title: "Special tokens", keys: tokenizer::SPECIAL_TOKENS },
    Section { title: "Chat templates", keys: tokenizer::CHAT },
    Section { title: "Shards", keys: side::SPLIT },
    Section { title: "Adapters", keys: side::ADAPTER },
    Section { title: "Importance matrices", keys: side::IMATRIX },
    Section { title: "Training", keys: side::TRAINING },
    Section { title: "Vision and audio", keys: clip::CLIP },
];
