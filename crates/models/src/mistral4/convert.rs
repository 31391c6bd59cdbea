//! Conversion of the text model of Mistral 4: DeepSeek's MLA and MoE; gate and up projections of
//! all experts stay fused.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::{number, shortest};
use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::tensor_names::{captures, filled};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, defaults};
use crate::deepseek2;
use crate::deepseek2::convert::{DEEPSEEK2, Deepseek2};
use crate::schema::key;

/// Matrices of all experts of a layer, without a `.weight` suffix, and their GGUF names.
const EXPERTS: [(&str, &str); 2] = [
    ("model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight"),
    ("model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight"),
];

/// Field with the scale of the attention temperature.
const BETA: &str = "llama_4_scaling_beta";

/// Class of the model with its vision encoder.
pub(crate) const VISION_CLASS: &str = "Mistral3ForConditionalGeneration";

/// `model_type` of the text model.
pub(crate) const MISTRAL4_TYPE: &str = "mistral4";

pub(crate) struct Mistral4;

/// Description of [`Mistral4`].
pub(crate) static MISTRAL4: Description = Description {
    classes: &[VISION_CLASS],
    architecture: "mistral4",
    model_type: MISTRAL4_TYPE,
    vocabulary: VocabularyKind::Bpe,
    pre_tokenizers: &["tekken"],
    ..DEEPSEEK2
};

impl Converter for Mistral4 {
    fn description(&self) -> &'static Description {
        &MISTRAL4
    }

    fn base(&self) -> &'static dyn Converter {
        &Deepseek2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        config.default("kv_lora_rank", 256);
        config.default("q_lora_rank", 1024);
        config.default("qk_rope_head_dim", 64);
        config.default("qk_nope_head_dim", 64);
        config.default("v_head_dim", 128);
        config.default("n_routed_experts", 128);
        config.default("n_shared_experts", 1);
        config.default("num_experts_per_tok", 4);
        config.default("moe_intermediate_size", 2048);
        config.default("first_k_dense_replace", 0);
        config.default("norm_topk_prob", true);
        config.default("routed_scaling_factor", 1.0);
        config.default("n_group", 1);
        config.default("topk_group", 1);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        deepseek2::convert::mla_keys(config, keys)?;
        let rope = Rope::of(config)?;
        if let Some(beta) = rope.f64(BETA)?.filter(|&beta| beta != 0.0) {
            keys.set(key::ATTENTION_TEMPERATURE_SCALE, beta as f32);
            keys.set(key::ATTENTION_TEMPERATURE_LENGTH, rope.original_context()? as u32);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let stem = name.strip_suffix(".weight").unwrap_or(name);
        for (hf_name, gguf_name) in EXPERTS {
            if let Some(numbers) = captures(hf_name, stem) {
                return Ok(Some(Mapping::one(filled(gguf_name, &numbers), [])));
            }
        }
        deepseek2::convert::map_mla_tensor(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = deepseek2::convert::export_mla(model, exported)?
            .class(VISION_CLASS, MISTRAL4_TYPE)
            .first(EXPERTS.map(|(name, _)| name));
        Some(match number(model, key::ATTENTION_TEMPERATURE_SCALE) {
            Some(beta) => exported.scaling(BETA, shortest(beta, |x| x as f32 == beta as f32)),
            None => exported,
        })
    }
}
