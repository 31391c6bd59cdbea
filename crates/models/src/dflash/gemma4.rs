//! Conversion of the DSpark draft of Gemma 4, whose layers all have full attention with the head
//! dimension and KV heads of Gemma 4's full-attention layers. There is no export.

use std::borrow::Cow;

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, captures};
use crate::convert::{Converter, Description, Exported, ExtraTensors, Mapping, hparams};
use crate::gemma4::convert::ROPE_PARAMETERS;
use crate::schema::key;
use crate::{dflash, gemma2, gemma4};

const LAYER_SCALAR: &str = "layers.{}.layer_scalar";

const GLOBAL_HEAD_DIM: &str = "global_head_dim";

const MASK_TOKEN_ID: &str = "mask_token_id";

/// Default of `partial_rotary_factor`.
const PARTIAL_ROTARY_FACTOR: f64 = 0.25;

pub(crate) struct Dspark;

/// Description of [`Dspark`].
pub(crate) static DSPARK: Description = Description {
    classes: &["Gemma4DSparkModel"],
    model_type: "gemma4_text",
    tensor_names: &[gemma2::convert::NORMS, dflash::convert::NAMES, LLAMA_LIKE],
    ..dflash::convert::DFLASH
};

impl Converter for Dspark {
    fn description(&self) -> &'static Description {
        &DSPARK
    }

    fn base(&self) -> &'static dyn Converter {
        &dflash::convert::Dflash
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        for (field, expected) in [("attention_bias", false), ("enable_moe_block", false)] {
            hparams::expect(config, field, expected)?;
        }
        if config.bool("attention_k_eq_v")? != Some(true) {
            return Err(hparams::not_computed(config, "attention_k_eq_v", false));
        }
        let layer_types =
            config.find(&["layer_types"]).and_then(|(_, layer_types)| layer_types.as_array());
        let has_others =
            |layer_types: &&Vec<Value>| layer_types.iter().any(|name| name != "full_attention");
        if layer_types.is_none_or(|layer_types| has_others(&layer_types)) {
            let stated = layer_types.map_or(Value::Null, |layer_types| layer_types.clone().into());
            return Err(hparams::not_computed(config, "layer_types", stated));
        }
        if let Some(cap) = config.f32(&["final_logit_softcapping"])?.filter(|&cap| cap != 0.0) {
            return Err(hparams::not_computed(config, "final_logit_softcapping", cap));
        }
        let all = config.part(ROPE_PARAMETERS);
        let stated =
            |of: &Config| of.json().as_object().filter(|fields| !fields.is_empty()).cloned();
        let rope = stated(&all.part("full_attention")).or(stated(&all)).unwrap_or_else(|| {
            let default = [
                ("rope_type", Value::from("proportional")),
                ("partial_rotary_factor", PARTIAL_ROTARY_FACTOR.into()),
                ("rope_theta", 1e6.into()),
            ];
            default.map(|(field, value)| (field.to_owned(), value)).into_iter().collect()
        });
        let name = rope.get("rope_type").cloned().unwrap_or_default();
        if name != "proportional" && name != "default" {
            return Err(hparams::not_computed(config, "rope_type", name));
        }
        config.set(ROPE_PARAMETERS, rope);
        Ok(())
    }

    fn infer_from_names(&self, config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>) {
        dflash::convert::infer_confidence_head(config, names)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        dflash::convert::keys(config, keys)?;
        let width = global_head_dim(config)?;
        let heads =
            config.require_u32(&["num_global_key_value_heads"], "the number of KV heads")?;
        keys.set(key::ATTENTION_HEAD_COUNT_KV, heads);
        keys.set(key::ATTENTION_KEY_LENGTH, width);
        keys.set(key::ATTENTION_VALUE_LENGTH, width);
        keys.set(key::ROPE_DIMENSION_COUNT, width);
        keys.set(key::EMBEDDING_SCALE, f64::from(hparams::width(config)?).sqrt() as f32);
        keys.set(key::ATTENTION_SCALE, 1.0f32);
        keys.set(key::HIDDEN_ACTIVATION, "gelu_pytorch_tanh");
        keys.set(key::SAMPLE_FROM_ANCHOR, config.bool("sample_from_anchor")?.unwrap_or(true));
        keys.set(
            dflash::convert::HAS_CONFIDENCE_HEAD,
            config.bool(dflash::convert::HAS_CONFIDENCE_HEAD)?.unwrap_or(false),
        );
        Ok(())
    }

    fn trailing_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let own = config.part(dflash::convert::DFLASH_CONFIG).u32(&[MASK_TOKEN_ID])?;
        let token = match own.or(config.u32(&[MASK_TOKEN_ID])?) {
            Some(token) => token,
            None => return Err(config.missing(MASK_TOKEN_ID, "the id of the mask token")),
        };
        keys.set_unprefixed(key::TOKENIZER_GGML_MASK_TOKEN_ID, token);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let bare = name.strip_prefix("model.").unwrap_or(name);
        let stem = bare.strip_suffix(".weight").unwrap_or(bare);
        if let Some(&[block]) = captures(LAYER_SCALAR, stem).as_deref() {
            return Ok(Some(Mapping::one(format!("blk.{block}.layer_output_scale.weight"), [])));
        }
        match bare.strip_prefix("confidence_proj.") {
            Some(end) => Ok(Some(Mapping::one(format!("conf_proj.{end}"), []))),
            None => dflash::convert::map_draft_tensor(config, name),
        }
    }

    // Proportional RoPE: the last dimensions of a head have no RoPE.
    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        let rope = config.part(ROPE_PARAMETERS);
        if rope.json()["rope_type"] != "proportional" {
            return Ok(Vec::new());
        }
        let share = rope.f64(&["partial_rotary_factor"])?.unwrap_or(PARTIAL_ROTARY_FACTOR);
        Ok(vec![gemma4::convert::partial_rope_freqs(global_head_dim(config)?, share)])
    }

    fn export(&self, _: &Model, _: Exported) -> Option<Exported> {
        None
    }
}

fn global_head_dim(config: &Config) -> Result<u32, Error> {
    let width = config.require_u32(&[GLOBAL_HEAD_DIM], "the head dimension")?;
    hparams::possible(config, "dimensions of a head", width)
}
