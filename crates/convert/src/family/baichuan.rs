//! Baichuan 1 and 2.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, captures, renamed};
use super::{Exported, Family, Made, Target};
use crate::vocab;

pub(super) struct Baichuan;

const FUSED: &str = "model.layers.{}.self_attn.W_pack.weight";

impl Family for Baichuan {
    fn classes(&self) -> &'static [&'static str] {
        &["BaichuanForCausalLM", "BaiChuanForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "baichuan"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::SentencePiece
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &[]
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new("baichuan", metadata);
        keys.stated(config, file_type)?;
        keys.set("tensor_data_layout", "Meta AI original pth");
        let head_dim = hyper::width(config)? / hyper::head_count(config)?;
        keys.set("rope.dimension_count", head_dim);
        Ok(())
    }

    /// Queries, keys and values are one matrix, one after the other, as many heads of each.
    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error> {
        let Some(&[block]) = captures(FUSED, name).as_deref() else {
            return Ok(Target::renamed(renamed(name, &[LLAMA_LIKE])));
        };
        let heads = u64::from(hyper::head_count(config)?);
        let width = u64::from(hyper::width(config)?);
        let made = |part: &str, index: u64, heads: Option<u64>| {
            let mut steps = vec![Step::Pick { groups: 1, start: index * width, len: width }];
            steps.extend(heads.map(|heads| Step::InterleaveHalves { heads }));
            Made { name: format!("blk.{block}.{part}.weight"), steps, part: None }
        };
        Ok(Target::Made(vec![
            made("attn_q", 0, Some(heads)),
            made("attn_k", 1, Some(heads)),
            made("attn_v", 2, None),
        ]))
    }

    fn exported(&self, _model: &Model) -> Option<Exported> {
        let exported = Exported::new("BaichuanForCausalLM", "baichuan", &[])
            .patterns([FUSED])
            .tables(&[LLAMA_LIKE])
            // The sizes have different names for it.
            .fields(&[
                ("context_length", "max_position_embeddings"),
                ("context_length", "model_max_length"),
            ]);
        Some(exported)
    }
}
