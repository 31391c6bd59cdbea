//! Conversion of GLM 4, GLM 4.1V and GLM OCR. With M-RoPE sections, query and key rows are permuted
//! from the interleaved to the NeoX layout.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::export::{count, has, rotated_share};
use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, VocabularyKind, defaults, hparams, mtp, rope,
};
use crate::qwen2vl::convert::export_mrope_sections;
use crate::schema::key;

/// Sandwich norms; gate and up projection are one matrix.
const NAMES: Table = &[
    ("model.layers.{}.post_self_attn_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.post_mlp_layernorm", "blk.{}.post_ffw_norm"),
    ("model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
];

pub(crate) struct Glm4;

/// Description of [`Glm4`].
pub(crate) static GLM4: Description = Description {
    classes: &[TEXT_CLASS, VISION_CLASS, OCR_CLASS],
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
        if config.class()? == TEXT_CLASS {
            config.default("head_dim", 128);
            config.default("rms_norm_eps", 1.5625e-7);
        }
        config.default("rms_norm_eps", 1e-5);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        let rotary_dims = rope::rotated_dims(config, hparams::head_dim(config)?, 0.5)?;
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
        let is_ocr = config.class().is_ok_and(|class| class == OCR_CLASS);
        if let Some(mtp_layers) = config.u32(&[mtp::COUNT])?.filter(|_| is_ocr) {
            keys.set(key::BLOCK_COUNT, hparams::block_count(config)?.saturating_add(mtp_layers));
            keys.set(key::NEXTN_PREDICT_LAYERS, mtp_layers);
        }
        Ok(())
    }

    // With M-RoPE, runtimes apply RoPE in NeoX layout, while checkpoints have the interleaved
    // layout.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let heads = match name.split('.').nth(2) {
            Some("attn_q") => hparams::head_count(config)?,
            Some("attn_k") => hparams::head_count_kv(config)?,
            _ => return Ok(Vec::new()),
        };
        if Rope::of(config)?.sections()?.is_none() {
            return Ok(Vec::new());
        }
        let pairs = rope::rotated_dims(config, hparams::head_dim(config)?, 0.5)? / 2;
        let (groups, outer) = (heads.into(), pairs.into());
        Ok(vec![Step::Exchange { groups, start: 0, outer, inner: 2, len: 1 }])
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let mtp_layers = count(model, key::NEXTN_PREDICT_LAYERS);
        let exported = match (mtp_layers, model.metadata().get("glm4.rope.dimension_sections")) {
            (Some(mtp_layers), _) => {
                let blocks = count(model, key::BLOCK_COUNT)?.checked_sub(mtp_layers)?;
                let exported = exported.class(OCR_CLASS, "glm_ocr").without(&[key::BLOCK_COUNT]);
                exported.set("num_hidden_layers", blocks).set(mtp::COUNT, mtp_layers)
            }
            (None, Some(_)) => exported.class(VISION_CLASS, "glm4v"),
            (None, None) => exported,
        };
        let exported = export_mrope_sections(model, exported)
            .set_some("partial_rotary_factor", rotated_share(model))
            .set("attention_bias", has(model, "blk.0.attn_q.bias"));
        Some(exported)
    }
}

const TEXT_CLASS: &str = "Glm4ForCausalLM";

const VISION_CLASS: &str = "Glm4vForConditionalGeneration";

/// Class with multi-token prediction layers.
const OCR_CLASS: &str = "GlmOcrForConditionalGeneration";
