//! Conversion of `ApertusForCausalLM`. The parameters of xIELU are checkpoint tensors of one
//! element per layer; they become metadata arrays and are written back as tensors by exports.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, filled};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, Values, VocabularyKind, defaults,
    hparams, rope,
};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.attention_layernorm", "blk.{}.attn_norm"),
    ("model.layers.{}.feedforward_layernorm", "blk.{}.ffn_norm"),
];

/// Parameters of xIELU: metadata keys, and suffixes of the checkpoint tensors.
const XIELU: [(&str, &str); 4] = [
    ("xielu.alpha_n", "alpha_n"),
    ("xielu.alpha_p", "alpha_p"),
    ("xielu.beta", "beta"),
    ("xielu.eps", "eps"),
];

const ACTIVATION_PREFIX: &str = "model.layers.{}.mlp.act_fn.";

pub(crate) struct Apertus;

/// Description of [`Apertus`].
pub(crate) static APERTUS: Description = Description {
    classes: &["ApertusForCausalLM"],
    architecture: "apertus",
    model_type: "apertus",
    vocabulary: VocabularyKind::Llama,
    pre_tokenizers: &["tekken"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Apertus {
    fn description(&self) -> &'static Description {
        &APERTUS
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        defaults::attention(config)
    }

    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        let blocks = hparams::possible(config, "layers", hparams::block_count(config)?)?;
        for (key, suffix) in XIELU {
            let mut values_per_layer = Vec::new();
            for layer in 0..blocks {
                let name = filled(ACTIVATION_PREFIX, &[layer]) + suffix;
                let value = values.require(&name, "a parameter of the activation xIELU")?;
                values_per_layer.extend(value.first().copied());
            }
            config.set(key, values_per_layer);
        }
        Ok(())
    }

    fn leading_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        for (key, _) in XIELU {
            if let Some(values_per_layer) = config.f32s(key)? {
                keys.set_unprefixed(key, Array::from(&values_per_layer[..]));
            }
        }
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        Ok(())
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Ok(name.contains(".mlp.act_fn.").then_some(Mapping::Dropped))
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }

    fn export(&self, model: &Model, mut exported: Exported) -> Option<Exported> {
        for (key, suffix) in XIELU {
            let values_per_layer = model.metadata().array(key)?;
            let values_per_layer =
                values_per_layer.iter().map(|value| Some(value.to_f64()? as f32));
            let values_per_layer = values_per_layer.collect::<Option<Vec<f32>>>()?;
            for (layer, value) in (0..).zip(&values_per_layer) {
                exported =
                    exported.vector(filled(ACTIVATION_PREFIX, &[layer]) + suffix, vec![*value]);
            }
            exported = exported.unwritten(key, values_per_layer.into());
        }
        Some(exported.set("hidden_act", "xielu"))
    }
}
