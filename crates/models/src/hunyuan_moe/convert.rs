//! Hunyuan, dense, and what sees with it: norms of queries and keys, positions stretched by their base.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::count;
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, hparams, moe};
use crate::hunyuan_dense::convert::{NORMS, export, stretched};
use crate::schema::key;

const ROUTED: Table = &[
    ("model.layers.{}.mlp.gate.wg", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_mlp.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_mlp.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_mlp.down_proj", "blk.{}.ffn_down_shexp"),
];

/// Keys of experts, and the fields that say it for every layer.
const OF_LAYERS: [(&str, &str); 3] = [
    ("expert_feed_forward_length", "moe_intermediate_size"),
    ("expert_used_count", "moe_topk"),
    ("expert_shared_count", "num_shared_expert"),
];

/// Hunyuan with experts, the first: beside those that a router chooses there is one of full width.
pub(crate) struct HunyuanMoe;

/// Description of [`HunyuanMoe`].
pub(crate) static HUNYUAN_MOE: Description = Description {
    classes: &["HunYuanMoEV1ForCausalLM"],
    architecture: "hunyuan-moe",
    model_type: "hunyuan_v1_moe",
    vocabulary: VocabularyKind::HunyuanMoe,
    pre_tokenizers: &["hunyuan"],
    tensor_names: &[NORMS, ROUTED, LLAMA_LIKE],
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for HunyuanMoe {
    fn description(&self) -> &'static Description {
        &HUNYUAN_MOE
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        for (key, field) in OF_LAYERS {
            keys.set(key, of_all_layers(config, field)?);
        }
        stretched(config, keys, 1000.0)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let tied = config.bool("tie_word_embeddings")?.unwrap_or(false);
        if tied && name == "lm_head.weight" {
            return Ok(Some(Mapping::Dropped));
        }
        moe::mapping(config, name, || of_all_layers(config, OF_LAYERS[0].1))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16) as usize;
        let mut exported = export(model, exported)?.patterns(moe::one_by_one()).without(&[
            key::EXPERT_FEED_FORWARD_LENGTH,
            key::EXPERT_USED_COUNT,
            key::EXPERT_SHARED_COUNT,
        ]);
        for (key, field) in OF_LAYERS {
            exported = exported.set_some(field, count(model, key).map(|of| vec![of; blocks]));
        }
        Some(exported)
    }
}

/// The number in a list of one for each layer, which must be the same for all.
fn of_all_layers(config: &Config, field: &str) -> Result<u32, Error> {
    let numbers = match config.find(&[field]) {
        Some((_, Value::Array(_))) => config.u32s(field)?.unwrap_or_default(),
        _ => vec![config.require_u32(&[field], "a number of every layer")?],
    };
    match numbers[..] {
        [first, ref others @ ..] if others.iter().all(|other| *other == first) => Ok(first),
        _ => Err(hparams::not_computed(config, field, format!("{numbers:?}"))),
    }
}
