//! Conversion of StarCoder and SantaCoder (`gpt_bigcode`): GPT-2 with MQA.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, Exported, export, hparams, steps};
use crate::gpt2;
use crate::schema::key;

pub(crate) struct Starcoder;

/// Description of [`Starcoder`].
pub(crate) static STARCODER: Description = Description {
    classes: &["GPTBigCodeForCausalLM"],
    architecture: "starcoder",
    model_type: "gpt_bigcode",
    pre_tokenizers: &["starcoder", "gpt-2"],
    tensor_prefix: "transformer.",
    tensor_names: &[gpt2::convert::NAMES],
    config_fields: &gpt2::convert::FIELDS,
    ..Description::DECODER
};

impl Converter for Starcoder {
    fn description(&self) -> &'static Description {
        &STARCODER
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width = hparams::width(config)?;
        let heads = hparams::head_count(config)?;
        keys.set(key::CONTEXT_LENGTH, config.require_u32(&["n_positions"], "the context length")?);
        keys.set(key::EMBEDDING_LENGTH, width);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::inner_width(config, width)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, heads);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, if is_multi_query(config)? { 1 } else { heads });
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        keys.file_type();
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        // MHA models store queries, keys and values head by head.
        if name.contains(".attn_qkv.") && !is_multi_query(config)? {
            return Ok(vec![steps::sort_heads(config)?]);
        }
        Ok(Vec::new())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let is_multi_query = export::head_count_kv(model) == Some(1);
        Some(exported.set("multi_query", is_multi_query))
    }
}

/// Returns whether the model has MQA, which is the default.
fn is_multi_query(config: &Config) -> Result<bool, Error> {
    Ok(config.bool("multi_query")?.unwrap_or(true))
}
