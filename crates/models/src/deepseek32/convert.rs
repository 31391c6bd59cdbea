//! DeepSeek: experts after some dense layers; compressed attention since the second generation.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, moe, mtp};
use crate::deepseek2;
use crate::deepseek2::convert::{
    ATTENTION, DEEPSEEK2, Deepseek2, complete_with_gate, export_with_further, further_keys,
    special_with_further,
};
use crate::schema::key;

/// DeepSeek 3.2: an indexer chooses the tokens that are attended to.
pub(crate) struct Deepseek32;

/// Description of [`Deepseek32`].
pub(crate) static DEEPSEEK32: Description = Description {
    classes: &["DeepseekV32ForCausalLM"],
    architecture: "deepseek32",
    model_type: "deepseek_v32",
    tensor_names: &[ATTENTION, INDEXER, mtp::NAMES, moe::BESIDE_SHARED, LLAMA_LIKE],
    ..DEEPSEEK2
};

impl Converter for Deepseek32 {
    fn description(&self) -> &'static Description {
        &DEEPSEEK32
    }

    fn base(&self) -> &'static dyn Converter {
        &Deepseek2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete_with_gate(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        deepseek2::convert::keys(config, keys)?;
        further_keys(config, keys, false)?;
        indexer_keys(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        special_with_further(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export_with_further(model, exported)
    }
}

pub(crate) const INDEXER: Table = &[
    ("model.layers.{}.self_attn.indexer.wq_b", "blk.{}.indexer.attn_q_b"),
    ("model.layers.{}.self_attn.indexer.wk", "blk.{}.indexer.attn_k"),
    ("model.layers.{}.self_attn.indexer.k_norm", "blk.{}.indexer.k_norm"),
    ("model.layers.{}.self_attn.indexer.weights_proj", "blk.{}.indexer.proj"),
];

pub(crate) fn indexer_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let number = |field| config.require_u32(&[field], "the indexer's size");
    keys.set(key::ATTENTION_INDEXER_HEAD_COUNT, number("index_n_heads")?);
    keys.set(key::ATTENTION_INDEXER_KEY_LENGTH, number("index_head_dim")?);
    keys.set(key::ATTENTION_INDEXER_TOP_K, number("index_topk")?);
    Ok(())
}
