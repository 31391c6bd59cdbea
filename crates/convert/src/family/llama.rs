//! Llama, Mistral and Mixtral: one architecture, `llama`.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, captures, renamed};
use super::{Exported, Family, Made, Part, Target, experts};
use crate::vocab;

pub(super) struct Llama;

const MIXTRAL: &str = "MixtralForCausalLM";

/// What Mixtral has in place of a single feed-forward network; the second name is that of newer
/// versions of `transformers`.
const MIXTURE: Table = &[
    ("model.layers.{}.block_sparse_moe.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
];

/// Each expert's matrices: foreign name of one, our name of all.
const EXPERTS: [(&str, &str); 3] = [
    ("model.layers.{}.block_sparse_moe.experts.{}.w1.weight", "ffn_gate_exps"),
    ("model.layers.{}.block_sparse_moe.experts.{}.w2.weight", "ffn_down_exps"),
    ("model.layers.{}.block_sparse_moe.experts.{}.w3.weight", "ffn_up_exps"),
];

impl Family for Llama {
    fn classes(&self) -> &'static [&'static str] {
        &["LlamaForCausalLM", "LLaMAForCausalLM", "MistralForCausalLM", MIXTRAL]
    }

    fn architecture(&self) -> &'static str {
        "llama"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Llama
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["llama-bpe", "smaug-bpe", "smollm"]
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        // `transformers` completes the configuration of Llama and Mistral with the width of a
        // head, so the official converter writes it; for Mixtral it only writes what is stated.
        let head_dim = match config.class()? {
            MIXTRAL => hyper::stated_head_dim(config)?,
            _ => Some(hyper::head_dim(config)?),
        };
        let mut keys = Keys::new("llama", metadata);
        keys.decoder(config, head_dim, file_type)?;
        keys.set("vocab_size", config.require_u32(&["vocab_size"], "the number of tokens")?);
        keys.set("rope.dimension_count", hyper::head_dim(config)?);
        Ok(())
    }

    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error> {
        for (foreign, ours) in EXPERTS {
            if let Some(&[block, index]) = captures(foreign, name).as_deref() {
                let count = config.require_u32(&["num_local_experts"], "the number of experts")?;
                return Ok(Target::Made(vec![Made {
                    name: format!("blk.{block}.{ours}.weight"),
                    steps: Vec::new(),
                    part: Some(Part { index, count }),
                }]));
            }
        }
        if let Some(target) = experts::target(config, name, || hyper::feed_forward(config))? {
            return Ok(target);
        }
        hyper::llama_order(config, renamed(name, &[LLAMA_LIKE, MIXTURE]))
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        let states = |key| model.metadata().get(key).is_some();
        let (class, model_type) = if states("llama.expert_count") {
            (MIXTRAL, "mixtral")
        } else if states("llama.attention.sliding_window") {
            ("MistralForCausalLM", "mistral")
        } else {
            ("LlamaForCausalLM", "llama")
        };
        let exported = Exported::new(class, model_type, &[LLAMA_LIKE, MIXTURE])
            .patterns(EXPERTS.map(|(name, _)| name))
            .fields(&[("expert_count", "num_local_experts")]);
        Some(exported)
    }

    fn computed(&self, config: &Config) -> Result<Vec<(String, Vec<f32>)>, Error> {
        hyper::rope_freqs(config)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn experts_are_parts_of_one_tensor() {
        let config = Config::of(json!({"num_local_experts": 8}));
        let target =
            Llama.tensor(&config, "model.layers.3.block_sparse_moe.experts.5.w2.weight").unwrap();
        let name = "blk.3.ffn_down_exps.weight".to_owned();
        let part = Some(Part { index: 5, count: 8 });
        assert_eq!(target, Target::Made(vec![Made { name, steps: Vec::new(), part }]));
    }

    #[test]
    fn long_wavelengths_are_divided() {
        let config = Config::of(json!({
            "head_dim": 128, "rope_theta": 500000.0,
            "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
        }));
        let computed = Llama.computed(&config).unwrap();
        let [(name, factors)] = &computed[..] else { panic!("one tensor") };
        assert_eq!(name, "rope_freqs.weight");
        assert_eq!(factors.len(), 64);
        assert_eq!((factors[0], factors[63]), (1.0, 8.0));
        assert!(factors.is_sorted());
    }
}
