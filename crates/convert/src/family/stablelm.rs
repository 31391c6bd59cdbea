//! StableLM.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, captures, renamed};
use super::{Exported, Family, Made, Part, Target, exported};
use crate::vocab;

pub(super) struct StableLm;

/// The norms of single heads, which only the larger models have: foreign name of one, our name of
/// all.
const HEAD_NORMS: [(&str, &str); 2] = [
    ("model.layers.{}.self_attn.q_layernorm.norms.{}.weight", "attn_q_norm"),
    ("model.layers.{}.self_attn.k_layernorm.norms.{}.weight", "attn_k_norm"),
];

/// Heads for which names are made at most: more than any model has.
const MOST_HEADS: u64 = 1024;

impl Family for StableLm {
    fn classes(&self) -> &'static [&'static str] {
        &["StableLmForCausalLM", "StableLMEpochForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "stablelm"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Bpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["stablelm2", "gpt-2"]
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let head_dim = hyper::width(config)? / hyper::head_count(config)?;
        // The class in `transformers` has one residual after the other where nothing is said; the
        // models' own class, from before, has them in parallel.
        let parallel = config.class()? != self.classes()[0];
        let mut keys = Keys::new("stablelm", metadata);
        keys.set("context_length", hyper::context_length(config)?);
        keys.set("embedding_length", hyper::width(config)?);
        keys.set("block_count", hyper::block_count(config)?);
        keys.set("feed_forward_length", hyper::feed_forward(config)?);
        keys.set("rope.dimension_count", hyper::rotated_dims(config, head_dim, 0.25)?);
        keys.set("attention.head_count", hyper::head_count(config)?);
        keys.set("attention.head_count_kv", hyper::head_count_kv(config)?);
        let parallel = config.bool("use_parallel_residual")?.unwrap_or(parallel);
        keys.set("use_parallel_residual", parallel);
        let epsilon = config.f32(&["layer_norm_eps", "norm_eps"])?.unwrap_or(1e-5);
        keys.set("attention.layer_norm_epsilon", epsilon);
        keys.file_type(file_type);
        keys.unusual_rope_base(config)
    }

    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error> {
        for (foreign, ours) in HEAD_NORMS {
            if let Some(&[block, index]) = captures(foreign, name).as_deref() {
                let count = match ours {
                    "attn_q_norm" => hyper::head_count(config)?,
                    _ => hyper::head_count_kv(config)?,
                };
                return Ok(Target::Made(vec![Made {
                    name: format!("blk.{block}.{ours}.weight"),
                    steps: Vec::new(),
                    part: Some(Part { index, count }),
                }]));
            }
        }
        Ok(Target::renamed(renamed(name, &[LLAMA_LIKE])))
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        let index = model.index();
        // The second number in a name is that of the head, not of an expert.
        let head_norms = HEAD_NORMS.iter().flat_map(|(name, ours)| {
            let norms = index.get(&*format!("blk.0.{ours}.weight"));
            let heads = norms.and_then(|norms| norms.info.shape.last().copied()).unwrap_or(0);
            (0..heads.min(MOST_HEADS))
                .map(|head| name.replace(".norms.{}", &format!(".norms.{head}")))
        });
        let head_norms: Vec<String> = head_norms.collect();
        let exported = Exported::new("StableLmForCausalLM", "stablelm", &[])
            .patterns(head_norms.iter().map(String::as_str))
            .tables(&[LLAMA_LIKE])
            .fields(&[
                ("attention.layer_norm_epsilon", "layer_norm_eps"),
                ("use_parallel_residual", "use_parallel_residual"),
            ])
            .set_some("partial_rotary_factor", exported::rotated_share(model))
            .set("use_qkv_bias", exported::has(model, "blk.0.attn_q.bias"))
            .set("qk_layernorm", index.contains_key("blk.0.attn_q_norm.weight"));
        Some(exported)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn norms_of_heads_are_parts_of_one_tensor() {
        let config = Config::of(json!({"num_attention_heads": 32, "num_key_value_heads": 8}));
        let norm = "model.layers.3.self_attn.k_layernorm.norms.5.weight";
        let part = Some(Part { index: 5, count: 8 });
        let name = "blk.3.attn_k_norm.weight".to_owned();
        let made = vec![Made { name, steps: Vec::new(), part }];
        assert_eq!(StableLm.tensor(&config, norm).unwrap(), Target::Made(made));
    }
}
