//! Arctic: a dense network beside experts, each behind a norm of its own.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Exported, Mapping, VocabularyKind, hparams};
use crate::llama;
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.residual_layernorm", "blk.{}.ffn_norm"),
    ("model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm_exps"),
    ("model.layers.{}.residual_mlp.w1", "blk.{}.ffn_gate"),
    ("model.layers.{}.residual_mlp.w2", "blk.{}.ffn_down"),
    ("model.layers.{}.residual_mlp.w3", "blk.{}.ffn_up"),
    ("model.layers.{}.block_sparse_moe.gate", "blk.{}.ffn_gate_inp"),
];

pub(crate) struct Arctic;

impl Converter for Arctic {
    fn classes(&self) -> &'static [&'static str] {
        &["ArcticForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "arctic"
    }

    fn model_type(&self) -> &'static str {
        "arctic"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::Arctic
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[NAMES, LLAMA_LIKE]
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[(key::EXPERT_COUNT, "num_local_experts")]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        keys.set(
            key::ROPE_DIMENSION_COUNT,
            hparams::width(config)? / hparams::head_count(config)?.max(1),
        );
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        llama::convert::experts_of_mixtral(config, name)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        hparams::llama_order(config, name)
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.patterns(llama::convert::patterns_of_mixtral()))
    }
}
