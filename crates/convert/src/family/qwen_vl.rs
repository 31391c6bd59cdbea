//! The text models of Qwen 2, 2.5 and 3 VL, whose positions have three dimensions.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Value, json};

use super::experts::turned;
use super::hyper;
use super::qwen_moe::QWEN3MOE;
use super::{Exported, Family, Mapping, exported, windows};
use crate::vocab;

pub(super) static QWEN2VL: Family = Family {
    classes: &[
        "Qwen2VLForConditionalGeneration",
        "Qwen2VLModel",
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen2_5OmniModel",
    ],
    architecture: "qwen2vl",
    model_type: "qwen2_vl",
    vocabulary: vocab::Kind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    complete: hyper::default_attention,
    keys: |config, keys| {
        keys.decoder(config, hyper::stated_head_dim(config)?)?;
        windows::qwen(keys, config, |layer, first| layer >= first)
    },
    export: |model, exported| Some(sections(model, windows::export_of_qwen(model, exported))),
    ..Family::DEFAULT
};

pub(super) static QWEN3VL: Family = Family {
    classes: &["Qwen3VLForConditionalGeneration"],
    architecture: "qwen3vl",
    model_type: "qwen3_vl",
    vocabulary: vocab::Kind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    expects: &[("attention_bias", false)],
    complete: hyper::default_attention,
    keys: |config, keys| {
        keys.decoder(config, hyper::stated_head_dim(config)?.or(Some(128)))?;
        keys.set("n_deepstack_layers", deepstack_layers(config));
        Ok(())
    },
    export: |model, exported| Some(seeing(model, exported)),
    ..Family::DEFAULT
};

pub(super) static QWEN3VLMOE: Family = Family {
    classes: &["Qwen3VLMoeForConditionalGeneration"],
    architecture: "qwen3vlmoe",
    model_type: "qwen3_vl_moe",
    complete: |config| {
        config.default("moe_intermediate_size", 1408);
        config.default("num_experts", 60);
        config.default("num_experts_per_tok", 4);
        config.default("rms_norm_eps", 1e-6);
        let head_dim = hyper::head_dim(config)?;
        config.default("head_dim", head_dim);
        hyper::default_attention(config)
    },
    keys: |config, keys| {
        keys.stated(config)?;
        keys.set_u32("expert_feed_forward_length", config.u32(EXPERT_WIDTH)?);
        keys.set("n_deepstack_layers", deepstack_layers(config));
        Ok(())
    },
    special,
    export: |model, exported| Some(seeing(model, exported.patterns([DOWN, GATE_AND_UP]))),
    ..QWEN3MOE
};

const EXPERT_WIDTH: &[&str] = &["moe_intermediate_size"];
const DOWN: &str = "model.layers.{}.mlp.experts.down_proj";
const GATE_AND_UP: &str = "model.layers.{}.mlp.experts.gate_up_proj";

/// Qwen 3 that hears speech: its text model.
pub(super) static QWEN3ASR: Family = Family {
    classes: &["Qwen3ASRForConditionalGeneration"],
    model_type: "qwen3_asr",
    vocabulary: vocab::Kind::QwenTurns { chatml: true },
    keys: |config, keys| {
        (QWEN3VL.keys)(config, keys)?;
        keys.set("n_deepstack_layers", 0u32);
        Ok(())
    },
    export: |_, _| None,
    ..QWEN3VL
};

/// Qwen 3 Omni: its text model, whose experts stand one by one in what is published.
pub(super) static QWEN3OMNI: Family = Family {
    classes: &["Qwen3OmniMoeForConditionalGeneration"],
    model_type: "qwen3_omni_moe",
    vocabulary: vocab::Kind::QwenTurns { chatml: false },
    keys: |config, keys| {
        (QWEN3VLMOE.keys)(config, keys)?;
        keys.set("n_deepstack_layers", 0u32);
        Ok(())
    },
    export: |_, _| None,
    ..QWEN3VLMOE
};

/// The matrices of experts are stored with rows and columns exchanged.
fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let stem = name.strip_suffix(".weight").unwrap_or(name);
    match turned(config, stem, [DOWN, GATE_AND_UP], EXPERT_WIDTH)? {
        None => (QWEN3MOE.special)(config, name),
        found => Ok(found),
    }
}

/// The layers that get features of their own from the encoder of images.
fn deepstack_layers(config: &Config) -> u32 {
    let layers = &config.json()["vision_config"]["deepstack_visual_indexes"];
    layers.as_array().map_or(0, |layers| layers.len() as u32)
}

fn seeing(model: &Model, exported: Exported) -> Exported {
    let layers = exported::count(model, "n_deepstack_layers").unwrap_or(0).min(1 << 16);
    // Which ones, only the encoder knows.
    let indexes: Vec<u64> = (0..layers).collect();
    sections(model, exported).set("vision_config", json!({"deepstack_visual_indexes": indexes}))
}

/// The dimensions that rotate for time, height and width.
pub(super) fn sections(model: &Model, exported: Exported) -> Exported {
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
