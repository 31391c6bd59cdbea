//! Conversion of `ExaoneForCausalLM`, which has the tensor names of GPT-2 and calls the RMS epsilon
//! `layer_norm_epsilon`.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, ExtraTensors, defaults, hparams, rope};
use crate::schema::key;

const NAMES: Table = &[
    ("transformer.wte", "token_embd"),
    ("transformer.ln_f", "output_norm"),
    ("lm_head", "output"),
    ("transformer.h.{}.ln_1", "blk.{}.attn_norm"),
    ("transformer.h.{}.attn.attention.q_proj", "blk.{}.attn_q"),
    ("transformer.h.{}.attn.attention.k_proj", "blk.{}.attn_k"),
    ("transformer.h.{}.attn.attention.v_proj", "blk.{}.attn_v"),
    ("transformer.h.{}.attn.attention.out_proj", "blk.{}.attn_output"),
    ("transformer.h.{}.ln_2", "blk.{}.ffn_norm"),
    ("transformer.h.{}.mlp.c_fc_0", "blk.{}.ffn_gate"),
    ("transformer.h.{}.mlp.c_fc_1", "blk.{}.ffn_up"),
    ("transformer.h.{}.mlp.c_proj", "blk.{}.ffn_down"),
];

const EPSILON: &str = "layer_norm_epsilon";

const RMS_EPSILON: &str = "attention.layer_norm_rms_epsilon";

pub(crate) struct Exaone;

/// Description of [`Exaone`].
pub(crate) static EXAONE: Description = Description {
    classes: &["ExaoneForCausalLM"],
    architecture: "exaone",
    model_type: "exaone",
    pre_tokenizers: &["exaone"],
    tensor_names: &[NAMES],
    config_fields: &[(RMS_EPSILON, EPSILON)],
    ..Description::DECODER
};

impl Converter for Exaone {
    fn description(&self) -> &'static Description {
        &EXAONE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default(EPSILON, 1e-5);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        let head_dim = hparams::width(config)? / hparams::head_count(config)?.max(1);
        keys.set(key::ROPE_DIMENSION_COUNT, rope::rotated_dims(config, head_dim, 1.0)?);
        // The norms are RMS norms.
        keys.set(RMS_EPSILON, hparams::layer_norm_epsilon(config)?);
        Ok(())
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }
}
