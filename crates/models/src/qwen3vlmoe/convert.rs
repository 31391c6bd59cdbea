//! Conversion of the text models of Qwen3-VL with MoE layers and of Qwen3-Omni. Qwen3-VL stores the
//! matrices of all experts of a layer in one transposed tensor.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::moe::turned;
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, defaults, hparams,
};
use crate::qwen3moe::convert::{QWEN3MOE, Qwen3moe};
use crate::qwen3vl::convert::{deepstack_layers, export_vl};
use crate::schema::key;

pub(crate) struct Qwen3vlmoe;

/// Description of [`Qwen3vlmoe`].
pub(crate) static QWEN3VLMOE: Description = Description {
    classes: &["Qwen3VLMoeForConditionalGeneration"],
    architecture: "qwen3vlmoe",
    model_type: "qwen3_vl_moe",
    ..QWEN3MOE
};

impl Converter for Qwen3vlmoe {
    fn description(&self) -> &'static Description {
        &QWEN3VLMOE
    }

    fn base(&self) -> &'static dyn Converter {
        &Qwen3moe
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("moe_intermediate_size", 1408);
        config.default("num_experts", 60);
        config.default("num_experts_per_tok", 4);
        config.default("rms_norm_eps", 1e-6);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(EXPERT_WIDTH)?);
        keys.set(key::N_DEEPSTACK_LAYERS, deepstack_layers(config));
        Ok(())
    }

    // The expert matrices are stored transposed.
    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let stem = name.strip_suffix(".weight").unwrap_or(name);
        match turned(config, stem, [DOWN, GATE_AND_UP], EXPERT_WIDTH)? {
            None => Qwen3moe.map_tensor(config, name),
            found => Ok(found),
        }
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(export_vl(model, exported.patterns([DOWN, GATE_AND_UP])))
    }
}

const EXPERT_WIDTH: &[&str] = &["moe_intermediate_size"];

const DOWN: &str = "model.layers.{}.mlp.experts.down_proj";

const GATE_AND_UP: &str = "model.layers.{}.mlp.experts.gate_up_proj";

/// Converter of the text model of Qwen3-Omni, whose checkpoints have one tensor for each expert.
pub(crate) struct Qwen3omni;

/// Description of [`Qwen3omni`].
pub(crate) static QWEN3OMNI: Description = Description {
    classes: &["Qwen3OmniMoeForConditionalGeneration"],
    model_type: "qwen3_omni_moe",
    vocabulary: VocabularyKind::QwenTurns { chatml: false },
    ..QWEN3VLMOE
};

impl Converter for Qwen3omni {
    fn description(&self) -> &'static Description {
        &QWEN3OMNI
    }

    fn base(&self) -> &'static dyn Converter {
        &Qwen3vlmoe
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        Qwen3vlmoe.hyper_parameters(config, keys)?;
        keys.set(key::N_DEEPSTACK_LAYERS, 0u32);
        Ok(())
    }

    fn export(&self, _: &Model, _: Exported) -> Option<Exported> {
        None
    }
}
