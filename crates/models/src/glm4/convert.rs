//! GLM 4.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::export::{count, has, rotated_share};
use crate::convert::hparams::{Keys, Rope};
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, VocabularyKind, hparams, mtp};
use crate::qwen2vl::convert::export_mrope_sections;
use crate::schema::key;

/// Norms stand before and after attention and feed-forward; gate and what it gates are one matrix.
const NAMES: Table = &[
    ("model.layers.{}.post_self_attn_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.post_mlp_layernorm", "blk.{}.post_ffw_norm"),
    ("model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
];

pub(crate) struct Glm4;

/// Description of [`Glm4`].
pub(crate) static GLM4: Description = Description {
    classes: &[TEXT, SEEING, READING],
    architecture: "glm4",
    model_type: "glm4",
    vocabulary: VocabularyKind::Glm4,
    pre_tokenizers: &["glm4", "chatglm-bpe"],
    tensor_names: &[NAMES, mtp::NAMES, LLAMA_LIKE],
    ..Description::DECODER
};

impl Converter for Glm4 {
    fn description(&self) -> &'static Description {
        &GLM4
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        if config.class()? == TEXT {
            config.default("head_dim", 128);
            config.default("rms_norm_eps", 1.5625e-7);
        }
        config.default("rms_norm_eps", 1e-5);
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        let rotated = hparams::rotated_dims(config, hparams::head_dim(config)?, 0.5)?;
        keys.set(key::ROPE_DIMENSION_COUNT, rotated);
        if let Some(further) = config.u32(&[mtp::COUNT])?.filter(|_| is_reading(config)) {
            keys.set(key::BLOCK_COUNT, hparams::block_count(config)?.saturating_add(further));
            keys.set(FURTHER_KEY, further);
        }
        Ok(())
    }

    // Where positions have three dimensions, programs turn the first half of what rotates against the
    // second, while checkpoints are arranged for pairs of neighbours.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let heads = match name.split('.').nth(2) {
            Some("attn_q") => hparams::head_count(config)?,
            Some("attn_k") => hparams::head_count_kv(config)?,
            _ => return Ok(Vec::new()),
        };
        if Rope::of(config)?.sections()?.is_none() {
            return Ok(Vec::new());
        }
        let pairs = hparams::rotated_dims(config, hparams::head_dim(config)?, 0.5)? / 2;
        let (groups, outer) = (heads.into(), pairs.into());
        Ok(vec![Step::Exchange { groups, start: 0, outer, inner: 2, len: 1 }])
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let further = count(model, FURTHER_KEY);
        let exported = match (further, model.metadata().get("glm4.rope.dimension_sections")) {
            (Some(further), _) => {
                let blocks = count(model, key::BLOCK_COUNT)?.checked_sub(further)?;
                let exported = exported.class(READING, "glm_ocr").without(&[key::BLOCK_COUNT]);
                exported.set("num_hidden_layers", blocks).set(mtp::COUNT, further)
            }
            (None, Some(_)) => exported.class(SEEING, "glm4v"),
            (None, None) => exported,
        };
        let exported = export_mrope_sections(model, exported)
            .set_some("partial_rotary_factor", rotated_share(model))
            .set("attention_bias", has(model, "blk.0.attn_q.bias"));
        Some(exported)
    }
}

const TEXT: &str = "Glm4ForCausalLM";

const SEEING: &str = "Glm4vForConditionalGeneration";

/// Has layers that guess further tokens besides.
const READING: &str = "GlmOcrForConditionalGeneration";

const FURTHER_KEY: &str = "nextn_predict_layers";

fn is_reading(config: &Config) -> bool {
    config.class().is_ok_and(|class| class == READING)
}
