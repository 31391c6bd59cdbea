//! Llama, Mistral and Mixtral: one architecture, `llama`.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, VocabularyKind, hparams, moe,
    sliding_window,
};
use crate::schema::key;
use crate::{eagle3, llama};

const MIXTRAL: &str = "MixtralForCausalLM";

const SMOL_VLM: &str = "VLlama3ForCausalLM";

const SARASHINA: &str = "Sarashina2VisionForCausalLM";

const VOXTRAL: &str = "VoxtralForConditionalGeneration";

/// What Mixtral has in place of a single feed-forward network; the second name is that of newer
/// versions of `transformers`.
pub(crate) const EXPERT_NAMES: Table = &[
    ("model.layers.{}.block_sparse_moe.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
];

/// Each expert's matrices: foreign name of one, our name of all.
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
    tensor_names: &[LLAMA_LIKE, EXPERT_NAMES],
    config_fields: &[(key::EXPERT_COUNT, "num_local_experts")],
    ..Description::DECODER
};

impl Converter for Llama {
    fn description(&self) -> &'static Description {
        &LLAMA
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        // Configurations of these leave it out.
        match config.class()? {
            SMOL_VLM => config.default("num_attention_heads", 32),
            VOXTRAL => config.default("head_dim", 128),
            _ => {}
        }
        Ok(())
    }

    fn variant(&self, config: &Config) -> Option<&'static dyn Converter> {
        llama::eagle3::is_meant(config).then_some(&eagle3::convert::Eagle3)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        // `transformers` completes the configuration of Llama and Mistral with the width of a
        // head, so llama.cpp's converter writes it; for Mixtral it only writes what is stated.
        let head_dim = match config.class()? {
            MIXTRAL | "MixtralModel" | "IQuestCoderForCausalLM" | SARASHINA | SMOL_VLM => {
                hparams::stated_head_dim(config)?
            }
            _ => Some(hparams::head_dim(config)?),
        };
        keys.llama_like(config, head_dim)?;
        sliding_window::unexpected(keys, config, window(config)?)
    }

    // A norm of the encoder of images, without a prefix.
    fn skip_tensor(&self, config: &Config, name: &str) -> bool {
        name.starts_with("norm.") && config.class().is_ok_and(|class| class == SARASHINA)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        match experts_of_mixtral(config, name)? {
            Some(mapping) => Ok(Some(mapping)),
            None => moe::mapping(config, name, || hparams::feed_forward(config)),
        }
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        hparams::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        hparams::rope_freqs(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let states = |key| model.metadata().get(key).is_some();
        let exported = exported.patterns(patterns_of_mixtral());
        Some(if states("llama.expert_count") {
            exported.class(MIXTRAL, "mixtral")
        } else if states("llama.attention.sliding_window") {
            exported.class("MistralForCausalLM", "mistral")
        } else {
            exported
        })
    }
}

/// The window of a class that has one: all layers of the first Mistral do.
fn window(config: &Config) -> Result<Option<u32>, Error> {
    let class = config.class()?;
    match config.json().get("sliding_window") {
        None if class.starts_with("Mistral") => Ok(Some(4096)),
        Some(_) if class.starts_with("Mi") => config.u32(&["sliding_window"]),
        _ => Ok(None),
    }
}

/// What becomes of an expert's matrix as Mixtral names it.
pub(crate) fn experts_of_mixtral(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    moe::one_of(&EXPERTS, name, || {
        config.require_u32(&["num_local_experts"], "the number of experts")
    })
}

/// How Mixtral names the matrices of experts.
pub(crate) fn patterns_of_mixtral() -> [&'static str; 3] {
    EXPERTS.map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::convert::ExpertSlot;

    #[test]
    fn experts_are_parts_of_one_tensor() {
        let config = Config::of(json!({"num_local_experts": 8}));
        let mapping = (&Llama as &dyn Converter)
            .mapping(&config, "model.layers.3.block_sparse_moe.experts.5.w2.weight")
            .unwrap();
        let name = "blk.3.ffn_down_exps.weight".to_owned();
        assert_eq!(mapping, Mapping::slot(name, ExpertSlot { index: 5, count: 8 }));
    }

    #[test]
    fn long_wavelengths_are_divided() {
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
