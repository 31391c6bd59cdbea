//! Conversion of the DSpark draft of DeepSeek V4, which is under `mtp.` in the checkpoint of
//! the model. Its layers are those of `deepseek4` without compression and without hash routing.

use std::borrow::Cow;

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::draft::signed;
use crate::convert::export::{count, number};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, renamed};
use crate::convert::{Converter, Description, Draft, Exported, Mapping, draft, hparams};
use crate::deepseek4::convert::{
    DEEPSEEK4, Deepseek4, HASH_LAYERS, NAMES, PARAMETERS, export, keys_with_ratios,
    map_layer_tensor,
};
use crate::schema::key;
use crate::{deepseek4, hy_v4};

/// Names of tensors outside of layers, without `mtp.` and the number of the layer that holds them.
const DRAFT_NAMES: Table = &[
    ("main_proj", "fc"),
    ("main_norm", "enc.output_norm"),
    ("markov_head.markov_w1", "markov_w1"),
    ("markov_head.markov_w2", "markov_w2"),
    ("confidence_head.proj", "conf_proj"),
    ("norm", "output_norm"),
];

const MTP_PREFIX: &str = "mtp.";

const TARGET_LAYER_IDS: &str = "dspark_target_layer_ids";

const NOISE_TOKEN_ID: &str = "dspark_noise_token_id";

/// DSpark draft of DeepSeek V4.
pub(crate) struct Dspark;

/// Description of [`Dspark`].
pub(crate) static DSPARK: Description =
    Description { classes: &["DeepseekV4DSparkModel"], architecture: "dflash", ..DEEPSEEK4 };

impl Converter for Dspark {
    fn description(&self) -> &'static Description {
        &DSPARK
    }

    fn base(&self) -> &'static dyn Converter {
        &Deepseek4
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        deepseek4::convert::complete(config)
    }

    fn draft(&self) -> Option<Draft> {
        Some(Draft::Own)
    }

    // The tensor names give the number of layers; none is a hash layer.
    fn infer_from_names(&self, config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>) {
        let number = |name: Cow<'_, str>| {
            name.strip_prefix(MTP_PREFIX)?.split_once('.')?.0.parse::<u32>().ok()
        };
        if let Some(last) = names.filter_map(number).max() {
            config.set("num_hidden_layers", last.saturating_add(1));
        }
        config.set(HASH_LAYERS, 0);
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let ratios = vec![0; hparams::block_count(config)? as usize];
        keys_with_ratios(config, keys, &ratios, 0)?;
        keys.set(
            key::BLOCK_SIZE,
            config.require_u32(&["dspark_block_size"], "the number of tokens of a block")?,
        );
        let target_layers = config.u32s(TARGET_LAYER_IDS)?.ok_or_else(|| {
            config.missing(TARGET_LAYER_IDS, "the target layers whose hidden states are read")
        })?;
        let after_layers: Vec<i32> =
            target_layers.into_iter().map(|layer| signed(layer.saturating_add(1))).collect();
        keys.set(key::TARGET_LAYERS, Array::from(&after_layers[..]));
        Ok(())
    }

    fn trailing_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let token = config.u32(&[NOISE_TOKEN_ID])?;
        let token =
            token.ok_or_else(|| config.missing(NOISE_TOKEN_ID, "the id of the mask token"))?;
        keys.set_unprefixed(key::TOKENIZER_GGML_MASK_TOKEN_ID, token);
        Ok(())
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        !name.starts_with(MTP_PREFIX)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let numbered = name.strip_prefix(MTP_PREFIX).and_then(|rest| rest.split_once('.'));
        let Some((layer, rest)) = numbered else { return Ok(Some(Mapping::Unknown)) };
        if let Some(mapping) = hy_v4::convert::map_parameter(&PARAMETERS, rest) {
            return Ok(Some(mapping));
        }
        if let Some(gguf_name) = renamed(rest, &[DRAFT_NAMES]) {
            return Ok(Some(Mapping::one(gguf_name, [])));
        }
        // Tensors of the multi-token prediction layers of the model.
        if matches!(rest, "ffn.gate.bias_vl" | "ffn.gate.tid2eid") {
            return Ok(Some(Mapping::Dropped));
        }
        let name = format!("model.layers.{layer}.{rest}");
        if let Some(mapping) = map_layer_tensor(config, &name)? {
            return Ok(Some(mapping));
        }
        Ok(Some(
            renamed(&name, &[NAMES])
                .map_or(Mapping::Unknown, |gguf_name| Mapping::one(gguf_name, [])),
        ))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        number(model, key::HYPER_CONNECTION_COUNT)?;
        let mut exported = export(model, exported)?;
        exported.patterns.retain(|pattern| pattern.starts_with("layers."));
        for pattern in &mut exported.patterns {
            *pattern = pattern.replacen("layers.", MTP_PREFIX, 1);
        }
        let draft_names =
            DRAFT_NAMES.iter().map(|(name, _)| format!("{MTP_PREFIX}0.{name}.weight"));
        let heads = PARAMETERS.iter().filter(|(name, _)| !name.contains("{}"));
        let heads = heads.map(|(name, _)| format!("{MTP_PREFIX}0.{name}"));
        let names: Vec<String> = draft_names.chain(heads).collect();
        let target_layers = draft::numbers(model, key::TARGET_LAYERS)?;
        let target_layers: Vec<i64> = target_layers.into_iter().map(|layer| layer - 1).collect();
        Some(
            exported
                .patterns(names.iter().map(String::as_str))
                .set(TARGET_LAYER_IDS, target_layers)
                .set_some("dspark_block_size", count(model, key::BLOCK_SIZE))
                .set_some(NOISE_TOKEN_ID, model.metadata().u64(key::TOKENIZER_GGML_MASK_TOKEN_ID)),
        )
    }
}
