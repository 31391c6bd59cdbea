//! Seed-OSS: as llama without its order of rows; the second norm has another name.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Exported, export, hparams};

const NORM: Table = &[("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm")];

pub(crate) struct SeedOss;

impl Converter for SeedOss {
    fn classes(&self) -> &'static [&'static str] {
        &["SeedOssForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "seed_oss"
    }

    fn model_type(&self) -> &'static str {
        "seed_oss"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["seed-coder"]
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[NORM, LLAMA_LIKE]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("attention_out_bias", false), ("mlp_bias", false)]
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("head_dim", 128);
        config.default("rms_norm_eps", 1e-6);
        hparams::default_attention(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let has_bias = export::has(model, "blk.0.attn_q.bias");
        Some(exported.set("attention_bias", has_bias).set("attention_out_bias", false))
    }
}
