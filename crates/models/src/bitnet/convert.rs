//! Conversion of BitNet b1.58. Linear layers are quantized to three values with the mean absolute
//! value of their elements as scale (absmean), unless they are ternary already.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;
use serde_json::{Map, Value};

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, renamed};
use crate::convert::{
    Converter, Description, Exported, Values, VocabularyKind, defaults, hparams, tensor_names,
};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.inner_attn_ln", "blk.{}.attn_sub_norm"),
    ("model.layers.{}.mlp.ffn_layernorm", "blk.{}.ffn_sub_norm"),
];

/// Field set from the checkpoint: the mean absolute value of each matrix, by its GGUF name.
const ABSMEANS: &str = "matrix_sizes";

/// Lower bound of the scale.
const MIN_SCALE: f32 = 1e-5;

pub(crate) struct Bitnet;

/// Description of [`Bitnet`].
pub(crate) static BITNET: Description = Description {
    classes: &["BitnetForCausalLM", "BitNetForCausalLM"],
    architecture: "bitnet",
    model_type: "bitnet",
    vocabulary: VocabularyKind::SentencePieceElseBpe,
    pre_tokenizers: &["llama-bpe"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    ..Description::DECODER
};

impl Converter for Bitnet {
    fn description(&self) -> &'static Description {
        &BITNET
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        let activation = config.find(&["hidden_act"]).map(|(_, name)| name.clone());
        match activation.filter(|name| name != "silu") {
            None if defaults::is_llama(config) => defaults::attention(config),
            None => Ok(()),
            Some(other) => Err(hparams::not_computed(config, "hidden_act", other)),
        }
    }

    // Matrices that are ternary already keep their values.
    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        const LINEAR_LAYERS: [&str; 7] =
            ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down", "ffn_gate"];
        let mut means = Map::new();
        for name in values.names() {
            let Some(gguf_name) = renamed(&tensor_names::with_model(&name), &[LLAMA_LIKE]) else {
                continue;
            };
            if !LINEAR_LAYERS.iter().any(|part| gguf_name.ends_with(&format!(".{part}.weight"))) {
                continue;
            }
            let (mut sum, mut elements) = (0.0, 0u64);
            let (mut largest, mut is_ternary) = (0f32, true);
            values.each_row(&name, |row| {
                for x in row.iter().map(|x| x.abs()) {
                    sum += f64::from(x);
                    is_ternary &= x == 0.0 || x == largest || largest == 0.0;
                    largest = largest.max(x);
                }
                elements += row.len() as u64;
            })?;
            if !is_ternary && elements > 0 {
                let mean = (sum / elements as f64) as f32;
                means.insert(gguf_name, f64::from(mean.max(MIN_SCALE)).into());
            }
        }
        config.set(ABSMEANS, Value::from(means));
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let mut completed = config.clone();
        completed.set("head_dim", defaults::head_dim(config)?);
        keys.stated(&completed)?;
        keys.set_if_absent(key::ROPE_SCALING_TYPE, "linear");
        keys.set_if_absent(key::ROPE_SCALING_FACTOR, 1.0f32);
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let scale = config.part(ABSMEANS).f32(&[name])?;
        Ok(scale.map(|scale| Step::Map(Function::Ternary(scale))).into_iter().collect())
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.without(&[key::ROPE_SCALING_TYPE]).set("hidden_act", "silu"))
    }
}
