//! Conversion of the text models of Qwen2-VL, Qwen2.5-VL and Qwen2.5-Omni.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::keys::Keys;
use crate::convert::{
    Converter, Description, Exported, VocabularyKind, defaults, hparams, sliding_window,
};

pub(crate) struct Qwen2vl;

/// Description of [`Qwen2vl`].
pub(crate) static QWEN2VL: Description = Description {
    classes: &[
        "Qwen2VLForConditionalGeneration",
        "Qwen2VLModel",
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen2_5OmniModel",
    ],
    architecture: "qwen2vl",
    model_type: "qwen2_vl",
    vocabulary: VocabularyKind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    ..Description::DECODER
};

impl Converter for Qwen2vl {
    fn description(&self) -> &'static Description {
        &QWEN2VL
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.decoder(config, hparams::stated_head_dim(config)?)?;
        sliding_window::qwen(keys, config, |layer, first| layer >= first)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(export_mrope_sections(model, sliding_window::export_of_qwen(model, exported)))
    }
}

/// Adds the M-RoPE sections (rotary dimensions for time, height and width) to an export.
pub(crate) fn export_mrope_sections(model: &Model, exported: Exported) -> Exported {
    let metadata = model.metadata();
    let architecture = metadata.architecture().unwrap_or_default();
    let Some(sections) = metadata.array(&format!("{architecture}.rope.dimension_sections")) else {
        return exported;
    };
    let sections: Vec<Value> =
        sections.iter().take(3).filter_map(|value| value.to_u64()).map(Value::from).collect();
    match metadata.get(&format!("{architecture}.rope.scaling.type")) {
        Some(_) => exported.scaling("mrope_section", sections),
        None => exported.set("rope_scaling", json!({"type": "default", "mrope_section": sections})),
    }
}
