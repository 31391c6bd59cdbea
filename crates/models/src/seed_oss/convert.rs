//! Conversion of Seed-OSS. The second norm of a layer has the name `post_attention_norm`.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, defaults, export};

const NORM: Table = &[("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm")];

pub(crate) struct SeedOss;

/// Description of [`SeedOss`].
pub(crate) static SEED_OSS: Description = Description {
    classes: &["SeedOssForCausalLM"],
    architecture: "seed_oss",
    model_type: "seed_oss",
    pre_tokenizers: &["seed-coder"],
    tensor_names: &[NORM, LLAMA_LIKE],
    required_flags: &[("attention_out_bias", false), ("mlp_bias", false)],
    ..Description::DECODER
};

impl Converter for SeedOss {
    fn description(&self) -> &'static Description {
        &SEED_OSS
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("head_dim", 128);
        config.default("rms_norm_eps", 1e-6);
        defaults::attention(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let has_bias = export::has(model, "blk.0.attn_q.bias");
        Some(exported.set("attention_bias", has_bias).set("attention_out_bias", false))
    }
}
