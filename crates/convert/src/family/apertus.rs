//! Apertus: feed-forward layers without gates, whose activation has parameters that are keys.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, filled};
use super::{Exported, Family, Mapping, Values};
use crate::vocab;

const NAMES: Table = &[
    ("model.layers.{}.attention_layernorm", "blk.{}.attn_norm"),
    ("model.layers.{}.feedforward_layernorm", "blk.{}.ffn_norm"),
];
/// Parameters of the activation: our keys, and what the tensors of a layer end with.
const ACTIVATION: [(&str, &str); 4] = [
    ("xielu.alpha_n", "alpha_n"),
    ("xielu.alpha_p", "alpha_p"),
    ("xielu.beta", "beta"),
    ("xielu.eps", "eps"),
];
const OF_LAYER: &str = "model.layers.{}.mlp.act_fn.";

pub(super) static APERTUS: Family = Family {
    classes: &["ApertusForCausalLM"],
    architecture: "apertus",
    model_type: "apertus",
    vocabulary: vocab::Kind::Llama,
    pre_tokenizers: &["tekken"],
    names: &[NAMES, LLAMA_LIKE],
    expects: &[("attention_bias", false)],
    complete: |config| {
        config.default("rms_norm_eps", 1e-5);
        hyper::default_attention(config)
    },
    values,
    first_keys,
    keys: |config, keys| {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        keys.set("rope.dimension_count", hyper::head_dim(config)?);
        Ok(())
    },
    special: |_, name| Ok(name.contains(".mlp.act_fn.").then_some(Mapping::Dropped)),
    computed: hyper::rope_freqs,
    export,
    ..Family::DEFAULT
};

/// A number for each layer.
fn values(config: &mut Config, values: &Values) -> Result<(), Error> {
    let blocks = hyper::possible(config, "layers", hyper::block_count(config)?)?;
    for (key, end) in ACTIVATION {
        let mut numbers = Vec::new();
        for layer in 0..blocks {
            let name = filled(OF_LAYER, &[layer]) + end;
            let number = values.require(&name, "a parameter of the activation")?;
            numbers.extend(number.first().copied());
        }
        config.set(key, numbers);
    }
    Ok(())
}

fn first_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    for (key, _) in ACTIVATION {
        if let Some(numbers) = config.f32s(key)? {
            keys.set_whole(key, Array::from(&numbers[..]));
        }
    }
    Ok(())
}

fn export(model: &Model, mut exported: Exported) -> Option<Exported> {
    for (key, end) in ACTIVATION {
        let numbers = model.metadata().array(key)?;
        let numbers = numbers.iter().map(|number| Some(number.to_f64()? as f32));
        let numbers = numbers.collect::<Option<Vec<f32>>>()?;
        for (layer, number) in (0..).zip(&numbers) {
            exported = exported.vector(filled(OF_LAYER, &[layer]) + end, vec![*number]);
        }
        exported = exported.unwritten(key, numbers.into());
    }
    Some(exported.set("hidden_act", "xielu"))
}
