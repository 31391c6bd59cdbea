//! Conversion of MiniCPM: a Llama whose muP fields become the multipliers of Granite.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, VocabularyKind, export, hparams, rope, steps,
};
use crate::schema::key;

pub(crate) struct Minicpm;

/// Description of [`Minicpm`].
pub(crate) static MINICPM: Description = Description {
    classes: &["MiniCPMForCausalLM"],
    architecture: "minicpm",
    model_type: "minicpm",
    vocabulary: VocabularyKind::SentencePiece,
    ..Description::DECODER
};

impl Converter for Minicpm {
    fn description(&self) -> &'static Description {
        &MINICPM
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        let embedding = config.require_f64(&["scale_emb"], "the multiplier of the embedding")?;
        let depth =
            config.require_f64(&["scale_depth"], "the multiplier of the residual branches")?;
        let base =
            config.require_f64(&["dim_model_base"], "the embedding size of the base model")?;
        keys.set(key::EMBEDDING_SCALE, embedding as f32);
        let blocks = f64::from(hparams::block_count(config)?);
        keys.set(key::RESIDUAL_SCALE, (depth / blocks.sqrt()) as f32);
        keys.set(key::LOGIT_SCALE, (f64::from(hparams::width(config)?) / base) as f32);
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::longrope_factors(config, hparams::width(config)? / hparams::head_count(config)?)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let number = |key| export::number(model, key);
        let blocks = number("block_count")?.sqrt();
        let depth = number("residual_scale").map(|scale| {
            export::shortest(scale * blocks, |depth| f64::from((depth / blocks) as f32) == scale)
        });
        let width = number("embedding_length")?;
        let base = number("logit_scale").map(|scale| {
            export::shortest(width / scale, |base| f64::from((width / base) as f32) == scale)
        });
        // Runtimes use the multipliers of the first models for files without the keys.
        let mut exported = exported
            .set("scale_emb", export::whole(number("embedding_scale").unwrap_or(12.0)))
            .set("scale_depth", depth.unwrap_or(1.4))
            .set("dim_model_base", export::whole(base.unwrap_or(256.0)));
        let context = export::count(model, key::CONTEXT_LENGTH);
        if let (Some(context), true) = (context, export::has(model, "rope_factors_long.weight")) {
            // The original context length has no key, so runtimes take the context length for it.
            exported = exported.scaling("original_max_position_embeddings", context);
        }
        Some(exported)
    }
}
