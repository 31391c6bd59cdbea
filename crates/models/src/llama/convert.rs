//! Conversion of Llama, Mistral, Mixtral and classes of the same form. The rows of Q and K are
//! permuted for interleaved RoPE. A Llama checkpoint with one layer and a draft vocabulary is an
//! EAGLE-3 draft model.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, VocabularyKind, hparams, moe, rope,
    sliding_window, steps,
};
use crate::eagle3;
use crate::schema::key;

/// Class of Mixtral.
const MIXTRAL: &str = "MixtralForCausalLM";

/// Class of a vision-language model whose config.json lacks the number of heads.
const SMOL_VLM: &str = "VLlama3ForCausalLM";

/// Class of a vision-language model with a vision norm without a prefix.
const SARASHINA: &str = "Sarashina2VisionForCausalLM";

/// Class of an audio-language model whose config.json lacks the head size.
const VOXTRAL: &str = "VoxtralForConditionalGeneration";

/// Router of Mixtral, as older and newer versions of `transformers` name it.
pub(crate) const ROUTER_NAMES: Table = &[
    ("model.layers.{}.block_sparse_moe.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
];

/// Matrices of an expert of Mixtral, and their stacked GGUF tensors.
const EXPERTS: [(&str, &str); 3] = [
    ("model.layers.{}.block_sparse_moe.experts.{}.w1.weight", "ffn_gate_exps"),
    ("model.layers.{}.block_sparse_moe.experts.{}.w2.weight", "ffn_down_exps"),
    ("model.layers.{}.block_sparse_moe.experts.{}.w3.weight", "ffn_up_exps"),
];

pub(crate) struct Llama;

/// Description of [`Llama`].
pub(crate) static LLAMA: Description = Description {
    classes: &[
        "LlamaForCausalLM",
        "LLaMAForCausalLM",
        "LlamaModel",
        "MistralForCausalLM",
        "MistralModel",
        MIXTRAL,
        "MixtralModel",
        "IQuestCoderForCausalLM",
        "JanusForConditionalGeneration",
        "LlavaForConditionalGeneration",
        SARASHINA,
        SMOL_VLM,
        VOXTRAL,
    ],
    architecture: "llama",
    model_type: "llama",
    vocabulary: VocabularyKind::Llama,
    pre_tokenizers: &["llama-bpe", "smaug-bpe", "smollm"],
    tensor_names: &[LLAMA_LIKE, ROUTER_NAMES],
    config_fields: &[(key::EXPERT_COUNT, "num_local_experts")],
    ..Description::DECODER
};

impl Converter for Llama {
    fn description(&self) -> &'static Description {
        &LLAMA
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        // Classes whose config.json leaves a field to the defaults of the class.
        match config.class()? {
            SMOL_VLM => config.default("num_attention_heads", 32),
            VOXTRAL => config.default("head_dim", 128),
            _ => {}
        }
        Ok(())
    }

    fn variant(&self, config: &Config) -> Option<&'static dyn Converter> {
        let is_draft = config.find(&[eagle3::convert::DRAFT_VOCAB_SIZE]).is_some()
            && matches!(hparams::block_count(config), Ok(1));
        is_draft.then_some(&eagle3::convert::Eagle3)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        // `transformers` sets `head_dim` in the configurations of Llama and Mistral, so llama.cpp's
        // converter writes it; for these classes it writes only a stated value.
        let head_dim = match config.class()? {
            MIXTRAL | "MixtralModel" | "IQuestCoderForCausalLM" | SARASHINA | SMOL_VLM => {
                hparams::stated_head_dim(config)?
            }
            _ => Some(hparams::head_dim(config)?),
        };
        keys.llama_like(config, head_dim)?;
        sliding_window::unexpected(keys, config, window(config)?)
    }

    // A norm of the vision encoder, without a prefix.
    fn skip_tensor(&self, config: &Config, name: &str) -> bool {
        name.starts_with("norm.") && config.class().is_ok_and(|class| class == SARASHINA)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        match map_mixtral_expert(config, name)? {
            Some(mapping) => Ok(Some(mapping)),
            None => moe::mapping(config, name, || hparams::feed_forward(config)),
        }
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let has_key = |key| model.metadata().get(key).is_some();
        let exported = exported.patterns(mixtral_expert_patterns());
        Some(if has_key("llama.expert_count") {
            exported.class(MIXTRAL, "mixtral")
        } else if has_key("llama.attention.sliding_window") {
            exported.class("MistralForCausalLM", "mistral")
        } else {
            exported
        })
    }
}

/// Returns the sliding window of Mistral classes. Mistral 7B has one in all layers.
fn window(config: &Config) -> Result<Option<u32>, Error> {
    let class = config.class()?;
    match config.json().get("sliding_window") {
        None if class.starts_with("Mistral") => Ok(Some(4096)),
        Some(_) if class.starts_with("Mi") => config.u32(&["sliding_window"]),
        _ => Ok(None),
    }
}

/// Maps a matrix of an expert with Mixtral's names.
pub(crate) fn map_mixtral_expert(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    moe::one_of(&EXPERTS, name, || {
        config.require_u32(&["num_local_experts"], "the number of experts")
    })
}

/// Returns Mixtral's name patterns of expert matrices.
pub(crate) fn mixtral_expert_patterns() -> [&'static str; 3] {
    EXPERTS.map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::convert::ExpertSlot;

    #[test]
    fn experts_are_stacked_in_one_tensor() {
        let config = Config::of(json!({"num_local_experts": 8}));
        let mapping = (&Llama as &dyn Converter)
            .mapping(&config, "model.layers.3.block_sparse_moe.experts.5.w2.weight")
            .unwrap();
        let name = "blk.3.ffn_down_exps.weight".to_owned();
        assert_eq!(mapping, Mapping::slot(name, ExpertSlot { index: 5, count: 8 }));
    }

    #[test]
    fn llama3_scaling_divides_low_frequencies() {
        let config = Config::of(json!({
            "head_dim": 128, "rope_theta": 500000.0,
            "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
        }));
        let computed = Llama.extra_tensors(&config).unwrap();
        let [(name, factors)] = &computed[..] else { panic!("one tensor") };
        assert_eq!(name, "rope_freqs.weight");
        assert_eq!(factors.len(), 64);
        assert_eq!((factors[0], factors[63]), (1.0, 8.0));
        assert!(factors.is_sorted());
    }
}
