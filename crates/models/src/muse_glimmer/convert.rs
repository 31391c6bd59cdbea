//! Conversion of Muse Glimmer. The model has QK-norm without weights and one factor for queries:
//! the converter writes norm weights with that factor for queries and 1 for keys.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, hparams, sliding_window, steps,
};
use crate::gemma2;
use crate::schema::key;

const NAMES: Table = &[("model.layers.{}.self_attn.gate_proj", "blk.{}.attn_gate")];

const QUERY_PROJECTION: &str = "model.layers.{}.self_attn.q_proj.weight";

const QUERY_SCALE: &str = "qk_scale_factor";

pub(crate) const LAYER_TYPES: &str = "layer_types";

pub(crate) struct MuseGlimmer;

/// Description of [`MuseGlimmer`].
pub(crate) static MUSE_GLIMMER: Description = Description {
    classes: &["MuseGlimmerForConditionalGeneration"],
    architecture: "muse-glimmer",
    model_type: "muse_glimmer",
    vocabulary: VocabularyKind::BpeWithTurnEnd("<|eot|>"),
    pre_tokenizers: &["llama-bpe"],
    tensor_names: &[NAMES, gemma2::convert::NORMS, LLAMA_LIKE],
    config_fields: &[
        (key::FINAL_LOGIT_SOFTCAPPING, "final_logit_softcapping"),
        (key::LOGIT_SCALE, "output_multiplier"),
    ],
    ..Description::DECODER
};

impl Converter for MuseGlimmer {
    fn description(&self) -> &'static Description {
        &MUSE_GLIMMER
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        let cap = config.require_f32(&["final_logit_softcapping"], "the soft cap of the logits")?;
        keys.set(key::FINAL_LOGIT_SOFTCAPPING, cap);
        let scale = config.require_f32(&["output_multiplier"], "the scale of the logits")?;
        keys.set(key::LOGIT_SCALE, scale);
        let window = config.require_u32(&["sliding_window"], "the size of the sliding window")?;
        keys.set(key::ATTENTION_SLIDING_WINDOW, window);
        keys.set(
            key::ATTENTION_SLIDING_WINDOW_PATTERN,
            Array::from(&sliding_window_layers(config)?[..]),
        );
        Ok(())
    }

    // The norm weights precede the query matrix, as in the output of llama.cpp's converter.
    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let Some(&[block]) = captures(QUERY_PROJECTION, name).as_deref() else { return Ok(None) };
        let width = config.require_u32(&["head_dim"], "the head dimension")?;
        let width = hparams::possible(config, "dimensions of a head", width)? as usize;
        let scale = config.require_f32(&[QUERY_SCALE], "the scale of normalized queries")?;
        let norms = [("attn_q_norm", scale), ("attn_k_norm", 1.0)];
        let norms =
            norms.map(|(part, factor)| (format!("blk.{block}.{part}.weight"), vec![factor; width]));
        let gguf_name = format!("blk.{block}.attn_q.weight");
        let steps = steps::llama_order(config, &gguf_name)?;
        match Mapping::one(gguf_name, steps) {
            Mapping::Tensors(tensors) => Ok(Some(Mapping::WithVectors(norms.into(), tensors))),
            other => Ok(Some(other)),
        }
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let ends = [".attn_norm", ".post_attention_norm", ".ffn_norm", ".post_ffw_norm"];
        match ends.iter().any(|end| name.ends_with(&format!("{end}.weight"))) {
            true => Ok(vec![Step::Map(Function::PlusOne)]),
            false => steps::llama_order(config, name),
        }
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let norm = model.tensors().iter().find(|t| &*t.info.name == "blk.0.attn_q_norm.weight")?;
        let mut first = [0; 4];
        norm.read_at(&mut first, 0).ok()?;
        let exported = exported.set(QUERY_SCALE, f32::from_le_bytes(first));
        Some(sliding_window::export_of_pattern(model, exported))
    }
}

/// Returns whether each layer has a sliding window.
pub(crate) fn sliding_window_layers(config: &Config) -> Result<Vec<bool>, Error> {
    let (_, kinds) = config
        .find(&[LAYER_TYPES])
        .ok_or_else(|| config.missing(LAYER_TYPES, "the attention type of each layer"))?;
    let kinds = kinds.as_array().into_iter().flatten();
    Ok(kinds.map(|kind| kind == "sliding_attention").collect())
}
