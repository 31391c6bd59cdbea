//! Baichuan 1 and 2.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::captures;
use super::{Exported, Family, MappedTensor, Mapping};
use crate::vocab;

const FUSED: &str = "model.layers.{}.self_attn.W_pack.weight";

pub(super) static BAICHUAN: Family = Family {
    classes: &["BaichuanForCausalLM", "BaiChuanForCausalLM"],
    architecture: "baichuan",
    model_type: "baichuan",
    vocabulary: vocab::Kind::SentencePiece,
    fields: &[
        // The sizes have different names for it.
        ("context_length", "max_position_embeddings"),
        ("context_length", "model_max_length"),
    ],
    complete,
    keys,
    special,
    export,
    ..Family::DEFAULT
};

/// The class does not look at the number of key and value heads: there are as many as heads.
fn complete(config: &mut Config) -> Result<(), Error> {
    if config.find(&["num_key_value_heads"]).is_some() {
        config.set("num_key_value_heads", hyper::head_count(config)?);
    }
    Ok(())
}

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set("tensor_data_layout", "Meta AI original pth");
    let head_dim = hyper::width(config)? / hyper::head_count(config)?;
    keys.set("rope.dimension_count", head_dim);
    Ok(())
}

/// Queries, keys and values are one matrix, one after the other, as many heads of each.
fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let Some(&[block]) = captures(FUSED, name).as_deref() else {
        return Ok(None);
    };
    let heads = u64::from(hyper::head_count(config)?);
    let width = u64::from(hyper::width(config)?);
    let made = |part: &str, index: u64, heads: Option<u64>| {
        let mut steps = vec![Step::Pick { groups: 1, start: index * width, len: width }];
        steps.extend(heads.map(|heads| Step::InterleaveHalves { heads }));
        MappedTensor { name: format!("blk.{block}.{part}.weight"), steps, slot: None }
    };
    Ok(Some(Mapping::Made(vec![
        made("attn_q", 0, Some(heads)),
        made("attn_k", 1, Some(heads)),
        made("attn_v", 2, None),
    ])))
}

fn export(_model: &Model, exported: Exported) -> Option<Exported> {
    Some(exported.first([FUSED]))
}
