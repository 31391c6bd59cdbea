//! Conversion of `CogVLMForCausalLM`: language expert weights become the usual tensors, vision
//! expert weights `vis_*`. The vision encoder is converted to an mmproj file.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Mapping, VocabularyKind, hparams};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.language_expert_query_key_value", "blk.{}.attn_qkv"),
    ("model.layers.{}.self_attn.language_expert_dense", "blk.{}.attn_output"),
    ("model.layers.{}.mlp.language_mlp.gate_proj", "blk.{}.ffn_gate"),
    ("model.layers.{}.mlp.language_mlp.up_proj", "blk.{}.ffn_up"),
    ("model.layers.{}.mlp.language_mlp.down_proj", "blk.{}.ffn_down"),
    ("model.layers.{}.self_attn.vision_expert_query_key_value", "blk.{}.vis_attn_qkv"),
    ("model.layers.{}.self_attn.vision_expert_dense", "blk.{}.vis_attn_output"),
    ("model.layers.{}.mlp.vision_mlp.gate_proj", "blk.{}.vis_gate"),
    ("model.layers.{}.mlp.vision_mlp.up_proj", "blk.{}.vis_up"),
    ("model.layers.{}.mlp.vision_mlp.down_proj", "blk.{}.vis_down"),
];

pub(crate) struct Cogvlm;

/// Description of [`Cogvlm`].
pub(crate) static COGVLM: Description = Description {
    classes: &["CogVLMForCausalLM"],
    architecture: "cogvlm",
    model_type: "cogvlm",
    vocabulary: VocabularyKind::Llama,
    pre_tokenizers: &["llama-bpe"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    ..Description::DECODER
};

impl Converter for Cogvlm {
    fn description(&self) -> &'static Description {
        &COGVLM
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        Ok(())
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Ok(name.starts_with("model.vision.").then_some(Mapping::Unknown))
    }
}
