//! DeepSeek 4: attention to tokens that were compressed several into one, several streams of the residual, and first
//! layers that choose experts by the token. DSpark is its draft, of the same layers.

use std::borrow::Cow;

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::draft::signed;
use crate::convert::export::{count, number};
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{Table, renamed};
use crate::convert::{Converter, Description, Draft, Exported, Mapping, draft, hparams};
use crate::deepseek4::convert::{
    DEEPSEEK4, Deepseek4, HASHED, NAMES, PARAMETERS, export, keys_with, special,
};
use crate::schema::key;
use crate::{deepseek4, hy_v4};

/// What a draft has beside layers, behind the number of the layer that it stands in.
const BESIDE: Table = &[
    ("main_proj", "fc"),
    ("main_norm", "enc.output_norm"),
    ("markov_head.markov_w1", "markov_w1"),
    ("markov_head.markov_w2", "markov_w2"),
    ("confidence_head.proj", "conf_proj"),
    ("norm", "output_norm"),
];

const FURTHER: &str = "mtp.";

const READ: &str = "dspark_target_layer_ids";

const MASK: &str = "dspark_noise_token_id";

/// The draft, which a checkpoint may hold beside the model.
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

    // As many layers as the names of tensors tell, none of which hashes tokens.
    fn infer_from_names(&self, config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>) {
        let number =
            |name: Cow<'_, str>| name.strip_prefix(FURTHER)?.split_once('.')?.0.parse::<u32>().ok();
        if let Some(last) = names.filter_map(number).max() {
            config.set("num_hidden_layers", last.saturating_add(1));
        }
        config.set(HASHED, 0);
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let ratios = vec![0; hparams::block_count(config)? as usize];
        keys_with(config, keys, &ratios, 0)?;
        keys.set(key::BLOCK_SIZE, config.require_u32(&["dspark_block_size"], "tokens of a guess")?);
        let read =
            config.u32s(READ)?.ok_or_else(|| config.missing(READ, "layers that are read"))?;
        let behind: Vec<i32> =
            read.into_iter().map(|layer| signed(layer.saturating_add(1))).collect();
        keys.set(key::TARGET_LAYERS, Array::from(&behind[..]));
        Ok(())
    }

    fn trailing_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let token = config.u32(&[MASK])?;
        let token =
            token.ok_or_else(|| config.missing(MASK, "the token that stands for a guess"))?;
        keys.set_whole(key::TOKENIZER_GGML_MASK_TOKEN_ID, token);
        Ok(())
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        !name.starts_with(FURTHER)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let numbered = name.strip_prefix(FURTHER).and_then(|rest| rest.split_once('.'));
        let Some((layer, rest)) = numbered else { return Ok(Some(Mapping::Unknown)) };
        if let Some(mapping) = hy_v4::convert::map_parameter(&PARAMETERS, rest) {
            return Ok(Some(mapping));
        }
        if let Some(ours) = renamed(rest, &[BESIDE]) {
            return Ok(Some(Mapping::one(ours, [])));
        }
        // Of the layers that guess further tokens for the model itself.
        if matches!(rest, "ffn.gate.bias_vl" | "ffn.gate.tid2eid") {
            return Ok(Some(Mapping::Dropped));
        }
        let name = format!("model.layers.{layer}.{rest}");
        if let Some(mapping) = special(config, &name)? {
            return Ok(Some(mapping));
        }
        Ok(Some(renamed(&name, &[NAMES]).map_or(Mapping::Unknown, |ours| Mapping::one(ours, []))))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        number(model, key::HYPER_CONNECTION_COUNT)?;
        let mut exported = export(model, exported)?;
        exported.patterns.retain(|pattern| pattern.starts_with("layers."));
        for pattern in &mut exported.patterns {
            *pattern = pattern.replacen("layers.", FURTHER, 1);
        }
        let beside = BESIDE.iter().map(|(name, _)| format!("{FURTHER}0.{name}.weight"));
        let heads = PARAMETERS.iter().filter(|(name, _)| !name.contains("{}"));
        let heads = heads.map(|(name, _)| format!("{FURTHER}0.{name}"));
        let names: Vec<String> = beside.chain(heads).collect();
        let read = draft::numbers(model, key::TARGET_LAYERS)?;
        let read: Vec<i64> = read.into_iter().map(|layer| layer - 1).collect();
        Some(
            exported
                .patterns(names.iter().map(String::as_str))
                .set(READ, read)
                .set_some("dspark_block_size", count(model, key::BLOCK_SIZE))
                .set_some(MASK, model.metadata().u64("tokenizer.ggml.mask_token_id")),
        )
    }
}
