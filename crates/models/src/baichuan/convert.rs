//! Conversion of `BaichuanForCausalLM`: the fused projection `W_pack` is split into query, key and
//! value, and query and key rows are permuted to the interleaved RoPE layout.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::captures;
use crate::convert::{
    Converter, Description, Exported, MappedTensor, Mapping, VocabularyKind, hparams,
};
use crate::schema::key;

const W_PACK: &str = "model.layers.{}.self_attn.W_pack.weight";

pub(crate) struct Baichuan;

/// Description of [`Baichuan`].
pub(crate) static BAICHUAN: Description = Description {
    classes: &["BaichuanForCausalLM", "BaiChuanForCausalLM"],
    architecture: "baichuan",
    model_type: "baichuan",
    vocabulary: VocabularyKind::SentencePiece,
    config_fields: &[
        // The 7B and the 13B model name the context length differently.
        (key::CONTEXT_LENGTH, "max_position_embeddings"),
        (key::CONTEXT_LENGTH, "model_max_length"),
    ],
    ..Description::DECODER
};

impl Converter for Baichuan {
    fn description(&self) -> &'static Description {
        &BAICHUAN
    }

    // The class ignores `num_key_value_heads`: its attention is multi-head.
    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        if config.find(&["num_key_value_heads"]).is_some() {
            config.set("num_key_value_heads", hparams::head_count(config)?);
        }
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::TENSOR_DATA_LAYOUT, "Meta AI original pth");
        let head_dim = hparams::width(config)? / hparams::head_count(config)?;
        keys.set(key::ROPE_DIMENSION_COUNT, head_dim);
        Ok(())
    }

    // `W_pack` holds all query rows, then all key rows, then all value rows.
    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let Some(&[block]) = captures(W_PACK, name).as_deref() else {
            return Ok(None);
        };
        let heads = u64::from(hparams::head_count(config)?);
        let width = u64::from(hparams::width(config)?);
        let slice = |part: &str, index: u64, heads: Option<u64>| {
            let mut steps = vec![Step::Pick { groups: 1, start: index * width, len: width }];
            steps.extend(heads.map(|heads| Step::InterleaveHalves { heads }));
            MappedTensor { name: format!("blk.{block}.{part}.weight"), steps, slot: None }
        };
        Ok(Some(Mapping::Tensors(vec![
            slice("attn_q", 0, Some(heads)),
            slice("attn_k", 1, Some(heads)),
            slice("attn_v", 2, None),
        ])))
    }

    fn export(&self, _model: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.first([W_PACK]))
    }
}
