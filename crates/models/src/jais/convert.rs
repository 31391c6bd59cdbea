//! Jais: the second generation with norms with bias and feed-forward layers without gates, and the first.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, Mapping, Values, export, hparams};
use crate::gpt2;
use crate::schema::key;

/// The first generation: as GPT-2 with gates, and with positions by ALiBi.
const FIRST_NAMES: Table = &[("h.{}.mlp.c_fc2", "blk.{}.ffn_gate")];

const SLOPES: &str = "relative_pe.slopes";

/// Set by the slopes.
const MAX_BIAS: &str = "max_alibi_bias";

pub(crate) struct Jais;

/// Description of [`Jais`].
pub(crate) static JAIS: Description = Description {
    classes: &["JAISLMHeadModel"],
    architecture: "jais",
    model_type: "jais",
    pre_tokenizers: &["jais"],
    tensor_prefix: "transformer.",
    tensor_names: &[FIRST_NAMES, gpt2::convert::NAMES],
    config_fields: &gpt2::convert::FIELDS,
    ..Description::DECODER
};

impl Converter for Jais {
    fn description(&self) -> &'static Description {
        &JAIS
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        require(config, "activation_function", "swiglu")?;
        require(config, "position_embedding_type", "alibi")
    }

    // The slope of the first head tells how large biases are.
    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        let heads = hparams::head_count(config)?;
        let slopes = match values.find(&format!("transformer.{SLOPES}"))? {
            None => values.find(SLOPES)?,
            found => found,
        };
        if let Some(first) = slopes.and_then(|slopes| slopes.first().copied()) {
            let power_of_two = f64::from(1u32 << heads.ilog2());
            let bias = -(f64::from(first).log2() * power_of_two).round_ties_even();
            config.set(MAX_BIAS, bias);
        }
        Ok(())
    }

    fn leading_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.set(key::ATTENTION_MAX_ALIBI_BIAS, config.f32(&[MAX_BIAS])?.unwrap_or(USUAL_BIAS));
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        keys.file_type();
        Ok(())
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Ok(name.ends_with(SLOPES).then_some(Mapping::Dropped))
    }

    // Embedding and output have factors, which become part of them; matrices are stored the other way round.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let number = |field: &str| config.f64(&[field]);
        let scale = match name {
            "token_embd.weight" => {
                let scale = match number("mup_embeddings_scale")? {
                    None => number("embeddings_scale")?,
                    scale => scale,
                };
                scale
                    .ok_or_else(|| config.missing("embeddings_scale", "the factor of embeddings"))?
            }
            "output.weight" => match number("mup_output_alpha")? {
                Some(alpha) => {
                    alpha * config.require_f64(&["mup_width_scale"], "the factor of the output")?
                }
                None => config.require_f64(&["width_scale"], "the factor of the output")?,
            },
            name => {
                const ENDS: [&str; 5] =
                    ["attn_qkv", "attn_output", "ffn_up", "ffn_gate", "ffn_down"];
                let is_turned = |end: &&str| name.ends_with(&format!(".{end}.weight"));
                return Ok(ENDS
                    .iter()
                    .find(|end| is_turned(end))
                    .map(|_| Step::Transpose)
                    .into_iter()
                    .collect());
            }
        };
        Ok(vec![Step::Map(Function::Times(scale as f32))])
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported
            .set("activation_function", "swiglu")
            .set("position_embedding_type", "alibi")
            .set("embeddings_scale", 1.0)
            .set("width_scale", 1.0);
        let bias = export::number(model, key::ATTENTION_MAX_ALIBI_BIAS)?;
        Some(exported.unwritten(MAX_BIAS, bias.into()))
    }
}

/// The largest bias where no slope tells.
const USUAL_BIAS: f32 = 8.0;

/// Fails if a field has another value than programs compute with.
fn require(config: &Config, field: &str, value: &str) -> Result<(), Error> {
    match config.find(&[field]) {
        None => Err(config.missing(field, "what the model computes with")),
        Some((_, stated)) if stated == value => Ok(()),
        Some((_, stated)) => Err(hparams::not_computed(config, field, stated)),
    }
}
