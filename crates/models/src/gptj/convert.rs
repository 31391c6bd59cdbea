//! Conversion of GPT-J, which llama.cpp does not implement: keys follow the GGUF specification,
//! tensors are named as in phi2, which has the same layout. Q and K are in the interleaved RoPE
//! layout already.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, hparams};
use crate::gpt2::convert::FIELDS;
use crate::schema::key;

const NAMES: Table = &[
    ("transformer.wte", "token_embd"),
    ("transformer.ln_f", "output_norm"),
    ("lm_head", "output"),
    ("transformer.h.{}.ln_1", "blk.{}.attn_norm"),
    ("transformer.h.{}.attn.q_proj", "blk.{}.attn_q"),
    ("transformer.h.{}.attn.k_proj", "blk.{}.attn_k"),
    ("transformer.h.{}.attn.v_proj", "blk.{}.attn_v"),
    ("transformer.h.{}.attn.out_proj", "blk.{}.attn_output"),
    ("transformer.h.{}.mlp.fc_in", "blk.{}.ffn_up"),
    ("transformer.h.{}.mlp.fc_out", "blk.{}.ffn_down"),
];

pub(crate) struct Gptj;

/// Description of [`Gptj`].
pub(crate) static GPTJ: Description = Description {
    classes: &["GPTJForCausalLM"],
    architecture: "gptj",
    model_type: "gptj",
    pre_tokenizers: &["gpt-2"],
    tensor_names: &[NAMES],
    config_fields: &FIELDS,
    required_flags: &[("rotary", true)],
    ..Description::DECODER
};

impl Converter for Gptj {
    fn description(&self) -> &'static Description {
        &GPTJ
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let embedding_length = hparams::width(config)?;
        let rotary_dims = config.require_u32(&["rotary_dim"], "the rotary dimensions of a head")?;
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, embedding_length);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::inner_width(config, embedding_length)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
        keys.file_type();
        Ok(())
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.fields(&[("rope.dimension_count", "rotary_dim")]))
    }
}
