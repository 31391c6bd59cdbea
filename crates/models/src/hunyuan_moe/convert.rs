//! Conversion of Hunyuan-A13B: config.json states expert sizes per layer, the keys hold one value
//! for all.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, hparams, moe};
use crate::hunyuan_dense::convert::{QK_NORMS, export, ntk_keys};
use crate::schema::key;

/// Router and shared expert.
const MOE_NAMES: Table = &[
    ("model.layers.{}.mlp.gate.wg", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_mlp.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_mlp.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_mlp.down_proj", "blk.{}.ffn_down_shexp"),
];

/// Keys of experts, and their config.json fields, which have one value per layer.
const PER_LAYER: [(&str, &str); 3] = [
    ("expert_feed_forward_length", "moe_intermediate_size"),
    ("expert_used_count", "moe_topk"),
    ("expert_shared_count", "num_shared_expert"),
];

pub(crate) struct HunyuanMoe;

/// Description of [`HunyuanMoe`].
pub(crate) static HUNYUAN_MOE: Description = Description {
    classes: &["HunYuanMoEV1ForCausalLM"],
    architecture: "hunyuan-moe",
    model_type: "hunyuan_v1_moe",
    vocabulary: VocabularyKind::HunyuanMoe,
    pre_tokenizers: &["hunyuan"],
    tensor_names: &[QK_NORMS, MOE_NAMES, LLAMA_LIKE],
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
        for (key, field) in PER_LAYER {
            keys.set(key, same_in_all_layers(config, field)?);
        }
        ntk_keys(config, keys, 1000.0)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let tied = config.bool("tie_word_embeddings")?.unwrap_or(false);
        if tied && name == "lm_head.weight" {
            return Ok(Some(Mapping::Dropped));
        }
        moe::mapping(config, name, || same_in_all_layers(config, PER_LAYER[0].1))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16) as usize;
        let mut exported = export(model, exported)?.patterns(moe::one_by_one()).without(&[
            key::EXPERT_FEED_FORWARD_LENGTH,
            key::EXPERT_USED_COUNT,
            key::EXPERT_SHARED_COUNT,
        ]);
        for (key, field) in PER_LAYER {
            exported = exported.set_some(field, count(model, key).map(|value| vec![value; blocks]));
        }
        Some(exported)
    }
}

/// Returns the value of a field with one value per layer, which must be equal in all layers.
fn same_in_all_layers(config: &Config, field: &str) -> Result<u32, Error> {
    let values = match config.find(&[field]) {
        Some((_, Value::Array(_))) => config.u32s(field)?.unwrap_or_default(),
        _ => vec![config.require_u32(&[field], "one value per layer")?],
    };
    match values[..] {
        [first, ref others @ ..] if others.iter().all(|other| *other == first) => Ok(first),
        _ => Err(hparams::not_computed(config, field, format!("{values:?}"))),
    }
}
