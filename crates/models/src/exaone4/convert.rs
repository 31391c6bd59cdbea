//! Conversion of `Exaone4ForCausalLM` and EXAONE 4.5. A window pattern of letters (L: sliding
//! window) becomes `layer_types`; tensors `mtp.*` become layers after the last.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, block_of, renamed};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, defaults, hparams, moe, mtp, rope,
    sliding_window,
};
use crate::olmo2::convert::POST_NORMS;
use crate::schema::key;

pub(crate) struct Exaone4;

/// Description of [`Exaone4`].
pub(crate) static EXAONE4: Description = Description {
    classes: &["Exaone4ForCausalLM", VISION_CLASS],
    architecture: "exaone4",
    model_type: "exaone4",
    pre_tokenizers: &["exaone4", "exaone"],
    tensor_names: &[POST_NORMS, mtp::NAMES, LLAMA_LIKE],
    ..Description::DECODER
};

impl Converter for Exaone4 {
    fn description(&self) -> &'static Description {
        &EXAONE4
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self::keys(config, keys)?;
        let mtp_layers = config.u32(&[mtp::COUNT])?.filter(|&count| count > 0);
        mtp_keys(config, keys, mtp_layers)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        map_mtp_tensor(config, name, &[POST_NORMS, mtp::NAMES, LLAMA_LIKE])
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = sliding_window::export_of_pattern(model, exported);
        if count(model, key::NEXTN_PREDICT_LAYERS).is_none() {
            return Some(exported);
        }
        mtp::export(
            model,
            exported.class(VISION_CLASS, "exaone4_5"),
            EXAONE4.tensor_names,
            &[],
            mtp::COUNT,
        )
    }
}

const VISION_CLASS: &str = "Exaone4_5_ForConditionalGeneration";

/// Writes the block count with the multi-token prediction layers, and their number.
pub(crate) fn mtp_keys(
    config: &Config,
    keys: &mut Keys,
    mtp_layers: Option<u32>,
) -> Result<(), Error> {
    let blocks = hparams::block_count(config)?;
    keys.set(key::BLOCK_COUNT, blocks.saturating_add(mtp_layers.unwrap_or(0)));
    keys.set_u32(key::NEXTN_PREDICT_LAYERS, mtp_layers);
    Ok(())
}

/// Maps a tensor of multi-token prediction layers, whose checkpoint names begin with `mtp`.
pub(crate) fn map_mtp_tensor(
    config: &Config,
    name: &str,
    tables: &[Table],
) -> Result<Option<Mapping>, Error> {
    let blocks = hparams::block_count(config)?;
    let Some(name) = mtp::name_in_layer(name, blocks) else {
        let is_beyond = block_of(name).is_some_and(|block| block >= blocks);
        return Ok(is_beyond.then_some(Mapping::Unknown));
    };
    if let Some(mapping) = map_moe_tensor(config, &name)? {
        return Ok(Some(mapping));
    }
    Ok(renamed(&name, tables).map(|gguf_name| Mapping::one(gguf_name, [])))
}

const PATTERN: &str = "sliding_window_pattern";

pub(crate) fn complete(config: &mut Config) -> Result<(), Error> {
    config.default("rms_norm_eps", 1e-5);
    // A letter for each layer of the period: L has a sliding window.
    let letters = config.find(&[PATTERN]).and_then(|(_, value)| value.as_str().map(str::to_owned));
    if let Some(letters) = letters {
        let layer_type =
            |letter| if letter == 'L' { "sliding_attention" } else { "full_attention" };
        let count = hparams::block_count(config)? as usize;
        let types: Vec<_> = letters.chars().cycle().take(count).map(layer_type).collect();
        config.default("layer_types", types);
        config.set(PATTERN, 0);
    }
    defaults::attention(config)
}

pub(crate) fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.vocab_size(config)?;
    if let Some(window) = config.u32(&["sliding_window"])? {
        keys.set(key::ATTENTION_SLIDING_WINDOW, window);
        keys.set(
            key::ATTENTION_SLIDING_WINDOW_PATTERN,
            Array::from(&sliding_window::layers(config, 4)?[..]),
        );
    }
    Ok(())
}

pub(crate) const ROUTER_BIAS: &str = "model.layers.{}.mlp.e_score_correction_bias";

/// Maps experts and the selection bias, which has a name of its own in new checkpoints.
pub(crate) fn map_moe_tensor(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if let Some(bias) = moe::router_bias(ROUTER_BIAS, name) {
        return Ok(Some(bias));
    }
    moe::routed(config, name, moe::ROUTER_BIAS)
}
