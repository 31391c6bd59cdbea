//! Gemma 1, 2 and 3, as text models, and the encoder made of the third.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_models::schema::Hyper;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;
use serde_json::Value;

use super::exported::{self, count, ratio};
use super::hyper::{self, Keys};
use super::modules::{self, dense_keys, pooling_key};
use super::names::{LLAMA_LIKE, Table};
use super::{Exported, Family, Mapping, windows};
use crate::vocab;

/// Since the second generation, norms stand before and after attention and feed-forward.
pub(super) const NORMS: Table = &[
    ("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm"),
    ("model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"),
];

pub(super) static GEMMA: Family = Family {
    classes: &["GemmaForCausalLM"],
    architecture: "gemma",
    model_type: "gemma",
    vocabulary: vocab::Kind::Gemma { first: true },
    expects: &[("attention_bias", false)],
    complete: |config| complete(config, 1),
    keys: |config, keys| keys_of(config, keys, 1),
    special,
    steps,
    ..Family::DEFAULT
};

pub(super) static GEMMA2: Family = Family {
    classes: &["Gemma2ForCausalLM"],
    architecture: "gemma2",
    model_type: "gemma2",
    vocabulary: vocab::Kind::Gemma { first: false },
    names: &[NORMS, LLAMA_LIKE],
    expects: &[("attention_bias", false)],
    complete: |config| complete(config, 2),
    keys: |config, keys| keys_of(config, keys, 2),
    special,
    steps,
    export: |model, exported| export_of(model, exported, 2),
    ..Family::DEFAULT
};

pub(super) static GEMMA3: Family = Family {
    classes: &["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"],
    architecture: "gemma3",
    model_type: "gemma3_text",
    vocabulary: vocab::Kind::Gemma { first: false },
    names: &[NORMS, LLAMA_LIKE],
    expects: &[("attention_bias", false)],
    complete: |config| complete(config, 3),
    keys: |config, keys| keys_of(config, keys, 3),
    special,
    steps,
    export: |model, exported| export_of(model, exported, 3),
    ..Family::DEFAULT
};

/// The third generation as an encoder, with the matrices that `sentence-transformers` has behind it.
pub(super) static GEMMA_EMBEDDING: Family = Family {
    classes: &["Gemma3TextModel"],
    architecture: "gemma-embedding",
    model_type: "gemma3_text",
    vocabulary: vocab::Kind::Gemma { first: false },
    names: &[NORMS, LLAMA_LIKE],
    expects: &[("attention_bias", false)],
    complete: |config| complete(config, 3),
    keys: |config, keys| {
        keys_of(config, keys, 3)?;
        dense_keys(keys, config)?;
        pooling_key(keys, config)?;
        if config.bool("use_bidirectional_attention")? != Some(true) {
            keys.set("attention.causal", true);
        }
        Ok(())
    },
    special: |config, name| Ok(modules::dense(name).or(special(config, name)?)),
    steps,
    export: |model, exported| {
        let is_encoder = !Hyper::of(model.metadata()).ok()?.bool("attention.causal").ok()?;
        let dense = modules::dense_names();
        let exported = exported
            .patterns(dense.iter().map(String::as_str))
            .files(modules::module_files(model))
            .set("use_bidirectional_attention", is_encoder);
        export_of(model, exported, 3)
    },
    ..Family::DEFAULT
};

fn complete(config: &mut Config, generation: u32) -> Result<(), Error> {
    config.default("head_dim", 256);
    config.default("rms_norm_eps", 1e-6);
    match generation {
        1 => config.default("max_position_embeddings", 8192),
        2 => {
            config.default("max_position_embeddings", 8192);
            config.default("attn_logit_softcapping", 50.0);
            config.default("final_logit_softcapping", 30.0);
            config.default("sliding_window", 4096);
        }
        _ => {
            // The multimodal models state little of their text model.
            config.default("max_position_embeddings", 131_072);
            config.default("num_attention_heads", 8);
            config.default("num_key_value_heads", 4);
            config.default("sliding_window", 4096);
            config.default("rope_theta", 1e6);
            config.default("rope_local_base_freq", 1e4);
        }
    }
    Ok(())
}

fn keys_of(config: &Config, keys: &mut Keys, generation: u32) -> Result<(), Error> {
    let head_dim = config.require_u32(&["head_dim"], "the width of a head")?;
    if generation == 3 {
        keys.stated(config)?;
        if let Some(cap) = config.f32(&["final_logit_softcapping"])?.filter(|&cap| cap != 0.0) {
            keys.set("final_logit_softcapping", cap);
        }
        if config.u32(&["sliding_window_pattern"])? != Some(1) {
            keys.set_u32("attention.sliding_window", config.u32(&["sliding_window"])?);
            windows::unusual_pattern(keys, config, 6)?;
        }
        return Ok(());
    }
    keys.set("context_length", hyper::context_length(config)?);
    keys.set("embedding_length", hyper::width(config)?);
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("feed_forward_length", hyper::feed_forward(config)?);
    keys.set("attention.head_count", hyper::head_count(config)?);
    keys.set("attention.head_count_kv", hyper::head_count_kv(config)?);
    keys.set_f32("attention.layer_norm_rms_epsilon", config.f32(&["rms_norm_eps"])?);
    keys.set("attention.key_length", head_dim);
    keys.set("attention.value_length", head_dim);
    keys.file_type();
    if generation == 2 {
        for cap in ["attn_logit_softcapping", "final_logit_softcapping"] {
            keys.set_f32(cap, config.f32(&[cap])?);
        }
        keys.set_u32("attention.sliding_window", config.u32(&["sliding_window"])?);
        windows::unusual_pattern(keys, config, 2)?;
    }
    keys.unusual_rope(config)
}

fn special(_config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    // The embedding is the output matrix too; some checkpoints hold it twice.
    let is_output = matches!(name, "lm_head.weight" | "model.lm_head.weight");
    Ok(is_output.then_some(Mapping::Dropped))
}

fn steps(_config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    Ok(Vec::from_iter(name.ends_with("norm.weight").then_some(Step::Map(Function::PlusOne))))
}

fn export_of(model: &Model, exported: Exported, generation: u32) -> Option<Exported> {
    let number = |key| count(model, key);
    // What attention is scaled by has no key: programs tell the models of 27B, where it is not
    // the width of a head, by their number of layers.
    let scalar = match (generation, number("block_count")) {
        (2, Some(46)) | (3, Some(62)) => ratio(model, "embedding_length", "attention.head_count"),
        _ => exported::head_dim(model).map(Value::from),
    };
    let exported = exported.set_some("query_pre_attn_scalar", scalar).fields(&[
        ("attn_logit_softcapping", "attn_logit_softcapping"),
        ("final_logit_softcapping", "final_logit_softcapping"),
        ("rope.freq_base_swa", "rope_local_base_freq"),
    ]);
    let exported = windows::export_of_pattern(model, exported);
    if generation == 2 {
        return Some(exported);
    }
    // Of so many layers one has no window.
    let pattern = match number("attention.sliding_window") {
        Some(_) => number("attention.sliding_window_pattern").unwrap_or(6),
        None => 1,
    };
    Some(exported.set("sliding_window_pattern", pattern))
}
