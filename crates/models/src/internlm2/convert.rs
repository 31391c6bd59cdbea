//! Conversion of InternLM2, whose fused QKV matrix has the rows of each KV head together.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{
    Converter, Description, Exported, MappedTensor, Mapping, VocabularyKind, hparams,
};

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

/// Fused QKV projection.
const FUSED_QKV: &str = "model.layers.{}.attention.wqkv.weight";

pub(crate) struct Internlm2;

/// Description of [`Internlm2`].
pub(crate) static INTERNLM2: Description = Description {
    classes: &["InternLM2ForCausalLM"],
    architecture: "internlm2",
    model_type: "internlm2",
    vocabulary: VocabularyKind::InternLm2,
    tensor_names: &[NAMES],
    ..Description::DECODER
};

impl Converter for Internlm2 {
    fn description(&self) -> &'static Description {
        &INTERNLM2
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)
    }

    // The rows of the QKV matrix are, for each KV head: its query heads, its key head, its value
    // head.
    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let Some(&[block]) = captures(FUSED_QKV, name).as_deref() else {
            return Ok(None);
        };
        let heads = hparams::head_count(config)?;
        let heads_kv = hparams::head_count_kv(config)?;
        let head_dim = u64::from(hparams::width(config)? / heads);
        let queries = u64::from(heads / heads_kv) * head_dim;
        let pick = |start, len| Step::Pick { groups: heads_kv.into(), start, len };
        let tensor = |part: &str, steps| MappedTensor {
            name: format!("blk.{block}.{part}.weight"),
            steps,
            slot: None,
        };
        let permute = |heads: u32| Step::InterleaveHalves { heads: heads.into() };
        Ok(Some(Mapping::Tensors(vec![
            tensor("attn_q", vec![pick(0, queries), permute(heads)]),
            tensor("attn_k", vec![pick(queries, head_dim), permute(heads_kv)]),
            tensor("attn_v", vec![pick(queries + head_dim, head_dim)]),
        ])))
    }

    // The default of `bias` is true.
    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.patterns([FUSED_QKV]).set("bias", false))
    }
}
