//! InternLM2.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{Table, captures, renamed};
use super::{Exported, Family, Made, Target};
use crate::vocab;

pub(super) struct InternLm2;

const NAMES: Table = &[
    ("model.tok_embeddings", "token_embd"),
    ("model.norm", "output_norm"),
    ("output", "output"),
    ("model.layers.{}.attention_norm", "blk.{}.attn_norm"),
    ("model.layers.{}.attention.wo", "blk.{}.attn_output"),
    ("model.layers.{}.ffn_norm", "blk.{}.ffn_norm"),
    ("model.layers.{}.feed_forward.w1", "blk.{}.ffn_gate"),
    ("model.layers.{}.feed_forward.w2", "blk.{}.ffn_down"),
    ("model.layers.{}.feed_forward.w3", "blk.{}.ffn_up"),
];

const FUSED: &str = "model.layers.{}.attention.wqkv.weight";

impl Family for InternLm2 {
    fn classes(&self) -> &'static [&'static str] {
        &["InternLM2ForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "internlm2"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::InternLm2
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
        Keys::new("internlm2", metadata).stated(config, file_type)
    }

    /// Queries, keys and values are one matrix: for each key head its queries, itself, its value.
    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error> {
        let Some(&[block]) = captures(FUSED, name).as_deref() else {
            return Ok(Target::renamed(renamed(name, &[NAMES])));
        };
        let heads = hyper::head_count(config)?;
        let heads_kv = hyper::head_count_kv(config)?;
        let head_dim = u64::from(hyper::width(config)? / heads);
        let queries = u64::from(heads / heads_kv) * head_dim;
        let pick = |start, len| Step::Pick { groups: heads_kv.into(), start, len };
        let made = |part: &str, steps| Made {
            name: format!("blk.{block}.{part}.weight"),
            steps,
            part: None,
        };
        let turned = |heads: u32| Step::InterleaveHalves { heads: heads.into() };
        Ok(Target::Made(vec![
            made("attn_q", vec![pick(0, queries), turned(heads)]),
            made("attn_k", vec![pick(queries, head_dim), turned(heads_kv)]),
            made("attn_v", vec![pick(queries + head_dim, head_dim)]),
        ]))
    }

    fn exported(&self, _model: &Model) -> Option<Exported> {
        let exported = Exported::new("InternLM2ForCausalLM", "internlm2", &[NAMES])
            .patterns([FUSED])
            // True where nothing is said.
            .set("bias", false);
        Some(exported)
    }
}
