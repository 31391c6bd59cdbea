//! Conversion of `DeepseekV32ForCausalLM`: `deepseek2` with an indexer, and with multi-token
//! prediction layers counted in `block_count`.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, moe, mtp};
use crate::deepseek2;
use crate::deepseek2::convert::{
    DEEPSEEK2, Deepseek2, MLA_NAMES, complete_sigmoid_router, export_mla_with_mtp,
    map_mla_tensor_with_mtp, mtp_keys,
};
use crate::schema::key;

pub(crate) struct Deepseek32;

/// Description of [`Deepseek32`].
pub(crate) static DEEPSEEK32: Description = Description {
    classes: &["DeepseekV32ForCausalLM"],
    architecture: "deepseek32",
    model_type: "deepseek_v32",
    tensor_names: &[MLA_NAMES, INDEXER, mtp::NAMES, moe::BESIDE_SHARED, LLAMA_LIKE],
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
        complete_sigmoid_router(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        deepseek2::convert::mla_keys(config, keys)?;
        mtp_keys(config, keys, false)?;
        indexer_keys(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        map_mla_tensor_with_mtp(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export_mla_with_mtp(model, exported)
    }
}

pub(crate) const INDEXER: Table = &[
    ("model.layers.{}.self_attn.indexer.wq_b", "blk.{}.indexer.attn_q_b"),
    ("model.layers.{}.self_attn.indexer.wk", "blk.{}.indexer.attn_k"),
    ("model.layers.{}.self_attn.indexer.k_norm", "blk.{}.indexer.k_norm"),
    ("model.layers.{}.self_attn.indexer.weights_proj", "blk.{}.indexer.proj"),
];

pub(crate) fn indexer_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let size = |field| config.require_u32(&[field], "a size of the indexer");
    keys.set(key::ATTENTION_INDEXER_HEAD_COUNT, size("index_n_heads")?);
    keys.set(key::ATTENTION_INDEXER_KEY_LENGTH, size("index_head_dim")?);
    keys.set(key::ATTENTION_INDEXER_TOP_K, size("index_topk")?);
    Ok(())
}
