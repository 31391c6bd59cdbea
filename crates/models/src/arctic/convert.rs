//! Conversion of `ArcticForCausalLM`: the residual FFN becomes the dense FFN, and the norm of the
//! MoE `ffn_norm_exps`. Query and key rows are permuted to the interleaved RoPE layout.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, hparams, steps};
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

/// Description of [`Arctic`].
pub(crate) static ARCTIC: Description = Description {
    classes: &["ArcticForCausalLM"],
    architecture: "arctic",
    model_type: "arctic",
    vocabulary: VocabularyKind::Arctic,
    tensor_names: &[NAMES, LLAMA_LIKE],
    config_fields: &[(key::EXPERT_COUNT, "num_local_experts")],
    ..Description::DECODER
};

impl Converter for Arctic {
    fn description(&self) -> &'static Description {
        &ARCTIC
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
        llama::convert::map_mixtral_expert(config, name)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.patterns(llama::convert::mixtral_expert_patterns()))
    }
}
