//! Conversion of `Gemma2ForCausalLM`: as Gemma with sandwich norms, soft-capping and a sliding
//! window in every other layer.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::{count, ratio};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, export, sliding_window, steps,
};
use crate::gemma;
use crate::gemma::convert::{complete, generation_keys};
use crate::schema::key;

/// Sandwich norms: before and after attention and FFN.
pub(crate) const NORMS: Table = &[
    ("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm"),
    ("model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"),
];

pub(crate) struct Gemma2;

/// Description of [`Gemma2`].
pub(crate) static GEMMA2: Description = Description {
    classes: &["Gemma2ForCausalLM"],
    architecture: "gemma2",
    model_type: "gemma2",
    vocabulary: VocabularyKind::Gemma { first: false },
    tensor_names: &[NORMS, LLAMA_LIKE],
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Gemma2 {
    fn description(&self) -> &'static Description {
        &GEMMA2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete(config, 2)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        generation_keys(config, keys, 2)
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        gemma::convert::drop_output(name)
    }

    fn modify_tensor(&self, _: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::norm_plus_one(name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export_generation(model, exported, 2)
    }
}

/// Completes the export of a generation.
pub(crate) fn export_generation(
    model: &Model,
    exported: Exported,
    generation: u32,
) -> Option<Exported> {
    let number = |key| count(model, key);
    // `query_pre_attn_scalar` has no key. It is the head dimension except in the 27B models, which
    // runtimes recognize by their number of layers.
    let scalar = match (generation, number("block_count")) {
        (2, Some(46)) | (3, Some(62)) => {
            ratio(model, key::EMBEDDING_LENGTH, "attention.head_count")
        }
        _ => export::head_dim(model).map(Value::from),
    };
    let exported = exported.set_some("query_pre_attn_scalar", scalar).fields(&[
        ("attn_logit_softcapping", "attn_logit_softcapping"),
        ("final_logit_softcapping", "final_logit_softcapping"),
        ("rope.freq_base_swa", "rope_local_base_freq"),
    ]);
    let exported = sliding_window::export_of_pattern(model, exported);
    if generation == 2 {
        return Some(exported);
    }
    // One of this number of layers has full attention.
    let pattern = match number("attention.sliding_window") {
        Some(_) => number("attention.sliding_window_pattern").unwrap_or(6),
        None => 1,
    };
    Some(exported.set("sliding_window_pattern", pattern))
}
